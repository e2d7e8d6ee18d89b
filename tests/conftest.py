"""Hypothesis profiles: how many examples a property is tried on, and never a deadline; and Ctrl-C for children."""

import os
import signal
import tempfile

from hypothesis import settings

# The same examples every time: a run fails for the change at hand, not by the luck of the draw. `explore` draws others.
settings.register_profile("dev", max_examples=10, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config):
    """Give each process of a parallel run a temporary folder of its own: some tests look for what is left behind."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="equipoise-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["TMPDIR"] = tempfile.tempdir = folder.name


# A suite that a script starts in the background ignores Ctrl-C, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
