"""`equipoise simulate`: what it prints and writes is the engine's result, and bad input is one line with its place."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from shared_data import SHOCKWAVE

from equipoise.cli import main
from equipoise.cli.simulate.policy_spec import PolicySpec, read_options, read_policies
from equipoise.heuristics.registry import POLICIES, make_policy, policies_of
from equipoise.simulation import Profiles, RoundRules, Trace, generate_trace, simulate_rounds, write_shockwave

SHARED = SHOCKWAVE
needs_trace = pytest.mark.skipif(
    not (SHARED / "trace_120.csv").is_file(), reason="the trace of the paper is not beside the repository"
)
HEADER = "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s"
LINES = ["a,LM,10,1,static,9000,0", "b,LM,20,2,static,9000,5", "c,ResNet-18,32,1,static,9000,90"]
FILES = ["jobs.csv", "page.html", "rounds.csv", "solves.csv", "summary.json"]


def write(folder, lines, header=HEADER):
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return str(path)


def runs(capsys, *arguments):
    assert main.run(["simulate", *map(str, arguments)]) == 0, capsys.readouterr().err
    return capsys.readouterr()


def document(capsys, *arguments):
    return json.loads(runs(capsys, *arguments, "--json").out)


def fails(capsys, arguments, code=2):
    if "--policy" not in arguments:
        arguments = [*arguments, "--policy", "fifo"]
    assert main.run(["simulate", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    *told, line, hint = err.splitlines()
    assert out == ""
    assert line.startswith("equipoise: error: ")
    assert hint.startswith("hint: ")
    assert all(each.startswith("equipoise: ") for each in told)
    return line.removeprefix("equipoise: error: ")


def test_the_document_is_the_result_of_the_engine(tmp_path, capsys):
    path = write(tmp_path, LINES)
    found = document(capsys, path, "--policy", "gandiva-fair", "--gpus", 3, "--per-job")
    result = simulate_rounds(Trace.read(path), make_policy("gandiva-fair"), gpus=3, profiles=Profiles.builtin())
    timed = ("solve_s", "solve_max_s")
    for key, value in result.metrics.items():
        if not (isinstance(value, float) and not np.isfinite(value)) and "_s" not in key[-2:]:
            assert found[key] == pytest.approx(value), key
    for key in ("makespan_s", "avg_jct_s", "worst_ftf", "unfair_pct", "utilisation"):
        assert found[key] == result.metrics[key]
    assert {"solve_s", "wall_s", "cpu_s"} <= set(found) | set(timed)
    assert [list(row) for row in found["jobs"]] == [["job_id", "start_s", "end_s", "jct_s", "ftf"]] * 3
    assert [tuple(row.values()) for row in found["jobs"]] == [
        tuple(row) for row in result.jobs[["job_id", "start_s", "end_s", "jct_s", "ftf"]].itertuples(index=False)
    ]
    facts = {"format": "equipoise.simulation/1", "policy": "gandiva-fair", "options": {}, "engine": "rounds"}
    facts |= {"trace": path, "num_jobs": 3, "gpus": 3, "profiles": "builtin", "cluster": None, "seed": 0}
    assert facts.items() <= found.items()
    assert found["rules"]["round_s"] == 120.0
    assert "jobs" not in document(capsys, path, "--policy", "fifo", "--gpus", 3)


def test_a_newcomer_needs_no_file(capsys):
    found = document(capsys, "generated:7", "--policy", "las", "--gpus", 4, "--per-job")
    assert [row["job_id"] for row in found["jobs"]] == list(range(7))
    again = document(capsys, "generated:7", "--policy", "las", "--gpus", 4, "--per-job")
    for key in set(found) - {"wall_s", "cpu_s"}:
        if "solve" not in key:
            assert found[key] == again[key], key
    assert (
        document(capsys, "generated:7", "--policy", "las", "--gpus", 4, "--seed", 1)["makespan_s"]
        != (found["makespan_s"])
    )


def test_generated_work_can_be_shaped(capsys):
    found = document(capsys, "generated", "--jobs", 5, "--policy", "fifo", "--gpus", 1)
    assert (found["num_jobs"], found["gpus"]) == (5, 1)
    spread = document(
        capsys, "generated:5,mean_interarrival_s=1e5,static=1", "--policy", "fifo", "--gpus", 8, "--jobs", 4
    )
    assert spread["num_jobs"] == 4
    assert spread["worst_ftf"] == pytest.approx(1.0, abs=0.05)  # nobody waits for anybody, and nobody adapts


def test_the_first_arrivals_are_taken(tmp_path, capsys):
    path = write(tmp_path, LINES)
    found = document(capsys, path, "--policy", "fifo", "--gpus", 3, "--jobs", 2, "--per-job")
    assert [row["job_id"] for row in found["jobs"]] == ["a", "b"]
    assert "--jobs = 4: the trace has 3 jobs" in fails(capsys, [path, "--jobs", 4])
    assert "--jobs = 0" in fails(capsys, [path, "--jobs", 0])


def test_an_unsorted_file_is_refused_by_line_or_sorted_if_asked(tmp_path, capsys):
    path = write(tmp_path, [LINES[2], LINES[0], LINES[1]])
    line = fails(capsys, [path, "--policy", "fifo"])
    assert line.startswith("arrival_time_s = 0.0: before the job above it, at 90")
    assert line.endswith("(jobs.csv, line 3)")
    found = document(capsys, path, "--policy", "fifo", "--gpus", 3, "--sort", "--per-job", "--jobs", 2)
    assert [row["job_id"] for row in found["jobs"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("at", "line", "message"),
    [
        (1, "a,LM,20,2,static,9000,5", "job_id[1] = 'a': the same id as on line 2 (jobs.csv, line 3)"),
        (1, "b,LM,20,64,static,9000,5", "scale_factor = 64: job 'b' is wider than the cluster of 32 GPUs"),
        (1, "b,LM,21,2,static,9000,5", "batch_size, scale_factor = (21, 2): no throughput of LM"),
        (1, "b,Gone,20,2,static,9000,5", "model = 'Gone': no data set size in profiles 'builtin'"),
        (2, "c,LM,20,2,static,9000,nan", "arrival_time_s = nan: must be finite (jobs.csv, line 4)"),
        (2, "c,LM,20,2,static,9000,inf", "arrival_time_s = inf: must be finite (jobs.csv, line 4)"),
        (0, "a,LM,20,2,static,9000,-1", "arrival_time_s = -1.0: at least 0 (jobs.csv, line 2)"),
        (0, "a,LM,20,2,static,-9,0", "total_steps = -9: at least 1 (jobs.csv, line 2)"),
        (0, "a,LM,20,2,moving,9,0", "mode = 'moving': must be one of static, accordion, gns (jobs.csv, line 2)"),
        (0, "a,LM,20,2,static,9", "line = 'a,LM,20,2,static,9': 6 cells, the header has 7 (jobs.csv, line 2)"),
    ],
)
def test_a_fault_of_the_trace_names_column_value_file_and_line(tmp_path, capsys, at, line, message):
    path = write(tmp_path, [*LINES[:at], line, *LINES[at + 1 :]])
    said = fails(capsys, [path, "--policy", "fifo"])
    assert said.startswith(message)
    assert said.endswith(f"(jobs.csv, line {at + 2})")


@pytest.mark.parametrize("name", HEADER.split(","))
def test_a_missing_column_is_named(tmp_path, capsys, name):
    header = [each for each in HEADER.split(",") if each != name]
    path = write(tmp_path, ["," * (len(header) - 1)], ",".join(header))
    said = fails(capsys, [path])
    assert said.startswith(f"{name} = ")
    assert said.endswith("column missing from the header of jobs.csv")


def test_wide_jobs_can_be_left_out(tmp_path, capsys):
    path = write(tmp_path, [LINES[0], "wide,LM,20,4,static,9000,5", LINES[2]])
    arguments = [path, "--policy", "fifo", "--gpus", 2, "--skip-wide", "--json", "--per-job"]
    shown = runs(capsys, *arguments)
    assert [row["job_id"] for row in json.loads(shown.out)["jobs"]] == ["a", "c"]
    assert "equipoise: warning: left out 1 job(s) wider than the cluster of 2 GPUs: wide" in shown.err
    path = write(tmp_path, ["wide,LM,20,4,static,9000,5"])
    assert "every job" in fails(capsys, [path, "--gpus", 2, "--skip-wide"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generated:3", "--engine", "magic"], "--engine magic: unknown"),
        (["generated:3", "--policy", "pollux"], "speeds = 'ProfileSpeeds': pollux needs ModelSpeeds (--speeds models)"),
        (["generated:3", "--policy", "gavle"], "name = 'gavle': did you mean 'gavel'"),
        (["generated:3", "--policy", "gavel:speed=9"], "speed = 9: no option of gavel"),
        (["generated:3", "--policy", "gavel:interval_s"], "--policy: 'interval_s' is not KEY=VALUE"),
        (["generated:3", "--policy", "gavel:interval_s=x"], "interval_s = 'x'"),
        (["generated:3", "--policy", "gavel,fifo"], "--policy gavel,fifo: names 2 policies"),
        (["generated:3", "--policy", ""], "no policy named"),
        (["generated:3", "--gpus", "many"], "--gpus many: not a number of GPUs"),
        (["generated:3", "--gpus", "0"], "--gpus = 0: at least 1"),
        (["generated:3", "--gpus", "v100=2"], "--gpus with types needs --profiles FOLDER"),
        (["generated:3", "--cluster", "tacc"], "--cluster tacc: the built-in profiles are of one cluster"),
        (["generated:3", "--seed", "-1"], "--seed = -1: at least 0"),
        (["generated:3", "--rules", "round=9"], "--rules round: no such rule"),
        (["generated:3", "--rules", "round_s=0"], "round_s = 0: must be greater than 0"),
        (["generated:3", "--rules", "round_s=9,round_s=8"], "--rules: round_s is given twice"),
        (["generated:x"], "generated:x: 'x' is not a number of jobs"),
        (["generated:0"], "num_jobs = 0: at least 1"),
        (["generated:9,speed=2"], "generated:9,speed=2: no option 'speed'"),
        (["generated:9,static=0.5"], "mode_probabilities = 0.5: probabilities must add up to 1"),
        (["none.csv"], "path = 'none.csv': No such file or directory"),
        (["generated:3", "--out", __file__], f"--out {__file__}: is a file, not a folder"),
    ],
)
def test_a_bad_option_is_one_line_and_a_hint(capsys, arguments, message):
    assert fails(capsys, arguments).startswith(message)


def test_options_reach_the_policy_and_the_engine(capsys):
    base = ["generated:12", "--gpus", 4]
    found = document(capsys, *base, "--policy", "gavel:interval_s=4e3", "--rules", "round_s=60,overrun=none")
    assert found["options"] == {"interval_s": 4e3}
    assert (found["rules"]["round_s"], found["rules"]["overrun"]) == (60, None)
    trace = generate_trace(
        np.random.default_rng(0), num_jobs=12, gpu_counts=(1, 2, 4), gpu_probabilities=np.array([0.6, 0.3, 0.09]) / 0.99
    )
    policy = make_policy("gavel", interval_s=4e3)
    rules = RoundRules(round_s=60, overrun=None)
    result = simulate_rounds(trace, policy, gpus=4, profiles=Profiles.builtin(), rules=rules)
    assert found["makespan_s"] == result.metrics["makespan_s"]
    assert found["makespan_s"] != document(capsys, *base, "--policy", "gavel")["makespan_s"]


def test_lists_of_policies_and_options_are_read_as_they_look():
    specs = read_policies(["shockwave:rounds=30,ftf_power=5,las", "gavel"], 0)
    assert [spec.label for spec in specs] == ["shockwave:rounds=30,ftf_power=5", "las", "gavel"]
    assert specs[0].folder == "shockwave-rounds-30-ftf_power-5"
    assert read_options("a=1,b=0.5,c=True,d=none,e=x", "--o", "") == {"a": 1, "b": 0.5, "c": True, "d": None, "e": "x"}
    assert len({spec.folder for spec in read_policies(["all"], 0)}) == len(policies_of("rounds"))
    assert PolicySpec("las").label == "las"


def test_the_help_names_every_policy(capsys):
    shown = "".join(runs(capsys, "--help").out.split())
    assert all(name in shown for name in POLICIES)


def test_the_folder_holds_all_tables_and_the_page(tmp_path, capsys):
    out = tmp_path / "new" / "results"
    found = document(capsys, "generated:6", "--policy", "gandiva-fair", "--gpus", 4, "--out", out, "--per-job")
    assert sorted(each.name for each in out.iterdir()) == FILES
    summary = json.loads((out / "summary.json").read_text())
    assert summary == {key: value for key, value in found.items() if key != "jobs"}
    jobs = pd.read_csv(out / "jobs.csv")
    assert jobs["jct_s"].tolist() == pytest.approx([row["jct_s"] for row in found["jobs"]])
    rounds = pd.read_csv(out / "rounds.csv")
    assert rounds["end_s"].max() == pytest.approx(found["makespan_s"])
    assert pd.read_csv(out / "solves.csv")["wall_s"].sum() == pytest.approx(found["solve_s"], abs=1e-6)
    page = (out / "page.html").read_text(encoding="ascii")
    assert "<!--" not in page.replace("<!doctype", "")
    assert page.count("<svg") == 5
    assert "gandiva-fair on 4 GPUs" in page
    assert "equipoise simulate generated:6 --policy gandiva-fair --gpus 4 --seed 0" in page
    assert "http://www.w3.org" in page
    assert "<script" not in page


def test_people_get_the_figures_and_the_jobs_if_they_ask(tmp_path, capsys):
    path = write(tmp_path, LINES)
    shown = runs(capsys, path, "--policy", "fifo", "--gpus", 4).out
    found = document(capsys, path, "--policy", "fifo", "--gpus", 4)
    assert shown.startswith("fifo on 4 GPUs: 3 jobs, ")
    assert f"makespan      {found['makespan_s']:,.0f} s" in shown
    assert f"worst FTF     {found['worst_ftf']:.3f}" in shown
    assert "JCT s" not in shown
    assert "JCT s" in runs(capsys, path, "--policy", "fifo", "--gpus", 4, "--per-job").out


@needs_trace
def test_profiles_can_be_named_and_those_beside_the_trace_are_pointed_at(tmp_path, capsys):
    trace = SHARED / "trace_120.csv"
    base = [trace, "--policy", "fifo", "--jobs", 10]
    own = runs(capsys, *base, "--json")
    assert "profiles: built in" in own.err
    named = runs(capsys, *base, "--json", "--profiles", SHARED, "--cluster", "tacc")
    assert named.err == ""
    first, second = json.loads(own.out), json.loads(named.out)
    assert (second["profiles"], second["cluster"]) == (str(SHARED), "tacc")
    assert first["makespan_s"] != second["makespan_s"]
    other = document(capsys, *base, "--profiles", SHARED)
    assert other["makespan_s"] == second["makespan_s"]
    assert "nowhere" in fails(capsys, [*base, "--profiles", SHARED, "--cluster", "nowhere"])
    assert "has no throughputs.csv" in fails(capsys, [*base, "--profiles", tmp_path])


@needs_trace
def test_the_golden_run_comes_out_of_the_command(capsys):
    golden = json.loads((SHARED / "golden_120_32gpu.json").read_text())["gandiva_fair|canonical|simulation"]
    arguments = ["--policy", "gandiva-fair", "--gpus", 32, "--profiles", SHARED, "--per-job"]
    found = document(capsys, SHARED / "trace_120.csv", *arguments)
    assert found["makespan_s"] == pytest.approx(golden["makespan_s"], abs=1e-6)
    assert found["avg_jct_s"] == pytest.approx(golden["avg_jct_s"], abs=1e-6)
    assert [row["jct_s"] for row in found["jobs"]] == pytest.approx(golden["jct_list"], abs=1e-6)
    assert found["unfair_pct"] == pytest.approx(golden["unfair_fraction_gt_1_05"], abs=1e-3)


def test_the_other_format_is_read_too(tmp_path, capsys):
    line = "ResNet-18 (batch size 64)\tpython3 main.py\timages\t--num_steps\t1\t4500\t{}\t1\t-1.000000\t{}"
    path = tmp_path / "jobs.trace"
    path.write_text("\n".join([line.format(1, 0), line.format(2, 17)]) + "\n")
    found = document(capsys, path, "--policy", "fifo", "--gpus", 2, "--per-job")
    assert [row["job_id"] for row in found["jobs"]] == [0, 1]
    path.write_text("\n".join([line.format(1, 9), line.format(2, 8)]) + "\n")
    assert fails(capsys, [path, "--gpus", 2]).endswith("(jobs.trace, line 2)")
    path.write_text("\n".join([line.format(1, 0), line.format(4, 8)]) + "\n")
    said = fails(capsys, [path, "--gpus", 2])
    assert said.startswith("scale_factor = 4: job 1 is wider than the cluster of 2 GPUs")


@needs_trace
def test_a_cluster_may_have_gpus_of_several_types(capsys):
    base = ["generated:10", "--policy", "gavel", "--profiles", SHARED]
    found = document(capsys, *base, "--gpus", "tacc=8,wisr=8")
    assert found["gpus"] == {"tacc": 8, "wisr": 8}
    assert found["utilisation"] <= 1
    assert "--cluster tacc" in fails(capsys, [*base, "--gpus", "tacc=8,wisr=8", "--cluster", "tacc"])


def test_a_written_trace_gives_the_same_result_as_the_generator(tmp_path, capsys):
    trace = generate_trace(np.random.default_rng(0), num_jobs=8)
    path = tmp_path / "written.csv"
    write_shockwave(trace, path)
    for policy in ("fifo", "gandiva-fair"):
        arguments = ["--policy", policy, "--gpus", 8]
        read = document(capsys, path, *arguments)
        assert read["makespan_s"] == document(capsys, "generated:8", *arguments)["makespan_s"]


@pytest.mark.thorough
def test_an_interrupt_leaves_the_jobs_that_had_ended(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    out = tmp_path / "out"
    arguments = ["generated:3000", "--policy", "fifo", "--gpus", "64", "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "equipoise", "simulate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        while not out.is_dir():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown == ""
    first, last = said.splitlines()
    assert last == "equipoise: interrupted"
    names = ["jobs.partial.csv", "rounds.partial.csv", "solves.partial.csv"]
    assert sorted(each.name for each in out.iterdir()) == names
    jobs, rounds, solves = (pd.read_csv(out / name) for name in names)
    assert first == (
        f"equipoise: {len(jobs)} of 3000 jobs had ended after {len(rounds)} rounds; wrote {', '.join(names)} to {out}"
    )
    assert len(jobs) < 3000
    assert jobs["end_s"].max() <= rounds["end_s"].max()
    assert np.isfinite(jobs["ftf"]).all()
    assert 0 <= len(solves) - rounds["calls"].sum() <= 1  # one call may be of the round that was interrupted


def test_a_complete_run_replaces_what_an_interrupted_one_left(tmp_path, capsys):
    (tmp_path / "jobs.partial.csv").touch()
    runs(capsys, "generated:2", "--policy", "fifo", "--gpus", 2, "--out", tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == FILES
