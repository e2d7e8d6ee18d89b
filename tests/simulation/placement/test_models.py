"""The table of models and the speeds by it: closed forms, durations kept, and bad tables refused."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

import equipoise as eq
from equipoise.heuristics.placement.queue import FifoPolicy
from equipoise.simulation import Cluster, RoundRules, Trace, exclusive_s, read_durations
from equipoise.simulation.placement.engine import simulate_placement
from equipoise.simulation.placement.model_speeds import ModelSpeeds
from equipoise.simulation.placement.model_table import ModelRow, ModelTable
from equipoise.simulation.placement.speeds import Running
from equipoise.simulation.placement.time_model import TimeModel
from equipoise.simulation.rounds.engine import simulate_rounds
from equipoise.simulation.rounds.replay import ReplayedSchedule

POLLUX = DATA / "pollux"
TABLE = ModelTable.builtin()
SHIPPED = Path(eq.__file__).parent / "simulation" / "placement" / "data" / "six_models.csv"


def row(**changes) -> ModelRow:
    """A model of 1 s per sample; communication 2 s within and 8 s across machines; M0 = 4 and phi = 12."""
    time = TimeModel(
        compute_s=0.0,
        compute_s_per_sample=1.0,
        within_s=2.0,
        within_s_per_gpu=0.0,
        across_s=8.0,
        across_s_per_gpu=0.0,
        overlap=1.0,
    )
    facts = {"first_batch": 4, "max_batch": 64, "min_gpu_batch": 1, "max_gpu_batch": 8, "epochs": 5, "iterations": 50}
    noises = {"noise_first": 4.0, "noise_median": 12.0, "noise_last": 28.0}
    return ModelRow(**{"model": "net", "time": time, **facts, **noises, **changes})


def running(model="net", gpus=2, machines=1, batch_size=4, sub_batch=None, trace_index=0) -> Running:
    return Running(
        trace_index=trace_index,
        model=model,
        gang_gpus=gpus,
        gpus=gpus,
        machines=machines,
        fewest_machines=1,
        tier=int(machines > 1),
        batch_size=batch_size,
        sub_batch=sub_batch or batch_size,
    )


def speeds(**options) -> ModelSpeeds:
    return ModelSpeeds(ModelTable([row()]), **options)


def trace(gang_gpus=(1,), batch_size=(4,), model=None, **columns) -> Trace:
    count = len(gang_gpus)
    return Trace(
        job_id=range(count),
        model=model or ["net"] * count,
        gang_gpus=gang_gpus,
        batch_size=batch_size,
        arrival_s=np.zeros(count),
        **columns,
    )


# -- The table ---------------------------------------------------------------------------------------------------------


def test_the_six_models_are_those_of_the_shared_fit():
    if not POLLUX.is_dir():
        pytest.skip("no shared data")
    names = {
        "first_batch": "init_batch",
        "max_batch": "max_batch",
        "min_gpu_batch": "min_local_bsz",
        "max_gpu_batch": "max_local_bsz",
        "epochs": "epochs",
        "iterations": "iterations_at_init_batch",
        "noise_first": "noise_scale_first",
        "noise_median": "noise_scale_median",
        "noise_last": "noise_scale_last",
    }
    constants = {"compute": "c", "within": "r", "across": "n"}
    with (POLLUX / "six_models_fit_t4.csv").open(encoding="utf-8") as file:
        known = {cells["model"]: cells for cells in csv.DictReader(file)}
    assert set(known) == set(TABLE.models)
    for model, cells in known.items():
        facts = TABLE.row(model)
        assert {name: getattr(facts, name) for name in names} == {
            name: float(cells[key]) for name, key in names.items()
        }
        for level, letter in constants.items():
            each = "compute_s_per_sample" if level == "compute" else f"{level}_s_per_gpu"
            assert getattr(facts.time, f"{level}_s") == float(cells[f"alpha_{letter}"])
            assert getattr(facts.time, each) == float(cells[f"beta_{letter}"])
        assert facts.time.overlap == float(cells["gamma"])
        assert "Apache-2.0" in facts.source


def test_epochs_are_passes_over_the_known_data_sets():
    # CIFAR-10 and ImageNet have 50,000 and 1,281,167 training images.
    assert TABLE.row("cifar10").samples_per_epoch == pytest.approx(50_000, abs=1)
    assert TABLE.row("imagenet").samples_per_epoch == pytest.approx(1_281_167, abs=1)


def test_skews_have_a_source_and_are_low_where_none_is_known():
    skewed = {model: TABLE.row(model).skew for model in TABLE.models}
    assert skewed["imagenet"] == pytest.approx(9.0 / 80.6, abs=5e-4)
    assert skewed["bert"] == pytest.approx(30522 * 768 / 108_891_648, abs=5e-4)
    assert skewed["ncf"] == pytest.approx(6040 * 128 / 1_602_657, abs=5e-4)
    assert skewed["yolov3"] is None
    assert all(bool(TABLE.row(model).skew_source) == (skew is not None) for model, skew in skewed.items())
    assert [model for model in TABLE.models if TABLE.is_skewed(model, 0.3)] == ["ncf"]
    assert not TABLE.is_skewed("yolov3", 0.0)
    assert not TABLE.is_skewed("of another cluster", 0.0)
    assert not ModelTable([row(skew=0.5, skew_source="measured")]).is_skewed("net", 0.5)


def test_the_largest_batch_fills_the_gpu_and_the_parameters_are_the_fixed_part():
    for each in TABLE.rows:
        assert each.worker_gb(each.max_gpu_batch) == pytest.approx(16.0, rel=1e-5)
        assert 0.5 < each.memory_gb == each.worker_gb(0) < 2.5
        assert "million parameters" in each.memory_source
    # A row without its own memory.
    assert [row().worker_gb(samples) for samples in (0, 4, 8)] == [1.0, 8.5, 16.0]
    known = row(memory_gb=2.0, memory_gb_per_sample=0.5, memory_source="measured")
    assert known.worker_gb(6) == 5.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_gb": 1.0, "memory_source": "x"}, "memory_gb_per_sample = None: must be stated with memory_gb"),
        ({"memory_gb_per_sample": 1.0, "memory_source": "x"}, "memory_gb = None: must be stated with memory_gb_per_"),
        ({"memory_gb": 1.0, "memory_gb_per_sample": 1.0}, "memory_source = '': must not be empty"),
        ({"memory_gb": -1.0, "memory_gb_per_sample": 1.0, "memory_source": "x"}, "memory_gb = -1.0"),
        ({"memory_gb": 1.0, "memory_gb_per_sample": 0.0, "memory_source": "x"}, "memory_gb_per_sample = 0.0"),
    ],
)
def test_memory_is_stated_whole_and_with_its_source(changes, said):
    with pytest.raises(eq.InvalidInput, match=said):
        row(**changes)


def test_a_file_may_leave_the_columns_of_memory_out(tmp_path):
    lines = [line.rsplit(",", 3)[0] for line in SHIPPED.read_text(encoding="utf-8").splitlines()]
    (tmp_path / "own.csv").write_text("\n".join(lines), encoding="utf-8")
    own = ModelTable.read(tmp_path / "own.csv").row("bert")
    assert own == replace(TABLE.row("bert"), memory_gb=None, memory_gb_per_sample=None, memory_source="")
    assert own.worker_gb(12) == 16.0


def test_another_table_adds_and_replaces_rows(tmp_path):
    path = tmp_path / "own.csv"
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    bert = next(line for line in lines if line.startswith("bert"))
    path.write_text("\n".join([lines[0], bert.replace("0.171936", "0.5"), bert.replace("bert", "gpt", 1)]))
    table = TABLE.extended(ModelTable.read(path))
    assert table.models == tuple(sorted([*TABLE.models, "gpt"]))
    assert table.row("bert").time.compute_s == 0.5
    assert table.row("gpt").time.compute_s == TABLE.row("bert").time.compute_s
    assert table.row("ncf") == TABLE.row("ncf")
    with pytest.raises(eq.InvalidInput, match=r"model = 'vgg': not in the table of models, which has bert, cifar10"):
        table.row("vgg")


def broken_table(tmp_path, column, value, line=1) -> str:
    with SHIPPED.open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    rows[line][rows[0].index(column)] = value
    path = tmp_path / "models.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(eq.InvalidInput) as caught:
        ModelTable.read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("model", "", "must not be empty"),
        ("model", "cifar10", "a second row of the same model"),
        ("first_batch", "0", "at least 1"),
        ("first_batch", "1.5", "must be a whole number"),
        ("max_batch", "11", "less than first_batch, 12"),
        ("min_gpu_batch", "-4", "at least 1"),
        ("max_gpu_batch", "3", "less than min_gpu_batch, 4"),
        ("epochs", "x", "must be a whole number"),
        ("iterations", "1", "less than epochs, 2"),
        ("compute_s", "-0.1", "at least 0"),
        ("compute_s_per_sample", "0", "must be greater than 0"),
        ("within_s", "", "must be a number"),
        ("within_s_per_gpu", "-1", "at least 0"),
        ("across_s", "inf", "must be finite"),
        ("across_s_per_gpu", "-1", "at least 0"),
        ("overlap", "0.5", "at least 1"),
        ("noise_first", "-1", "at least 0"),
        ("noise_median", "nan", "must be finite"),
        ("noise_last", "-1", "at least 0"),
        ("skew", "1.5", "at most 1"),
        ("skew", "0", "must be greater than 0"),
        ("skew_source", "", "a skew needs its source"),
    ],
)
def test_a_bad_cell_is_named_by_column_value_and_line(tmp_path, column, value, why):
    message = broken_table(tmp_path, column, value)
    assert message.startswith(f"{column} = ")
    assert why in message
    assert message.count("models.csv, line") == 1
    assert ("line 3" if value == "cifar10" else "line 2") in message


def test_a_table_without_rows_or_columns_is_refused(tmp_path):
    path = tmp_path / "models.csv"
    header = SHIPPED.read_text(encoding="utf-8").splitlines()[0]
    path.write_text(header)
    with pytest.raises(eq.InvalidInput, match="the file holds no model"):
        ModelTable.read(path)
    path.write_text(header.replace("overlap", "gamma"))
    with pytest.raises(eq.InvalidInput, match=r"overlap = .*column missing"):
        ModelTable.read(path)
    with pytest.raises(eq.InvalidInput, match="rows = "):
        ModelTable([])
    with pytest.raises(eq.InvalidInput, match=r"model\[0\] = 'net': a second row"):
        ModelTable([row(), row()])
    with pytest.raises(eq.InvalidInput, match="time = 'float': must be a TimeModel"):
        row(time=1.0)


# -- The speeds --------------------------------------------------------------------------------------------------------


def test_rates_are_throughput_times_efficiency_in_iterations_at_the_first_batch_size():
    # M = 8, efficiency (12 + 4) / (12 + 8) = 4/5; an iteration is worth 8/4 x 4/5 = 8/5 of M0's and takes 4 + 2 s.
    assert speeds().rate(running()) == pytest.approx(1.6 / 6.0)
    assert speeds().rate(running(machines=2)) == pytest.approx(1.6 / 12.0)
    assert speeds().rate(running(gpus=1)) == pytest.approx(1.0 / 4.0)
    assert speeds().rate(running(sub_batch=2)) == pytest.approx(1.6 / 6.0)  # no fixed cost, no overlap
    assert speeds(noise_scale="first").rate(running()) == pytest.approx(2.0 * 8.0 / 12.0 / 6.0)
    assert speeds(noise_scale="last").rate(running()) == pytest.approx(2.0 * 32.0 / 36.0 / 6.0)
    assert speeds().exposed(running()) == pytest.approx(2.0 / 6.0)
    assert speeds().exposed(running(gpus=1)) == 0.0


def test_accumulation_pays_the_fixed_time_of_each_sub_batch():
    fixed = ModelSpeeds(ModelTable([row(time=replace(row().time, compute_s=1.0))]))
    assert fixed.rate(running()) == pytest.approx(1.6 / (5.0 + 2.0))
    assert fixed.rate(running(sub_batch=2)) == pytest.approx(1.6 / (3.0 + 3.0 + 2.0))
    assert fixed.exposed(running()) == pytest.approx(2.0 / 7.0)
    assert fixed.exposed(running(sub_batch=2)) == pytest.approx(2.0 / 8.0)


def test_work_is_what_a_duration_amounts_to_on_the_fewest_machines():
    jobs = trace(gang_gpus=(1, 2, 4), batch_size=(4, 4, 2), duration_s=[10.0, 60.0, 30.0])
    alone = speeds(gpus_per_machine=2)
    rates = [alone.rate(running(gpus=g, machines=m, batch_size=b)) for g, m, b in ((1, 1, 4), (2, 1, 4), (4, 2, 2))]
    assert alone.work(jobs) / rates == pytest.approx([10.0, 60.0, 30.0], rel=1e-15)
    # Without machines, 4 GPUs communicate in 2 s instead of 8 s.
    assert speeds().work(jobs)[2] / alone.work(jobs)[2] == pytest.approx(10.0 / 4.0)


def test_work_without_durations_is_total_steps_of_each_gpu():
    jobs = trace(gang_gpus=(1, 2), batch_size=(4, 4), total_steps=[7, 30])
    # 7 iterations of 4 samples; 15 iterations of 8 samples, each worth 8/5.
    assert speeds().work(jobs) == pytest.approx([7.0, 24.0])
    assert speeds().work(jobs)[1] / speeds().rate(running()) == pytest.approx(15 * 6.0)


@given(
    model=st.sampled_from(TABLE.models),
    gpus=st.integers(2, 48),
    machines=st.integers(1, 4),
    share=st.floats(0.0, 1.0),
    accumulated=st.integers(1, 4),
)
def test_gpus_never_gain_more_than_their_number(model, gpus, machines, share, accumulated):
    least, largest = TABLE.gpu_batch_range(model)
    sub_batch = round(least + share * (largest - least))
    run = running(model, gpus, min(machines, gpus), sub_batch * accumulated, sub_batch)
    known = ModelSpeeds(TABLE)
    alone = known.rate(run._replace(gpus=1, machines=1))
    assert 0.0 < known.rate(run) <= gpus * alone * (1 + 1e-12)
    assert 0.0 <= known.exposed(run) <= 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "vgg"}, r"model\[3\] = 'vgg': not in the table"),
        ({"batch_size": 9, "sub_batch": 9}, r"batch_size\[3\] = 9: a GPU holds at most 8 samples of net at once"),
        ({"batch_size": 18, "sub_batch": 9}, r"sub_batch\[3\] = 9: a GPU holds at most 8"),
        ({"sub_batch": 5}, r"sub_batch\[3\] = 5: must be from 1 to batch_size, 4"),
        ({"sub_batch": 0}, r"sub_batch\[3\] = 0: must be from 1 to batch_size, 4"),
    ],
)
def test_a_run_that_is_impossible_is_refused_by_name(change, message):
    with pytest.raises(eq.InvalidInput, match=message):
        speeds().rate(running(trace_index=3)._replace(**change))


def test_bad_options_and_jobs_are_refused_by_name():
    with pytest.raises(eq.InvalidInput, match="table = 'dict'"):
        ModelSpeeds({})
    with pytest.raises(eq.InvalidInput, match="noise_scale = 'mean': must be one of first, median, last"):
        speeds(noise_scale="mean")
    with pytest.raises(eq.InvalidInput, match="gpus_per_machine = 0"):
        speeds(gpus_per_machine=0)
    with pytest.raises(eq.InvalidInput, match=r"model\[1\] = 'vgg'"):
        speeds().work(trace((1, 1), (4, 4), ["net", "vgg"], duration_s=[1.0, 1.0]))
    with pytest.raises(eq.InvalidInput, match=r"batch_size\[0\] = 16"):
        speeds().work(trace((1,), (16,), duration_s=[1.0]))


# -- The engines and the reader ----------------------------------------------------------------------------------------


def test_profiles_run_a_job_at_the_same_speed_in_the_rounds_engine(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time_s,duration_s,num_gpus,model,batch_size\na,0,600.5,6,cifar10,2048\n")
    known = ModelSpeeds(TABLE, gpus_per_machine=4)
    with pytest.warns(UserWarning, match="of 1 jobs, 1 have"):
        jobs, profiles = read_durations(path, models=known)
    assert jobs.duration_s.tolist() == [600.5]
    assert jobs.batch_size.tolist() == [341]
    run = running("cifar10", 6, 2, 341)
    assert known.work(jobs)[0] / known.rate(run) == pytest.approx(600.5, rel=1e-15)
    iteration_s = TABLE.row("cifar10").time.iteration(6, 341, machines=2).total_s
    assert profiles.steps_per_s("cifar10", 341, 6) == pytest.approx(6 / iteration_s)
    always = ReplayedSchedule([["a"]] * 20)
    result = simulate_rounds(jobs, always, gpus=6, profiles=profiles, rules=RoundRules(restart_s=0.0))
    assert result.run_s[0] == pytest.approx(600.5, abs=iteration_s)
    assert exclusive_s(jobs, profiles)[0] == pytest.approx(600.5, abs=profiles.epoch_s("cifar10", 341, 6) / 2)


def test_jobs_take_their_durations_in_the_placement_engine_and_longer_if_they_are_spread():
    jobs = trace((3, 3, 2), (4, 2, 4), duration_s=[600.25, 700.5, 60.0])
    known = ModelSpeeds(ModelTable([row()]), gpus_per_machine=4)
    result = simulate_placement(jobs, FifoPolicy(), cluster=Cluster(gpus_by_type={"gpu": 8}, machines=2), speeds=known)
    # One GPU is left on each machine: iterations of 4 + 2 s take 4 + 8 s.
    assert result.run_s == pytest.approx([600.25, 700.5, 120.0], rel=1e-12)
    assert result.start_s.tolist() == [0.0, 0.0, 0.0]


def test_totals_are_divided_rounded_and_kept_within_the_range_per_gpu(tmp_path):
    path = tmp_path / "jobs.csv"
    header = "job_id,submit_time_s,duration_s,num_gpus,model,batch_size"
    lines = ["a,0,60,2,net,8", "b,0,60,3,net,8", "c,0,60,2,net,5", "d,0,60,2,net,64", "e,0,60,9,net,4"]
    path.write_text("\n".join([header, *lines]))
    table = ModelTable([row()])
    expected = "jobs.csv: of 5 jobs, 2 have a batch size .* and 2 one outside their model's range per GPU"
    with pytest.warns(UserWarning, match=expected) as caught:
        jobs, _ = read_durations(path, models=table)
    assert len(caught) == 1
    assert jobs.batch_size.tolist() == [4, 3, 3, 8, 1]
    assert jobs.duration_s.tolist() == [60.0] * 5
    path.write_text("\n".join([header, lines[0]]))
    assert read_durations(path, models=table)[0].batch_size.tolist() == [4]  # nothing changes, no warning


def test_a_job_that_the_models_cannot_read_is_named_by_column_and_line(tmp_path):
    path = tmp_path / "jobs.csv"
    header = "job_id,submit_time_s,duration_s,num_gpus,model,batch_size\n"
    for line, message in (
        ("a,0,60,2,net,\n", "batch_size = '': must not be empty: it is the total.*line 2"),
        ("a,0,60,2,vgg,8\n", "model = 'vgg': not in the table of models.*line 2"),
    ):
        path.write_text(header + line)
        with pytest.raises(eq.InvalidInput, match=message):
            read_durations(path, models=ModelTable([row()]))
    with pytest.raises(eq.InvalidInput, match="models = 'ModelTable': must be left out with profiles"):
        read_durations(path, eq.simulation.Profiles.builtin(), models=TABLE)


@pytest.mark.parametrize(
    ("name", "jobs", "undivided"),
    [
        ("pollux_160_w1", 160, 44),
        ("pollux_160_w2", 160, 54),
        ("pollux_160_w3", 160, 41),
        ("pollux_160_w4", 160, 48),
        ("pollux_240_w6", 240, 71),
    ],
)
def test_published_traces_keep_their_durations(name, jobs, undivided):
    if not POLLUX.is_dir():
        pytest.skip("no shared data")
    known = ModelSpeeds(TABLE, gpus_per_machine=4)
    with pytest.warns(UserWarning, match=rf"of {jobs} jobs, {undivided} have a batch size"):
        read, _ = read_durations(POLLUX / f"{name}.csv", models=known)
    with (POLLUX / f"{name}.csv").open(encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    assert read.duration_s.tolist() == [float(row["duration_s"]) for row in cells]
    for index, work in enumerate(known.work(read)):
        gpus, size = int(read.gang_gpus[index]), int(read.batch_size[index])
        run = running(read.model[index], gpus, -(-gpus // 4), size)
        assert work / known.rate(run) == pytest.approx(read.duration_s[index], rel=1e-14)
        total, (least, largest) = int(cells[index]["batch_size"]), TABLE.gpu_batch_range(read.model[index])
        assert abs(size - min(max(total / gpus, least), largest)) <= 0.5
