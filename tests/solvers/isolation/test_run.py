"""A backend in a process of its own: the same answers, quickly, and nothing left behind."""

import ast
import contextlib
import gc
import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import misbehaving as bad
import numpy as np
import pytest
from patience import SOON_S

import equipoise as eq
from equipoise.solvers.isolation.memory import allowed_bytes, available_bytes, ended_by_limit
from equipoise.solvers.isolation.pool import WORKERS

SUPPORT = str(Path(bad.__file__).parent)
pytestmark = pytest.mark.skipif(os.name != "posix", reason="isolation needs a POSIX system")
Reason, Limit = eq.Reason, eq.Limit


def knapsack(n=20, integer=True, seed=1):
    rng = np.random.default_rng(seed)
    build = eq.ProgramBuilder(sense="max")
    take = build.add_columns("take", (n,), upper=1.0, integer=integer)
    build.add_rows("room", (2,), terms=[(np.arange(2)[:, None], take, rng.integers(1, 30, (2, n)))], upper=90)
    build.set_objective([(take, rng.integers(1, 30, n).astype(float))])
    return build.program()


def window():
    jobs = [
        eq.WindowJob(id=str(i), gpus=1 + i % 3, finished_epochs=1, total_epochs=6 + i, regimes=[eq.Regime(5 + i, 90.0)])
        for i in range(5)
    ]
    return eq.ScheduleWindow(jobs, gpus=4, rounds=6)


def seen(**options):
    """Return what a backend sees from within its process."""
    result = eq.solve(knapsack(), bad.Deeds(bad.look_around), isolate=True, **options)
    return ast.literal_eval(result.notes[0])


def children():
    """Return the processes that this one has started and that are left, zombies too, with their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


def alive(pid):
    """Whether any of its threads still runs: only when the last has ended are its files and sockets closed."""
    try:
        states = [
            (task / "stat").read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()
        ]
    except OSError:
        return Path(f"/proc/{pid}/task").exists() and alive(pid)  # one of them ended in between
    return any(state != "Z" for state in states)


def wait_until(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def temporary():
    """Return the directories of workers that are there now."""
    return set(Path(tempfile.gettempdir()).iterdir())


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes by Linux's /proc")


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture
def clean(own_temporary_directory):
    """Start without workers, and fail if a process, a directory or a descriptor is left once they are closed."""
    WORKERS.close()
    before = children(), temporary(), len(os.listdir("/proc/self/fd"))
    yield
    WORKERS.close()
    if len(os.listdir("/proc/self/fd")) != before[2]:
        gc.collect()  # only what waits for it may be open: with all tests collected it takes long
    assert (children(), temporary(), len(os.listdir("/proc/self/fd"))) == before


# -- The same answers --------------------------------------------------------------------------------------------------


def problem_of(kind):
    return window() if kind == "window" else knapsack(integer=kind == "MILP")


@pytest.mark.parametrize(
    ("name", "kind"),
    [(row.name, kind) for kind in ("LP", "MILP", "window") for row in eq.backends(problem_of(kind), usable=True)],
)
def test_the_result_is_the_same_isolated_and_not(name, kind):
    problem = problem_of(kind)
    plain = eq.solve(problem, name, rel_gap=1e-6)
    apart = eq.solve(problem, name, rel_gap=1e-6, isolate=True)
    assert apart.termination == plain.termination
    assert (apart.objective, apart.bound, apart.gap) == (plain.objective, plain.bound, plain.gap)
    assert (apart.backend, apart.version, apart.form) == (plain.backend, plain.version, plain.form)
    assert apart.notes == plain.notes
    if kind == "window":
        assert apart.plan.window is problem
        assert apart.plan.grants.tolist() == plain.plan.grants.tolist()
    else:
        assert apart.plan["take"].tolist() == plain.plan["take"].tolist()
    if plain.duals is not None:
        assert apart.duals["room"].tolist() == plain.duals["room"].tolist()
        assert apart.reduced_costs["take"].tolist() == plain.reduced_costs["take"].tolist()


def test_tangent_cuts_are_made_in_the_process_of_the_solver():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=[1.0, 4.0])
    build.add_rows("room", (1,), terms=[(0, x, 1.0)], upper=3.0)
    build.add_logs([2.0, 1.0], terms=[(np.arange(2), x, 1.0)], offsets=1.0)
    plain, apart = (eq.solve(build.program(), "highs", rel_gap=1e-6, isolate=isolate) for isolate in (False, True))
    assert apart.termination.reason is Reason.OPTIMAL
    assert (apart.objective, apart.bound, apart.notes) == (plain.objective, plain.bound, plain.notes)
    assert [point.bound for point in apart.history] == [point.bound for point in plain.history]


@pytest.mark.parametrize("name", ["lagrangian", "highs"])
def test_a_warm_start_travels(name):
    problem = window()
    plan = eq.solve(problem, "lagrangian").plan
    result = eq.solve(problem, name, isolate=True, warm_start=plan)
    assert any(note.startswith("warm start accepted") for note in result.notes)


def test_incumbents_are_streamed_and_kept():
    heard = []
    backend = bad.Deeds(bad.Says(1.0, 30.0), bad.Says(5.0, 20.0), bad.nap, bad.Says(6.0, 6.0), bad.segfault)
    result = eq.solve(knapsack(), backend, isolate=True, on_progress=heard.append)
    assert [(point.objective, point.bound) for point in heard] == [(1.0, 30.0), (5.0, 20.0), (6.0, 6.0)]
    assert heard[2].time - heard[1].time >= 0.3  # as they came, not all at the end
    assert list(result.history[:-1]) == heard


def test_real_incumbents_are_streamed():
    heard = []
    result = eq.solve(knapsack(40), "highs", isolate=True, on_progress=heard.append)
    assert result.termination.reason is Reason.OPTIMAL
    assert any(point.objective is not None and point.objective <= result.objective for point in heard)


@pytest.mark.parametrize("name", ["highs", "lagrangian"])
def test_a_time_limit_of_zero_is_an_ordinary_outcome(name):
    started = time.perf_counter()
    result = eq.solve(window(), name, isolate=True, time_limit=0.0)
    assert time.perf_counter() - started < SOON_S
    assert result.termination.reason in (Reason.NO_SOLUTION_FOUND, Reason.OPTIMAL, Reason.FEASIBLE)


def test_the_start_of_the_process_counts_against_the_limit(clean):
    left = seen(time_limit=10.0)["time_limit"]
    assert left < 10.0 - 0.02


# -- What travels, and what does not -----------------------------------------------------------------------------------


def test_errors_on_purpose_arrive_as_themselves():
    with pytest.raises(eq.LicenseLimit, match="3 variables, the licence allows 2"):
        eq.solve(knapsack(), bad.Deeds(bad.refuse), isolate=True)
    with pytest.raises(eq.InvalidInput, match="HiGHS does not take this option") as caught:
        eq.solve(knapsack(), "highs", isolate=True, backend_options={"highs": {"presolv": "on"}})
    assert caught.value.field == "backend_options['highs']['presolv']"
    assert caught.value.value == "on"
    with pytest.raises(eq.InvalidInput, match="no hooks here") as caught:
        eq.solve(knapsack(), bad.Deeds(bad.refuse_with_what_cannot_travel), isolate=True)
    assert "lambda" in caught.value.value


def test_every_error_of_the_library_survives_the_journey():
    result = eq.solve(knapsack(), "highs", time_limit=0.0)
    errors = [
        eq.InvalidInput("x", 3.0, "too large", index=(1, 2)),
        eq.NoSolution("no plan", result),
        eq.BackendNotFound("no backend"),
        eq.BackendUnavailable("not installed"),
        eq.LicenseLimit("too large"),
        eq.UnsupportedProblem("cannot state it"),
        eq.EquipoiseError("words"),
        eq.formulations.errors.UnknownOption("x", 1, "no option"),
    ]
    tree, found = [eq.EquipoiseError], set()
    while tree:
        found.add(tree[-1])
        tree.extend(kind for kind in tree.pop().__subclasses__() if kind.__module__ == "equipoise.formulations.errors")
    assert {type(error) for error in errors} == found
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert vars(again).keys() == vars(error).keys()


def test_what_cannot_be_loaded_elsewhere_is_refused_with_advice():
    class Local(bad.Deeds):
        pass

    class NoModule(bad.Deeds):
        pass

    NoModule.__module__, NoModule.__qualname__ = "__main__", "NoModule"
    for backend, why in (
        (Local(bad.sleep), "Can't pickle local object|Can't get local object"),
        (NoModule(bad.sleep), "it is defined in the script itself"),
        (bad.Deeds(lambda *_: None), "Can't pickle"),
    ):
        with pytest.raises(eq.InvalidInput, match=why) as caught:
            eq.solve(knapsack(), backend, isolate=True)
        assert "define it in a module that can be imported" in str(caught.value)
    with pytest.raises(eq.InvalidInput, match="backend_options"):
        eq.solve(knapsack(), bad.Deeds(bad.sleep), isolate=True, backend_options={"deeds": {"hook": lambda: None}})


def test_a_module_that_only_this_process_knows_is_refused(monkeypatch):
    module = type(sys)("only_here")
    exec("class Fake(Deeds):\n    pass\n", {"Deeds": bad.Deeds, "__name__": "only_here"}, vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(eq.InvalidInput, match="No module named 'only_here'"):
        eq.solve(knapsack(), module.Fake(bad.sleep), isolate=True)


def test_the_worker_sees_what_the_caller_sees(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_TEST", "first")
    there = seen()
    assert there["cwd"] == os.getcwd()
    assert (there["variable"], there["stdin"], there["problem"]) == ("first", "", "Program")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUIPOISE_TEST", "second")
    (tmp_path / "found_by_path.py").write_text(
        "import misbehaving\nclass Late(misbehaving.Deeds):\n    pass\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    later = seen(backend_options={"deeds": {"hook": 5}})
    assert later["pid"] == there["pid"]  # the same process follows
    assert (later["cwd"], later["variable"], later["hook"]) == (str(tmp_path), "second", {"hook": 5})
    late = importlib.import_module("found_by_path").Late(bad.look_around)
    monkeypatch.delenv("EQUIPOISE_TEST")
    result = eq.solve(knapsack(), late, isolate=True, warm_start={"take": np.zeros(20)})
    notes = ast.literal_eval(result.notes[0])
    assert notes["variable"] is None
    assert notes["start"] == [0.0] * 20


def test_the_worker_imports_no_more_than_it_needs(clean):
    assert seen()["modules"] == []


@pytest.mark.parametrize("field", ["grace_s", "memory_gb"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), "2", True])
def test_bounds_of_isolation_are_checked(field, value):
    with pytest.raises(eq.InvalidInput, match=field):
        eq.Isolation(**{field: value})


# -- Processes ---------------------------------------------------------------------------------------------------------


@linux
def test_a_worker_is_reused_and_nothing_is_left_of_it(clean):
    first = seen()["pid"]
    assert [seen()["pid"] for _ in range(3)] == [first] * 3
    assert len(children()) >= 1
    WORKERS.close()
    assert not alive(first)


@linux
def test_each_backend_has_a_worker_of_its_own(clean):
    pids = set()
    for name in ("one", "two", "one"):
        result = eq.solve(knapsack(), bad.Deeds(bad.look_around, name=name), isolate=True)
        pids.add(ast.literal_eval(result.notes[0])["pid"])
    assert len(pids) == 2


@linux
def test_two_threads_have_a_worker_each_and_one_is_kept(clean):
    pids = []

    def solve():
        result = eq.solve(knapsack(), bad.Deeds(bad.nap, bad.look_around), isolate=True)
        pids.append(ast.literal_eval(result.notes[0])["pid"])

    threads = [threading.Thread(target=solve) for _ in range(3)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - started < SOON_S
    assert len(set(pids)) == 3
    assert wait_until(lambda: sum(alive(pid) for pid in pids) == 1)
    assert alive(seen()["pid"])


@linux
@pytest.mark.parametrize("end", [bad.exit_at_once, bad.fail, bad.exhaust])
def test_a_worker_that_went_wrong_is_not_used_again(clean, end):
    first = seen()["pid"]
    eq.solve(knapsack(), bad.Deeds(end), isolate=eq.Isolation(memory_gb=0.25))
    assert not alive(first)
    assert seen()["pid"] != first


@linux
def test_a_worker_that_died_while_idle_is_replaced(clean):
    first = seen()["pid"]
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: not alive(first))
    assert seen()["pid"] != first


@linux
def test_a_worker_leaves_no_file(clean):
    result = eq.solve(knapsack(), bad.Deeds(bad.leave_files), isolate=True)
    left = Path(result.notes[0])
    assert left.exists()
    assert left.parent in temporary()  # in the worker's own directory, which `clean` looks for


@linux
def test_what_a_solver_has_started_ends_with_it(clean):
    def grandchildren():
        return [entry for entry in Path("/proc").iterdir() if _is_of_test(entry)]

    def _is_of_test(entry):
        with contextlib.suppress(OSError):
            return b"sleep\x001000" in (entry / "cmdline").read_bytes()
        return False

    result = eq.solve(knapsack(), bad.Deeds(bad.start_children, bad.nap, bad.exit_at_once), isolate=True)
    assert result.termination.reason is Reason.NUMERICAL
    assert wait_until(lambda: not grandchildren())


def test_a_thread_that_talks_after_the_answer_is_not_heard(clean):
    backend = bad.Deeds(bad.chatter, bad.nap, bad.look_around)
    first = ast.literal_eval(eq.solve(knapsack(), backend, isolate=True).notes[0])
    again = eq.solve(knapsack(), bad.Deeds(bad.nap, bad.look_around), isolate=True)
    assert ast.literal_eval(again.notes[0])["pid"] == first["pid"]
    assert len(again.history) == 1


def test_what_is_written_comes_out_where_the_caller_writes(capfd):
    for _ in range(2):  # the second time by a worker that has started before
        eq.solve(knapsack(), bad.Deeds(bad.write_and_print, bad.look_around), isolate=True)
        out, err = capfd.readouterr()
        assert sorted(out.split("\n")) == ["", "from print", "from printf", "from write"]
        assert err == "to stderr\n"


def test_a_log_goes_to_standard_output(capfd):
    eq.solve(knapsack(), "highs", isolate=True)
    assert capfd.readouterr().out == ""
    eq.solve(knapsack(), "highs", isolate=True, log=True)
    assert "HiGHS" in capfd.readouterr().out


def test_an_error_in_the_callers_progress_reaches_the_caller_and_ends_the_worker(clean):
    def refuse(point):
        raise KeyError(point.bound)

    first = seen()["pid"]
    with pytest.raises(KeyError, match=r"9\.0"):
        eq.solve(knapsack(), bad.Deeds(bad.swallow_errors, bad.sleep), isolate=True, on_progress=refuse)
    assert not alive(first)


# -- Callers of every kind ---------------------------------------------------------------------------------------------

SOLVE = """
import sys
sys.path.append({here!r})
import equipoise as eq, misbehaving as bad
build = eq.ProgramBuilder(sense="max")
take = build.add_binaries("take", (3,))
build.add_rows("room", (1,), terms=[(0, take, [4, 2, 2])], upper=5)
build.set_objective([(take, [5.0, 3.0, 3.0])])
program = build.program()
"""


def environment():
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": tempfile.gettempdir()}


def script(text):
    """Run a script in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", SOLVE.format(here=SUPPORT) + text]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process, seconds=20):
    out, err = process.communicate(timeout=seconds)
    assert err == ""
    assert process.returncode == 0
    return out


@pytest.mark.parametrize("closed", [[0], [1], [0, 1, 2]])
def test_a_caller_with_standard_streams_closed(closed, tmp_path):
    said = tmp_path / "said"
    text = f"""
result = eq.solve(program, bad.Deeds(bad.write_and_print, bad.look_around), isolate=True)
again = eq.solve(program, "highs", isolate=True, log=True)
open({str(said)!r}, "w").write(str((result.termination, again.objective)))
"""
    # Closed before Python starts, as a daemon's are: the next files opened take their numbers.
    shell = " ".join(["exec", '"$@"', *(f"{number}>&-" for number in closed)])
    command = ["/bin/sh", "-c", shell, "sh", sys.executable, "-W", "error", "-c", SOLVE.format(here=SUPPORT) + text]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    assert "6.0" in said.read_text()
    if closed == [0]:
        assert "from printf" in run.stdout


def test_a_caller_whose_stdout_is_no_file():
    out = finished(
        script("""
import io
sys.stdout = io.StringIO()  # as a notebook has it
result = eq.solve(program, "highs", isolate=True, log=True)
text, sys.stdout = sys.stdout.getvalue(), sys.__stdout__
print(result.objective, repr(text))
""")
    )
    assert "HiGHS" in out
    assert out.endswith("6.0 ''\n")


def test_a_caller_in_a_thread_and_one_that_forks():
    out = finished(
        script("""
import os, threading
def solve():
    print(eq.solve(program, "highs", isolate=True).objective, flush=True)
thread = threading.Thread(target=solve)
thread.start(); thread.join()
from equipoise.solvers.isolation.pool import WORKERS
before = {worker.process.pid for worker in WORKERS._living}
child = os.fork()
if child == 0:
    assert not WORKERS._living and not WORKERS._idle
    solve()
    assert before.isdisjoint(worker.process.pid for worker in WORKERS._living)
    WORKERS.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
solve()
assert {worker.process.pid for worker in WORKERS._living} == before
""")
    )
    assert out == "6.0\n" * 3


@linux
@pytest.mark.parametrize(("deed", "number"), [("spin", signal.SIGKILL), ("sleep", signal.SIGTERM)])
def test_a_caller_that_is_killed_takes_its_workers_along(deed, number):
    """Also one that holds Python's lock, in a solve without a limit."""
    before = temporary()
    process = script(f"""
def tell(point):
    from equipoise.solvers.isolation.pool import WORKERS
    print(*(worker.process.pid for worker in WORKERS._living), flush=True)
eq.solve(program, "highs", isolate=True)  # and an idle one
eq.solve(program, bad.Deeds(bad.ignore_signals, bad.Says(None, 9.0), bad.{deed}), isolate=True, on_progress=tell)
""")
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    process.send_signal(number)
    process.communicate(timeout=5)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))
    assert wait_until(lambda: temporary() == before)


@linux
def test_ctrl_c_ends_the_worker_and_raises():
    process = script("""
def tell(point):
    from equipoise.solvers.isolation.pool import WORKERS
    print(*(worker.process.pid for worker in WORKERS._living), flush=True)
try:
    eq.solve(program, bad.Deeds(bad.Says(None, 9.0), bad.spin), isolate=True, on_progress=tell)
except KeyboardInterrupt:
    from equipoise.solvers.isolation.pool import WORKERS
    print("interrupted", len(WORKERS._living))
""")
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert finished(process) == "interrupted 0\n"
    assert not alive(pid)


# -- Memory ------------------------------------------------------------------------------------------------------------


@linux
def test_the_memory_allowed_is_a_share_of_what_is_available():
    available = available_bytes()
    assert 0 < available <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert allowed_bytes(None) == pytest.approx(0.8 * available, rel=0.1)
    assert allowed_bytes(1.5) == 1_500_000_000


@linux
def test_whether_a_process_died_of_its_limit_is_told_where_it_can_be():
    ours = int(np.ceil(available_bytes() / 1e9 + 100)) * 10**9  # more than this process can have
    assert ended_by_limit(ours, ours)
    assert ended_by_limit(ours, int(0.8 * ours))
    assert not ended_by_limit(ours, int(0.5 * ours))
    assert not ended_by_limit(None, ours)
    assert not ended_by_limit(1000, 1000)  # less than this process itself: the kernel counts that in
