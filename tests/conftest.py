"""Hypothesis profiles: how many examples a property is tried on, and never a deadline; and Ctrl-C for children."""

import os
import signal
import tempfile

import pytest
from hypothesis import settings

# The same examples every time: a run fails for the change at hand, not by the luck of the draw. `explore` draws others.
settings.register_profile("dev", max_examples=10, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


# Folders whose tests use the same compiled kernels, or start many processes. In a parallel run each group keeps to one
# process, which compiles the kernels once. The others are divided function by function: xdist counts all parts that it
# has given out whenever a test ends, which takes many seconds if each of 10,000 tests is a part.
GROUPS = {
    "window": {"window", "plan", "simulate", "compare", "shockwave"},
    "markets and shares": {"markets", "shares", "makespan", "assignment", "rounds", "certificates"},
    "fluid": {"fluid"},
    "delays": {"dally", "compiled"},
    "processes": {"isolation", "verification"},
}


def group_of(nodeid):
    """Return the group of a test; if it has none, its name without parameters."""
    folders = set(nodeid.partition("::")[0].split("/"))
    return next((group for group, members in GROUPS.items() if folders & members), nodeid.partition("[")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    # xdist 3.8 does not see its own marks of groups under pytest 9.
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Groups(config, log)


def pytest_collection_modifyitems(items):
    for item in items:
        if "/benchmarks/" in item.nodeid or "/experiments/" in item.nodeid:
            item.add_marker(pytest.mark.thorough)


def pytest_configure(config):
    """Give each process of a parallel run a temporary folder of its own: some tests look for what is left behind."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="equipoise-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["TMPDIR"] = tempfile.tempdir = folder.name


# A suite that a script starts in the background ignores Ctrl-C, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
