"""A toy engine and a toy policy of another distribution: a module and a row each, and everything works with them."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.heuristics import POLICIES
from equipoise.simulation import (
    ENGINES,
    Cluster,
    Engine,
    Profiles,
    SimulationInterrupted,
    SimulationResult,
    exclusive_s,
    generate_trace,
    simulate,
)
from equipoise.simulation.results.plots import gpu_shares, schedule_picture, utilisation_picture

# An engine in which GPUs can be divided: each job runs from when the policy starts it to its end, at the speed of its
# share of the GPUs it asks for.
ENGINE = """
from dataclasses import dataclass
import numpy as np
from equipoise.simulation import CallLog, Engine, Evidence, SimulationResult, exclusive_s
from equipoise.simulation.results.interrupt import play
from equipoise.simulation.results.timeline import Levels, StretchLog

ROW = Engine(name="toy", summary="jobs run to their ends on parts of GPUs", module="toy_engine", run="run",
             rules="ToyRules", sentence="with {rules.slack:g} GPUs of slack")


@dataclass(frozen=True, kw_only=True)
class ToyRules:
    slack: float = 0.0


def run(trace, policy, *, cluster, speeds, rules, on_step, record):
    return play(ToyRun(trace, policy, cluster, exclusive_s(trace, speeds), rules, record), len(trace), on_step)


class ToyRun:
    def __init__(self, trace, policy, cluster, work_s, rules, record):
        self.trace, self.policy, self.cluster, self.work_s, self.rules = trace, policy, cluster, work_s, rules
        self.waiting = np.argsort(trace.arrival_s, kind="stable").tolist()
        self.running, self.free, self.time_s, self.steps, self.ended = {}, cluster.gpus - rules.slack, 0.0, 0, 0
        self.start_s, self.end_s = np.full(len(trace), np.nan), np.full(len(trace), np.nan)
        self.held = np.zeros(len(trace))
        self.calls, self.levels, self.log, self.record = CallLog(), [], StretchLog(), record

    def step(self):
        if self.ended == len(self.trace):
            return False
        for job in [job for job, end_s in self.running.items() if end_s <= self.time_s]:
            self.log.stop(job, self.time_s)
            self.free += self.held[job]
            self.end_s[job] = self.running.pop(job)
            self.ended += 1
        arrived = [job for job in self.waiting if self.trace.arrival_s[job] <= self.time_s]
        started, wall_s = self.calls.timed(lambda: self.policy.start(self.trace, arrived, self.free))
        self.calls.record(self.steps, self.time_s, len(arrived), wall_s, "start", Evidence())
        for job, gpus in started.items():
            self.waiting.remove(job)
            self.start_s[job], self.held[job] = self.time_s, gpus
            self.free -= gpus
            self.running[job] = self.time_s + self.work_s[job] * self.trace.gang_gpus[job] / gpus
            if self.record:
                self.log.start(job, self.time_s, gpus)
        arrivals = [at_s for at_s in self.trace.arrival_s[self.waiting].tolist() if at_s > self.time_s]
        next_s = min([*self.running.values(), *arrivals], default=self.time_s)
        waiting = sum(self.trace.arrival_s[job] <= self.time_s for job in self.waiting)
        busy = float(self.held[list(self.running)].sum())
        self.levels.append((self.time_s, next_s, busy, len(self.running), waiting))
        self.time_s, self.steps = next_s, self.steps + 1
        return True

    def result(self):
        run_s = np.nan_to_num(self.end_s - self.start_s)
        return SimulationResult(
            engine="toy", policy=self.policy.name, trace=self.trace, cluster=self.cluster, rules=self.rules,
            start_s=self.start_s, end_s=self.end_s, run_s=run_s, gpu_s=run_s * self.held, exclusive_s=self.work_s,
            restarts=np.zeros(len(self.trace), dtype=np.int64),
            ended_by=np.where(np.isnan(self.end_s), "", "completed"), levels=Levels.of(self.levels),
            stretches=self.log.stretches(self.time_s) if self.record else None, solve_rows=tuple(self.calls.records))
"""
POLICY = '''
from equipoise.heuristics import PolicyEntry


class ToyFifo:
    """First come, first served, on all the GPUs a job asks for or on at least half of those left."""

    name, engine = "toy-fifo", "toy"

    def __init__(self, part: float = 0.5, interrupt_at: int = -1):
        self.part, self.left = part, interrupt_at

    def start(self, trace, waiting, free):
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt
        started = {}
        for job in waiting:
            gpus = min(float(trace.gang_gpus[job]), max(free * self.part, 0.25))
            if gpus > free:
                break
            started[job] = gpus
            free -= gpus
        return started


ROW = PolicyEntry(name="toy-fifo", engine="toy", description="arrival", module="toy_policy", maker="ToyFifo")
# Under a name that the rounds engine has too.
LAS = PolicyEntry(name="las", engine="toy", description="arrival too", module="toy_policy", maker="ToyFifo")
'''
ENTRY_POINTS = """[equipoise.engines]
toy = toy_engine:ROW
[equipoise.policies]
toy-fifo = toy_policy:ROW
toy-las = toy_policy:LAS
"""
TRACE = generate_trace(np.random.default_rng(0), num_jobs=12)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder as pip would make it, with the two modules and the entry points of their distribution."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "toy_engine.py").write_text(ENGINE)
    (folder / "toy_policy.py").write_text(POLICY)
    metadata = folder / "toy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture
def toy(installed, monkeypatch):
    """The modules of the engine and of the policy, imported as their own distribution's code would be."""
    # Read now, so that the tables of this process are those without the distribution.
    assert ("toy" in ENGINES, "toy-fifo" in POLICIES) == (False, False)
    monkeypatch.syspath_prepend(str(installed))
    import toy_engine
    import toy_policy

    yield toy_engine, toy_policy
    for name in ("toy_engine", "toy_policy"):
        sys.modules.pop(name)


def command(installed, *arguments, code=0):
    """Run the command where the toy distribution is installed; return standard output and error."""
    paths = [str(installed), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def commands(installed, *lines):
    """Run commands one after another in one process; return exit code, standard output and error of each."""
    script = """if True:
        import contextlib, io, json, sys
        from equipoise.cli.main import run
        for words in json.loads(sys.argv[1]):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(words)
            print(json.dumps([code, out.getvalue(), err.getvalue()]))
        """
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([[*map(str, words)] for words in lines])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_engine_is_short():
    assert len(ENGINE.strip().splitlines()) < 80


def test_an_engine_that_is_in_no_table_is_simulated(toy):
    engine, policy = toy
    cluster = Cluster(gpus_by_type={"gpu": 8}, gpus_per_machine=4)
    result = simulate(TRACE, policy.ToyFifo(), engine=engine.ROW, cluster=cluster, speeds=Profiles.builtin())
    assert type(result) is SimulationResult
    assert (result.engine, result.policy, result.cluster, result.gpus) == ("toy", "toy-fifo", cluster, 8)
    assert np.array_equal(result.exclusive_s, exclusive_s(TRACE, Profiles.builtin()))
    # The GPU-seconds of the work are those of the levels and of the stretches.
    work = float((result.exclusive_s * TRACE.gang_gpus).sum())
    levels, stretches = result.levels, result.stretches
    assert float(result.gpu_s.sum()) == pytest.approx(work)
    assert float((levels.gpus_busy * (levels.end_s - levels.start_s)).sum()) == pytest.approx(work)
    assert float((stretches.gpus * (stretches.end_s - stretches.start_s)).sum()) == pytest.approx(work)
    assert levels.gpus_busy.max() <= 8 + 1e-9
    assert result.metrics["makespan_s"] == result.end_s.max()
    assert set(result.tables()) == {"jobs", "levels", "solves"}
    assert result.solves.columns[0] == "step"
    wide = TRACE.gang_gpus > 1
    some = result.of(wide)
    assert some["jobs"] == wide.sum()
    assert some["avg_jct_s"] == result.jct_s[wide].mean()
    with pytest.raises(eq.InvalidInput, match="which = 'int64 of shape"):
        result.of(np.flatnonzero(wide))


def test_what_is_not_recorded_is_not_drawn(toy):
    engine, policy = toy
    arguments = {"engine": engine.ROW, "cluster": 8, "speeds": Profiles.builtin()}
    whole = simulate(TRACE, policy.ToyFifo(), **arguments)
    bare = simulate(TRACE, policy.ToyFifo(), **arguments, record=False)
    assert bare.stretches is None
    timed = ("solve_s", "slowest_solve_s")
    assert {k: v for k, v in bare.metrics.items() if k not in timed} == {
        k: v for k, v in whole.metrics.items() if k not in timed
    }
    with pytest.raises(eq.InvalidInput, match="record = False"):
        schedule_picture(bare)


def test_parts_of_gpus_are_drawn_as_bands(toy):
    engine, policy = toy
    result = simulate(TRACE, policy.ToyFifo(), engine=engine.ROW, cluster=8, speeds=Profiles.builtin())
    root = ElementTree.fromstring(schedule_picture(result))
    paths = {each.findtext(f"{SVG}title"): each.get("d") for each in root.iter(f"{SVG}path")}
    assert set(paths) == {f"job {name}" for name in TRACE.job_id}
    _, share = gpu_shares(result, float(result.end_s.max()))
    assert float(share.mean()) == pytest.approx(result.metrics["utilisation"])
    ElementTree.fromstring(utilisation_picture(result))


def test_ctrl_c_keeps_the_jobs_that_had_ended(toy):
    engine, policy = toy
    arguments = {"engine": engine.ROW, "cluster": 8, "speeds": Profiles.builtin()}
    whole = simulate(TRACE, policy.ToyFifo(), **arguments)
    with pytest.raises(SimulationInterrupted, match=r"of 12 jobs had ended after 15 steps") as caught:
        simulate(TRACE, policy.ToyFifo(interrupt_at=15), **arguments)
    ended = whole.end_s <= whole.levels.end_s[14]
    assert 0 < len(caught.value.jobs) < 12
    assert set(caught.value.jobs["job_id"]) <= set(whole.jobs[ended]["job_id"])
    assert len(caught.value.tables["levels"]) == len(caught.value.solves) == 15


def test_an_engine_or_policy_that_is_wrong_is_named(toy):
    engine, policy = toy
    arguments = {"cluster": 8, "speeds": Profiles.builtin()}
    with pytest.raises(eq.InvalidInput, match="engine = 'toy': the engines are rounds, placement"):
        simulate(TRACE, policy.ToyFifo(), **arguments)
    with pytest.raises(eq.InvalidInput, match="engine = 'round': did you mean 'rounds'"):
        simulate(TRACE, policy.ToyFifo(), engine="round", **arguments)
    with pytest.raises(eq.InvalidInput, match="rules = 'int': must be ToyRules"):
        simulate(TRACE, policy.ToyFifo(), engine=engine.ROW, rules=3, **arguments)
    assert isinstance(engine.ROW, Engine)


@pytest.mark.thorough
def test_the_command_simulates_draws_and_writes(installed, tmp_path):
    arguments = ["generated:9", "--policy", "toy-fifo:part=0.25", "--gpus", 4, "--rules", "slack=0.5"]
    shown, _ = command(installed, "simulate", *arguments, "--out", tmp_path, "--json", "--per-job")
    found = json.loads(shown)
    assert (found["engine"], found["policy"], found["options"]) == ("toy", "toy-fifo", {"part": 0.25})
    assert found["rules"] == {"slack": 0.5}
    assert len(found["jobs"]) == found["num_jobs"] == 9
    files = {"jobs.csv", "levels.csv", "solves.csv", "page.html", "summary.json"}
    assert {each.name for each in tmp_path.iterdir()} == files
    jobs = pd.read_csv(tmp_path / "jobs.csv")
    assert found["makespan_s"] == pytest.approx(jobs["end_s"].max())
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 5
    assert "with 0.5 GPUs of slack" in page
    assert "--engine toy" in page


def test_the_command_compares_in_processes_of_their_own(installed, tmp_path):
    pytest.importorskip("joblib")
    base = ["generated:6", "--gpus", 4, "--engine", "toy", "--workers", 2]
    shown, _ = command(installed, "compare", *base, "--html", tmp_path / "page.html", "--json")
    found = json.loads(shown)
    assert (found["engine"], found["asked"], found["failed"]) == ("toy", ["toy-fifo", "las"], {})
    first, second = found["policies"]
    assert first["makespan_s"] == second["makespan_s"] > 0
    assert "toy-fifo" in (tmp_path / "page.html").read_text()
    shown, _ = command(installed, "compare", *base[:-2], "--workers", 1, "--html", tmp_path / "page.html")
    assert "average JCT s" in shown


@pytest.mark.thorough
def test_an_interrupt_of_the_command_leaves_partial_files(installed, tmp_path):
    arguments = ["generated:9", "--gpus", 4, "--policy", "toy-fifo:interrupt_at=8", "--out", tmp_path]
    _, said = command(installed, "simulate", *arguments, code=130)
    names = ["jobs.partial.csv", "levels.partial.csv", "solves.partial.csv"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    assert f"of 9 jobs had ended after 8 steps; wrote {', '.join(names)} to {tmp_path}" in said


def test_the_command_knows_which_engine_has_which_policy(installed):
    told, refused, run = commands(
        installed,
        ["simulate", "--help"],
        ["simulate", "generated:3", "--policy", "toy-fifo", "--engine", "rounds"],
        ["simulate", "generated:3", "--gpus", 2, "--policy", "las", "--json"],
    )
    assert [told[0], refused[0], run[0]] == [0, 2, 0]
    shown = "".join(told[1].split())
    assert "wfq-operator,toy-fifo;" in shown
    assert "placement,fluid,toy." in shown
    assert "name = 'toy-fifo': it is a policy of toy; the policies of rounds are shockwave" in refused[2]
    assert json.loads(run[1])["engine"] == "rounds"


def test_a_row_that_does_not_load_is_left_out_with_a_warning(installed, tmp_path):
    metadata = tmp_path / "odd-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[equipoise.engines]\nodd = no_such_module:ROW\nwrong = json:dumps\nagain = toy_engine:ROW\n"
    )
    script = (
        f"import sys; sys.path[:0] = [{str(installed)!r}, {str(tmp_path)!r}]\n"
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    from equipoise.simulation import ENGINES\n"
        "    print(*ENGINES, *sorted(str(each.message) for each in said), sep='\\n')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "rounds",
        "placement",
        "fluid",
        "toy",
        "equipoise.engines: json:dumps is no Engine",
        "equipoise.engines: no_such_module:ROW does not load: ModuleNotFoundError: No module named 'no_such_module'",
        "equipoise.engines: toy_engine:ROW repeats 'toy'",
    ]


@pytest.mark.thorough
def test_an_option_that_two_engines_take_chooses_the_first_unless_one_is_named(installed, tmp_path, monkeypatch):
    (tmp_path / "wide_engine.py").write_text(
        "from dataclasses import replace\nfrom toy_engine import ROW\n"
        "ROW = replace(ROW, name='wide', options=('--machines', '--gpus-per-machine'))\n"
    )
    metadata = tmp_path / "wide-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wide\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[equipoise.engines]\nwide = wide_engine:ROW\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = ["simulate", "generated:3", "--gpus", 4, "--policy", "fifo", "--machines", 2]
    not_rounds, not_wide, *placed = commands(
        installed,
        [*arguments, "--engine", "rounds"],
        [*arguments, "--engine", "wide", "--racks", 1],
        *([*arguments, *more, "--json"] for more in ([], ["--engine", "placement"], ["--racks", 1])),
    )
    assert [code for code, _, _ in (not_rounds, not_wide, *placed)] == [2, 2, 0, 0, 0]
    assert "--machines: not an option of the engine rounds" in not_rounds[2]
    assert "it belongs to placement and fluid and wide." in not_rounds[2]
    assert "--racks: not an option of the engine wide" in not_wide[2]
    assert [json.loads(shown)["engine"] for _, shown, _ in placed] == ["placement"] * 3
