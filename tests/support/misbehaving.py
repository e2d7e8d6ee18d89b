"""Solvers as no caller wants them: a backend made of deeds, which a process of its own can load from this file."""

import ctypes
import itertools
import os
import signal
import sys
import threading
import time

import numpy as np

import equipoise as eq
from equipoise.solvers.backend import Answer, Availability, Backend, Claim


class Deeds(Backend):
    """A backend that does one thing after the other, and answers with the first that is not None.

    A deed is called with the task, the options and `on_progress`; what is not callable is the answer itself.
    """

    licence = "none"
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})

    def __init__(self, *deeds, name="deeds", formulations=()):
        self.name, self.deeds = name, deeds
        self.classes = frozenset() if formulations else frozenset(eq.ProblemClass)
        self.formulations = frozenset(formulations)

    def probe(self):
        return Availability(True, "1.0")

    def solve(self, task, options, on_progress):
        for deed in self.deeds:
            found = deed(task, options, on_progress) if callable(deed) else deed
            if found is not None:
                return found
        return None


# -- It does not come back ---------------------------------------------------------------------------------------------


def sleep(task, options, on_progress):
    time.sleep(1e6)


def spin(task, options, on_progress):
    sum(itertools.repeat(0))  # never leaves C, never gives up Python's lock


def ignore_signals(task, options, on_progress):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def start_children(task, options, on_progress):
    """Start two processes, as a solver behind a command line would; one has inherited whatever it could."""
    import subprocess

    subprocess.Popen(["sleep", "1000"])
    if os.fork() == 0:
        time.sleep(1e6)


# -- It dies -----------------------------------------------------------------------------------------------------------


def segfault(task, options, on_progress):
    ctypes.string_at(0)


def abort(task, options, on_progress):
    os.abort()


def exit_at_once(task, options, on_progress):
    os._exit(3)


def be_killed(task, options, on_progress):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(task, options, on_progress):
    sys.exit("goodbye")


def fail(task, options, on_progress):
    raise RuntimeError("singular basis")


def fail_strangely(task, options, on_progress):
    raise type("Local", (Exception,), {"__str__": lambda self: 1 / 0})()


def refuse(task, options, on_progress):
    raise eq.LicenseLimit("3 variables, the licence allows 2; use backend='highs'")


def refuse_with_what_cannot_travel(task, options, on_progress):
    raise eq.InvalidInput("backend_options['deeds']['hook']", lambda: None, "no hooks here")


def exhaust(task, options, on_progress):
    """Take memory and use it until there is none."""
    held = []
    while True:
        held.append(np.ones(1 << 22))  # 32 MiB


def exhaust_without_a_word(task, options, on_progress):
    """The same, by a solver that does not look at what it is given."""
    try:
        exhaust(task, options, on_progress)
    except MemoryError:
        os.abort()


# -- It talks ----------------------------------------------------------------------------------------------------------


class Says:
    """Reports what it was made with, once or again and again."""

    def __init__(self, objective, bound, incumbent=None, times=1):
        self.report, self.times = (objective, bound, incumbent), times

    def __call__(self, task, options, on_progress):
        for _ in range(self.times):
            on_progress(*self.report)


def chatter(task, options, on_progress):
    """Report without end, from a thread that outlives the answer."""

    def talk():
        while True:
            on_progress(None, 7.5, None)

    threading.Thread(target=talk, daemon=True).start()


def write_and_print(task, options, on_progress):
    """Say something by every way out: Python's, C's and the descriptor's."""
    print("from print")
    ctypes.CDLL(None).printf(b"from printf\n")
    os.write(1, b"from write\n")
    print("to stderr", file=sys.stderr)


def swallow_errors(task, options, on_progress):
    """Do as solvers do whose callbacks come from C."""
    for _ in range(3):
        try:
            on_progress(1.0, 9.0, None)
        except Exception:
            continue


def leave_files(task, options, on_progress):
    """Leave a file behind and say where."""
    import tempfile

    file, path = tempfile.mkstemp()
    os.close(file)
    return Answer(claim=Claim.STOPPED, limit=eq.Limit.METHOD, notes=(path, str(os.getpid())))


def look_around(task, options, on_progress):
    """Say what process this is and what it sees."""
    seen = {
        "pid": os.getpid(),
        "cwd": os.getcwd(),
        "variable": os.environ.get("EQUIPOISE_TEST"),
        "stdin": sys.stdin.read(),
        "modules": [name for name in ("highspy", "ortools", "pandas", "numba") if name in sys.modules],
        "problem": type(task.problem).__name__,
        "start": None if task.start is None else task.start.tolist(),
        "time_limit": options.time_limit,
        "hook": options.backend_options.get("deeds"),
    }
    return Answer(claim=Claim.STOPPED, limit=eq.Limit.METHOD, notes=(repr(seen),))


def nap(task, options, on_progress):
    time.sleep(0.4)
