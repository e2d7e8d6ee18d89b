"""`equipoise plan`: exit codes, the plan as JSON, the files, and one line for every failure."""

import array
import copy
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import termios
import time

import jsonschema
import numpy as np
import pytest
from patience import SOON_S

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.console import usage_bars
from equipoise.cli.plan import command as plan
from equipoise.cli.plan.instance import instance_of, window_of
from equipoise.cli.plan.schema import check_document, schema_text
from equipoise.cli.plan.summary import ranges, regime_strip
from equipoise.cli.progress import SolveProgress
from equipoise.validation.instances.window import random_window

INSTANCE = {
    "format": "equipoise.window/1",
    "gpus": 4,
    "rounds": 4,
    "running": ["a"],
    "jobs": [
        {
            "id": "a",
            "gpus": 2,
            "finished_epochs": 1,
            "total_epochs": 4,
            "regimes": [{"epochs": 2, "epoch_s": 60}, {"epochs": 1, "epoch_s": 300}],
        },
        {"id": 7, "gpus": 4, "finished_epochs": 0, "total_epochs": 1, "regimes": [{"epochs": 1, "epoch_s": 300}]},
        {"id": "c", "gpus": 1, "finished_epochs": 0, "total_epochs": 9, "regimes": [{"epochs": 9, "epoch_s": 90}]},
    ],
}


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(INSTANCE))
    return path


def environment():
    """The environment of a child that imports the same package as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUTF8": "1"}


def one_failure(capsys, arguments, code):
    """Run the command, check that it fails with `code` in one line and a hint, and return the line."""
    assert main.run([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    line, hint = err.splitlines()
    assert line.startswith("equipoise: error: ")
    assert hint.startswith("hint: ")
    return line


# -- A plan ------------------------------------------------------------------------------------------------------------


def test_json_is_the_plan_that_solve_finds(instance, capsys):
    assert main.run(["plan", str(instance), "--json", "--time-limit", str(SOON_S)]) == 0
    document = json.loads(capsys.readouterr().out)
    check_document("plan", document)
    jsonschema.Draft202012Validator(json.loads(schema_text("plan"))).validate(document)
    window = window_of(INSTANCE)
    result = eq.solve(window, time_limit=15.0)
    assert document["objective"] == result.objective
    assert document["termination"] == "OPTIMAL"
    assert document["gap"] == pytest.approx((document["bound"] - document["objective"]) / window.gap_scale(0.0))
    grants = np.zeros((3, 4), dtype=bool)
    for row, job in enumerate(document["jobs"]):
        grants[row, job["rounds"]] = True
        assert len(job["regimes"]) == len(job["rounds"])
    replayed = eq.WindowPlan(window=window, grants=grants)
    assert replayed.objective == pytest.approx(document["objective"], abs=1e-12)
    assert replayed.gpus_in_use.tolist() == document["gpus_in_use"]
    assert [job["remaining_s"] for job in document["jobs"]] == pytest.approx(replayed.remaining_s.tolist())
    for row, job in enumerate(document["jobs"]):
        assert replayed.regime_of[row][grants[row]].tolist() == job["regimes"]


def test_out_holds_what_json_prints_and_html_is_a_page(instance, tmp_path, capsys):
    out, html = tmp_path / "plan.json", tmp_path / "plan.html"
    assert main.run(["plan", str(instance), "--json", "--out", str(out), "--html", str(html)]) == 0
    printed, told = capsys.readouterr()
    assert out.read_text() == printed
    assert "<html" in html.read_text()
    assert str(out) in told
    assert str(html) in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["instance.json", "plan.html", "plan.json"]


def test_the_summary_names_status_bound_gap_and_every_job(instance, capsys):
    assert main.run(["plan", str(instance), "--backend", "highs", "--form", "time_indexed"]) == 0
    out = capsys.readouterr().out
    for word in ("OPTIMAL", "highs", "time_indexed", "objective", "bound", "gap", "residuals", "GPUs in use"):
        assert word in out
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["a", "7", "c"]


def test_a_long_list_of_jobs_is_cut_and_says_so(tmp_path, capsys):
    path = tmp_path / "many.json"
    path.write_text(json.dumps(instance_of(random_window(np.random.default_rng(1), jobs=120, gpus=16))))
    assert main.run(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert "... 80 of 120 jobs not shown" in out
    assert len(out.splitlines()) < 60


def test_instances_come_back_as_the_same_window():
    for seed in range(5):
        window = random_window(np.random.default_rng(seed), jobs=30, gpus=16, restart_penalty=0.01)
        document = json.loads(json.dumps(instance_of(window)))
        again = window_of(document)
        assert instance_of(again) == document
        for name in ("gang_gpus", "finished_epochs", "regime_starts", "regime_epochs", "regime_epoch_s", "is_running"):
            assert np.array_equal(getattr(again, name), getattr(window, name)), name


def test_a_wide_job_is_refused_or_skipped_with_a_warning(tmp_path, capsys):
    document = copy.deepcopy(INSTANCE)
    document["gpus"] = 2
    path = tmp_path / "wide.json"
    path.write_text(json.dumps(document))
    assert "jobs[1].gpus = 4: wider than the cluster" in one_failure(capsys, ["plan", path], 2)
    assert main.run(["plan", str(path), "--skip-wide", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["skipped"] == [7]
    assert [job["id"] for job in json.loads(out)["jobs"]] == ["a", "c"]
    assert err.startswith("equipoise: warning: ")


# -- Bad input: 2 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("jobs", 2, "id"), "a", "jobs[2].id = 'a': the same id"),
        (("jobs", 0, "total_epochs"), 5, "jobs[0].total_epochs = 5.0: the regimes do not add up"),
        (("jobs", 0, "finished_epochs"), 6, "jobs[0].finished_epochs = 6.0: must not exceed total_epochs"),
        (("jobs", 1, "regimes"), [], "jobs[1].total_epochs = 1.0: the regimes do not add up"),
        (("jobs", 0, "regimes", 1, "epoch_s"), 0, "jobs[0].regimes[1].epoch_s = 0: must be greater than 0"),
        (("running",), ["zz"], "running[0] = 'zz': no job has this id"),
        (("round_s",), float("nan"), "round_s = nan: must be finite"),
        (("rounds",), 10**7, "rounds = 10000000: at most 10000"),
        (("jobs", 0, "prio"), 1, "jobs[0].prio = 1: unknown key"),
        (("jobs", 2, "regimes", 0, "epoch_s"), 1e12, "jobs[2].regimes[0]"),
    ],
)
def test_bad_instances_name_the_place(path, value, message, tmp_path, capsys):
    document = copy.deepcopy(INSTANCE)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    if value == 1e12:  # too long only together with a very short round
        document["round_s"] = 1e-5
    source = tmp_path / "bad.json"
    source.write_text(json.dumps(document))
    assert message in one_failure(capsys, ["plan", source, "--json"], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--time-limit", "nan"], "time_limit = nan: must be finite"),
        (["--rel-gap", "-1"], "rel_gap = -1.0: at least 0"),
        (["--backend", "highs", "--form", "cubic"], "form = 'cubic'"),
        (["--time-limit", "soon"], "--time-limit"),
        (["--fast"], "--fast"),
    ],
)
def test_bad_options_are_bad_input(arguments, message, instance, capsys):
    assert message in one_failure(capsys, ["plan", instance, *arguments], 2)


def test_missing_sources_and_commands_are_bad_input(tmp_path, capsys, monkeypatch):
    assert "no such file" in one_failure(capsys, ["plan", tmp_path / "none.json"], 2)
    assert "is a folder" in one_failure(capsys, ["plan", tmp_path], 2)
    assert "pln" in one_failure(capsys, ["pln"], 2)
    one_failure(capsys, ["plan"], 2)
    one_failure(capsys, ["bench"], 2)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "standard input: is empty" in one_failure(capsys, ["plan", "-"], 2)


def test_targets_are_refused_before_anything_is_solved(instance, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plan, "read_window", lambda *_, **__: pytest.fail("read before the targets were checked"))
    missing = tmp_path / "none" / "plan.json"
    assert "does not exist" in one_failure(capsys, ["plan", instance, "--out", missing], 2)
    assert "does not exist" in one_failure(capsys, ["plan", instance, "--html", missing], 2)
    assert "is a folder" in one_failure(capsys, ["plan", instance, "--out", tmp_path], 2)
    assert "would overwrite" in one_failure(capsys, ["plan", instance, "--out", instance], 2)
    same = tmp_path / "x"
    assert "both name" in one_failure(capsys, ["plan", instance, "--out", same, "--html", same], 2)


# -- No plan: 3; no backend: 4; ours: 1 --------------------------------------------------------------------------------


def test_no_plan_within_the_limit_is_3_and_still_has_a_status(tmp_path, capsys):
    source, out = tmp_path / "hard.json", tmp_path / "plan.json"
    source.write_text(json.dumps(instance_of(random_window(np.random.default_rng(0), jobs=60, gpus=16))))
    arguments = ["plan", str(source), "--backend", "highs", "--form", "time_indexed", "--time-limit", "0", "--json"]
    assert main.run([*arguments, "--out", str(out)]) == 3
    printed, told = capsys.readouterr()
    document = json.loads(printed)
    check_document("plan", document)
    assert document["termination"] == "NO_SOLUTION_FOUND"
    assert document["limit"] == "TIME"
    assert document["jobs"] is None
    assert document["objective"] is None
    assert json.loads(out.read_text()) == document
    assert told.startswith("equipoise: error: no plan after ")


def test_an_unknown_backend_is_4_and_the_nearest_is_named(instance, capsys):
    assert "did you mean 'highs'" in one_failure(capsys, ["plan", instance, "--backend", "hihgs"], 4)


def test_a_backend_that_cannot_run_here_is_4(instance, capsys, monkeypatch):
    from equipoise.solvers.backend import Availability
    from equipoise.solvers.registry import find_backend

    gone = Availability(usable=False, version="", reason="pip install highspy")
    monkeypatch.setattr(type(find_backend("highs")), "probe", lambda self: gone)
    assert "pip install highspy" in one_failure(capsys, ["plan", instance, "--backend", "highs"], 4)


def test_a_defect_is_one_line_and_a_traceback_on_request(instance, capsys, monkeypatch):
    def break_down(*given, **named):
        raise ZeroDivisionError("not\nexpected")

    monkeypatch.setattr(plan, "read_window", break_down)
    line = one_failure(capsys, ["plan", instance], 1)
    assert "unexpected ZeroDivisionError: not expected" in line
    monkeypatch.setenv("EQUIPOISE_TRACEBACK", "1")
    assert main.run(["plan", str(instance)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last)")
    assert err.splitlines()[-1].startswith("hint: ")


def test_an_interrupt_is_130_and_one_line(instance, capsys, monkeypatch):
    def interrupt(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(plan, "read_window", interrupt)
    assert main.run(["plan", str(instance)]) == 130
    assert capsys.readouterr() == ("", "equipoise: interrupted\n")


def test_escape_sequences_never_reach_the_terminal(tmp_path, capsys):
    document = copy.deepcopy(INSTANCE)
    document["jobs"][0]["id"] = "\x1b[2Jred[bold]\ud800"
    document["running"] = []
    source = tmp_path / "escape.json"
    source.write_text(json.dumps(document))
    assert main.run(["plan", str(source)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert r"\x1b[2Jred[bold]\ud800" in out
    document["running"] = ["\x1b[2J"]
    source.write_text(json.dumps(document))
    assert "\x1b" not in one_failure(capsys, ["plan", source], 2)


# -- As a process ------------------------------------------------------------------------------------------------------


def command(*arguments, **options):
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "equipoise", *arguments], stdout=pipe, stderr=pipe, env=environment(), **options
    )


def test_standard_input_in_and_json_alone_out():
    child = command("plan", "-", "--json", stdin=subprocess.PIPE)
    out, err = child.communicate(json.dumps(INSTANCE).encode())
    assert (child.returncode, err) == (0, b"")
    check_document("plan", json.loads(out))


def test_a_reader_that_leaves_is_met_with_silence(tmp_path):
    source = tmp_path / "many.json"
    source.write_text(json.dumps(instance_of(random_window(np.random.default_rng(0), jobs=2000, gpus=64))))
    child = command("plan", str(source), "--json")
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 141


def test_ctrl_c_during_a_solve_is_130(tmp_path):
    source = tmp_path / "hard.json"
    source.write_text(json.dumps(instance_of(random_window(np.random.default_rng(0), jobs=60, gpus=8))))
    reader, writer = os.pipe()
    # The command is interrupted once it has read some input and waits for the rest: past the imports, on any machine.
    child = command("plan", "-", stdin=reader)
    os.write(writer, source.read_bytes()[:100])
    unread = array.array("i", [100])
    while unread[0]:
        time.sleep(0.02)
        fcntl.ioctl(reader, termios.FIONREAD, unread)
    # Once only: a second signal would kill the interpreter while it ends, which takes long on a busy machine.
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    os.close(writer)
    os.close(reader)
    assert (child.returncode, out, err) == (130, b"", b"equipoise: interrupted\n")


# -- Small pieces ------------------------------------------------------------------------------------------------------


def test_bars_are_full_only_when_no_gpu_is_idle():
    bars = usage_bars([0, 1, 31, 32], 32, unicode=True)
    assert bars[0] == " "
    assert bars[1] == "▁"
    assert bars[2] == "▇"
    assert bars[3] == "█"
    assert usage_bars(list(range(33)), 32, unicode=False).isascii()
    heights = [" 12345678#".index(bar) for bar in usage_bars(list(range(33)), 32, unicode=False)]
    assert heights == sorted(heights)


def test_strips_and_ranges_say_when_a_job_runs():
    assert regime_strip([-1, 0, 0, 11, 40], unicode=True) == "·00b+"
    assert regime_strip([-1, 1], unicode=False) == ".1"
    assert ranges([]) == ""
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2 5 7-8"


def test_the_progress_line_shows_what_solve_reports(monkeypatch):
    window = window_of(INSTANCE)
    with SolveProgress(window) as progress:
        assert "no incumbent yet" in progress.line()
        result = eq.solve(window, backend="highs", on_progress=progress)
        progress(eq.HistoryPoint(0.1, result.objective, result.objective + 2 * window.gap_scale(0.0)))
        assert f"incumbent {result.objective:.6g}" in progress.line()
        assert "gap 2" in progress.line()


def test_the_progress_line_appears_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with SolveProgress(window_of(INSTANCE), quiet_s=0.0) as progress:
            if progress._timer is not None:
                progress._timer.join()
        assert ("solving" in stream.getvalue()) is shown
