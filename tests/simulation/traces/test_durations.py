"""Traces of durations: a job takes the time that its file says, and every fault has column, value, file and line."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

import equipoise as eq
from equipoise.simulation import Profiles, ReplayedSchedule, RoundRules, Trace, exclusive_s, read_durations
from equipoise.simulation.rounds.engine import simulate_rounds
from equipoise.simulation.traces.durations import is_duration_trace

SHARED = DATA
HEADER = "job_id,submit_time_s,duration_s,num_gpus,model,batch_size,work_gpu_s"
LINES = ["a,0,600.4,1,LM,10,600.4", "b,5.5,90,4,LM,20,360", "7,9,33.0,1,VGG,,33.0"]
FILES = {
    "gavel/gavel_msr_ed69ec.csv": 951,
    "gavel/gavel_msr_51b7ef.csv": 17,
    "philly/philly_82k.csv.gz": 82_247,
    "pollux/pollux_160_w1.csv": 160,
    "pollux/pollux_240_w6.csv": 240,
    "tiresias/tiresias_60.csv": 60,
}


def write(folder: Path, lines, header=HEADER) -> Path:
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def fault(path, profiles=None) -> str:
    with pytest.raises(eq.InvalidInput) as caught:
        read_durations(path, profiles)
    return str(caught.value)


def test_steps_are_gpu_seconds_and_epochs_seconds(tmp_path):
    trace, profiles = read_durations(write(tmp_path, LINES))
    assert trace.job_id == ("a", "b", 7)
    assert trace.model == ("LM on 1 GPU", "LM on 4 GPUs", "VGG on 1 GPU")
    assert trace.total_steps.tolist() == [600, 360, 33]
    assert trace.arrival_s.tolist() == [0.0, 5.5, 9.0]
    assert trace.gang_gpus.tolist() == [1, 4, 1]
    assert set(trace.mode) == {"static"}
    assert exclusive_s(trace, profiles).tolist() == [600.0, 90.0, 33.0]
    for model, gang in (("LM on 1 GPU", 1), ("LM on 4 GPUs", 4)):
        assert profiles.steps_per_s(model, 1, gang) == gang
        assert profiles.epoch_s(model, 1, gang) == 1.0


def test_the_engine_runs_a_job_for_its_duration(tmp_path):
    trace, profiles = read_durations(write(tmp_path, LINES[:2]))
    everyone = ReplayedSchedule([["a"], ["a", "b"], ["a"], ["a"], ["a"]])
    result = simulate_rounds(trace, everyone, gpus=8, profiles=profiles, rules=RoundRules(restart_s=0.0))
    assert result.run_s.tolist() == [600.0, 90.0]
    assert result.exclusive_s.tolist() == [600.0, 90.0]


@given(
    jobs=st.lists(
        st.tuples(
            st.floats(1e-3, 5e6), st.floats(0.0, 2e9), st.integers(1, 300), st.sampled_from(["LM", "VGG", "x y"])
        ),
        min_size=1,
        max_size=8,
    )
)
def test_isolated_times_are_the_durations(tmp_path_factory, jobs):
    path = tmp_path_factory.mktemp("round") / "jobs.csv"
    lines = [f"{i},{t!r},{d!r},{g},{name},,{d * g!r}" for i, (d, t, g, name) in enumerate(jobs)]
    path.write_text("\n".join([HEADER, *lines]), encoding="utf-8")
    trace, profiles = read_durations(path)
    durations = np.array([job[0] for job in jobs])
    assert np.all(np.abs(exclusive_s(trace, profiles) - np.maximum(durations, 1.0)) <= 0.5)
    assert trace.arrival_s.tolist() == [job[1] for job in jobs]
    assert trace.gang_gpus.tolist() == [job[2] for job in jobs]


@given(st.floats(1.0, 5e6), st.sampled_from([("LM", 10, 2), ("ResNet-18", 64, 8), ("Recommendation", 512, 1)]))
def test_with_profiles_steps_are_the_duration_at_their_rate(tmp_path_factory, seconds, job):
    model, size, gang = job
    path = tmp_path_factory.mktemp("measured") / "jobs.csv"
    path.write_text(f"{HEADER}\n1,0,{seconds!r},{gang},{model},{size},\n", encoding="utf-8")
    given_profiles = Profiles.builtin()
    trace, profiles = read_durations(path, given_profiles)
    assert profiles is given_profiles
    assert trace.model == (model,)
    assert trace.batch_size.tolist() == [size]
    assert abs(trace.total_steps[0] - seconds * profiles.steps_per_s(model, size, gang)) <= 0.5
    epoch_s = profiles.epoch_s(model, size, gang)
    assert exclusive_s(trace, profiles)[0] == pytest.approx(epoch_s * trace.total_epochs[0], rel=1e-12)
    assert abs(exclusive_s(trace, profiles)[0] - max(seconds, epoch_s)) <= epoch_s * 0.5000001


def test_an_empty_batch_size_is_the_only_one_that_the_profiles_know(tmp_path):
    profiles = Profiles(
        name="lab",
        rates={("A3C", 4, 1): 2.5, ("LM", 10, 1): 4.0, ("LM", 20, 1): 3.0},
        dataset_sizes={"A3C": 4, "LM": 100},
        max_batch_sizes={},
    )
    path = write(tmp_path, ["1,0,100,1,A3C,,100"])
    trace, _ = read_durations(path, profiles)
    assert trace.batch_size.tolist() == [4]
    assert trace.total_steps.tolist() == [250]
    assert exclusive_s(trace, profiles)[0] == 100.0
    path = write(tmp_path, ["1,0,100,1,A3C,,100", "2,0,100,1,LM,,100"])
    message = fault(path, profiles)
    assert message.startswith("batch_size = ''")
    assert "(10, 20) (jobs.csv, line 3)" in message
    path = write(tmp_path, ["1,0,100,1,A3C,,100", "2,0,100,1,BERT,,100"])
    assert fault(path, profiles).startswith("model")
    assert "BERT" in fault(path, profiles)


@pytest.mark.parametrize(
    ("at", "line", "message"),
    [
        (2, "a,9,33,1,VGG,,33", "job_id[2] = 'a': the same id as on line 2 (jobs.csv, line 4)"),
        (1, ",5,90,4,LM,20,360", "job_id = '': must not be empty (jobs.csv, line 3)"),
        (1, "b,nan,90,4,LM,20,360", "submit_time_s = nan: must be finite (jobs.csv, line 3)"),
        (1, "b,-5,90,4,LM,20,360", "submit_time_s = -5.0: at least 0 (jobs.csv, line 3)"),
        (1, "b,,90,4,LM,20,360", "submit_time_s = '': must be a number (jobs.csv, line 3)"),
        (1, "b,5,0,4,LM,20,0", "duration_s = 0.0: must be greater than 0 (jobs.csv, line 3)"),
        (1, "b,5,-90,4,LM,20,360", "duration_s = -90.0: must be greater than 0 (jobs.csv, line 3)"),
        (1, "b,5,nan,4,LM,20,360", "duration_s = nan: must be finite (jobs.csv, line 3)"),
        (1, "b,5,inf,4,LM,20,", "duration_s = inf: must be finite (jobs.csv, line 3)"),
        (1, "b,5,1e300,4,LM,20,", "duration_s = '1e300': more than 2^53 steps (jobs.csv, line 3)"),
        (1, "b,5,,4,LM,20,360", "duration_s = '': must be a number (jobs.csv, line 3)"),
        (1, "b,5,90,0,LM,20,360", "num_gpus = 0: at least 1 (jobs.csv, line 3)"),
        (1, "b,5,90,2.5,LM,20,360", "num_gpus = '2.5': must be a whole number (jobs.csv, line 3)"),
        (1, "b,5,90,4,,20,360", "model = '': must not be empty (jobs.csv, line 3)"),
        (0, "a,0,600.4,1,LM,0,600.4", "batch_size = 0: at least 1 (jobs.csv, line 2)"),
        (0, "a,0,600.4,1,LM,nan,600.4", "batch_size = 'nan': must be a whole number (jobs.csv, line 2)"),
        (1, "b,5,90,4,LM,20,90", "work_gpu_s = 90.0: must be duration_s x num_gpus, 360 (jobs.csv, line 3)"),
        (1, "b,5,90,4,LM", "line = 'b,5,90,4,LM': 5 cells, the header has 7 (jobs.csv, line 3)"),
    ],
)
def test_a_fault_names_column_value_file_and_line(tmp_path, at, line, message):
    lines = [*LINES[:at], line, *LINES[at + 1 :]]
    assert fault(write(tmp_path, lines)) == message


@pytest.mark.parametrize("column", ["job_id", "submit_time_s", "duration_s", "num_gpus", "model"])
def test_a_missing_column_is_named_whichever_way_the_file_is_read(tmp_path, column):
    columns = [name for name in HEADER.split(",") if name != column]
    path = write(tmp_path, [], ",".join(columns))
    message = f"{column} = '{','.join(columns)}': column missing from the header of jobs.csv"
    assert fault(path) == message
    with pytest.raises(eq.InvalidInput, match=message.replace("(", r"\(")):
        Trace.read(path)


def test_a_header_alone_is_no_trace(tmp_path):
    assert "the file holds no job" in fault(write(tmp_path, []))
    assert fault(tmp_path / "none.csv").startswith("path = ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,5,90,4,LM,20,360", "job_id[1] = 'a': the same id as on line 2 (jobs.csv, line 3)"),
        ("b,5,1e308,4,LM,20,", "duration_s = '1e308': more than 2^53 steps (jobs.csv, line 3)"),
        ("b,5,-1,4,LM,20,", "duration_s = -1.0: must be greater than 0 (jobs.csv, line 3)"),
    ],
)
def test_a_fault_is_the_same_with_measured_rates(tmp_path, line, message):
    assert fault(write(tmp_path, [LINES[0], line]), Profiles.builtin()) == message


def test_profiles_that_do_not_know_a_job_say_what_they_know(tmp_path):
    path = write(tmp_path, [LINES[0], "b,5.5,90,3,LM,20,270"])
    message = fault(path, Profiles.builtin())
    assert message.startswith("batch_size, num_gpus = (20, 3): no throughput of LM")
    assert message.endswith("(jobs.csv, line 3)")
    path = write(tmp_path, [LINES[0], "b,5.5,90,4,GPT,20,360"])
    assert fault(path, Profiles.builtin()).startswith("model = 'GPT': no throughput")


def test_two_columns_may_be_absent_and_others_are_passed_over(tmp_path):
    plain, _ = read_durations(write(tmp_path, LINES))
    header = "user,model,num_gpus,duration_s,submit_time_s,job_id"
    lines = ["ann,LM,1,600.4,0,a", "bob,LM,4,90,5.5,b", "ann,VGG,1,33.0,9,7"]
    found, _ = read_durations(write(tmp_path, lines, header))
    assert found.to_frame().equals(plain.to_frame())


def test_without_profiles_models_and_batch_sizes_are_those_of_the_file(tmp_path):
    path = write(tmp_path, LINES)
    plain, (trace, _) = Trace.read(path), read_durations(path)
    assert (plain.model, plain.batch_size.tolist()) == (("LM", "LM", "VGG"), [10, 20, 1])
    others = [name for name in plain.to_frame() if name not in ("model", "batch_size")]
    assert plain.to_frame()[others].equals(trace.to_frame()[others])


def test_every_way_of_reading_takes_the_format_by_its_header(tmp_path):
    path = write(tmp_path, LINES)
    trace = Trace.read(path)
    assert is_duration_trace(path)
    assert trace.duration_s.tolist() == [600.4, 90.0, 33.0]
    other = write(tmp_path, [], "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s,duration_s")
    assert not is_duration_trace(other)
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(write(tmp_path, LINES).read_bytes()))
    assert Trace.read(packed).to_frame().equals(trace.to_frame())
    assert "(jobs.csv.gz, line 3)" in str(Trace.read(packed).locate(eq.InvalidInput("gang_gpus", 4, "no", index=1)))


@pytest.mark.parametrize("cut", [0, 4, 25])
def test_a_file_that_is_not_a_whole_gzip_file_is_refused(tmp_path, cut):
    path = tmp_path / "jobs.csv.gz"
    packed = gzip.compress(write(tmp_path, LINES).read_bytes())
    path.write_bytes(packed[:cut] if cut else b"job_id,submit_time_s\n")
    with pytest.raises(eq.InvalidInput, match="is not a whole gzip file"):
        Trace.read(path)


def test_faults_found_later_have_the_names_of_the_file(tmp_path):
    trace, _ = read_durations(write(tmp_path, [LINES[1], LINES[0]]))
    error = trace.locate(eq.InvalidInput("arrival_s", 0.0, "before the job above it", index=1))
    assert str(error) == "submit_time_s = 0.0: before the job above it (jobs.csv, line 3)"


@pytest.mark.thorough
@pytest.mark.skipif(not (SHARED / "gavel").is_dir(), reason="the published traces are not beside the repository")
@pytest.mark.parametrize("name", FILES)
def test_published_traces_take_their_durations(name):
    path = SHARED / name
    trace, profiles = read_durations(path)
    assert len(trace) == FILES[name]
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        durations = np.array([float(row["duration_s"]) for row in csv.DictReader(file)])
    assert np.abs(exclusive_s(trace, profiles) - durations).max() <= 0.5
    assert Trace.read(path).total_steps.tolist() == trace.total_steps.tolist()


@pytest.mark.skipif(not (SHARED / "gavel").is_dir(), reason="the published traces are not beside the repository")
def test_a_published_trace_is_read_with_measured_rates(tmp_path):
    profiles = Profiles.read(SHARED / "shockwave", cluster="tacc")
    path = SHARED / "gavel" / "gavel_msr_51b7ef.csv"
    # These rates lack two of the file's configurations.
    with pytest.raises(eq.InvalidInput, match=r"batch_size, num_gpus = \(256, 8\).*gavel_msr_51b7ef.csv, line 4\)"):
        read_durations(path, profiles)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split()[1:]
    cells = [line.split(",") for line in lines]
    known = [(name, int(size), int(gang)) in profiles.rates for _, _, _, gang, name, size, _ in cells]
    trace, _ = read_durations(
        write(tmp_path, [line for line, keep in zip(lines, known, strict=True) if keep]), profiles
    )
    assert len(trace) > 5
    own, own_profiles = read_durations(path)
    wanted = exclusive_s(own.select(known), own_profiles)
    epoch_s = [profiles.epoch_s(*job) for job in zip(trace.model, trace.batch_size, trace.gang_gpus, strict=True)]
    assert np.all(np.abs(exclusive_s(trace, profiles) - wanted) <= np.array(epoch_s) / 2 + 0.5)
