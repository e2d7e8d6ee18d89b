"""Pyomo's solver plugins, run without leaving files, messages or warnings behind."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any


class SolverFailed(Exception):  # noqa: N818 - said of a solver, not of us
    """A solver's program ended with an error; the text is its message."""


def run_plugin(plugin: Any, model: Any, folder: Path, **keywords: Any) -> Any:
    """Run one of Pyomo's plugins on a model; return its results, not yet loaded into the model.

    Parameters
    ----------
    folder : Path
        Folder for the files of Pyomo and the solver.
    **keywords
        Arguments of the plugin's `solve`.

    Raises
    ------
    SolverFailed
        If the program ended with an error.
    subprocess.TimeoutExpired
        If Pyomo ended the program, which it does about a second after the limit it was given.
    """
    from pyomo.common.errors import ApplicationError
    from pyomo.common.log import LoggingIntercept
    from pyomo.common.tempfiles import TempfileManager

    captured, before = StringIO(), TempfileManager.tempdir
    # Pyomo has one stack of temporary files; entries that an exception leaves are dropped with this context.
    with LoggingIntercept(captured, "pyomo"), TempfileManager:
        TempfileManager.tempdir = str(folder)
        try:
            return plugin.solve(model, load_solutions=False, **keywords)
        except ApplicationError as error:
            raise SolverFailed(captured.getvalue() or str(error)) from error
        finally:
            TempfileManager.tempdir = before


def load(model: Any, results: Any) -> None:
    """Load the solution of Pyomo's results into the model."""
    from pyomo.common.log import LoggingIntercept

    with LoggingIntercept(StringIO(), "pyomo"):  # it warns of every solution that is not optimal
        model.solutions.load_from(results)


@contextmanager
def scratch(log: bool) -> Iterator[Path]:
    """Yield a folder for temporary files; keep plugins from printing, unless the log is wanted."""
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        if log:
            yield Path(folder)
        else:
            with redirect_stdout(StringIO()):
                yield Path(folder)


@cache
def stated_version(path: str, changed: int) -> str:
    """Return the version that a program states; it is cached until its file changes."""
    switch = "-quit" if Path(path).stem == "cbc" else "--version"
    try:
        completed = subprocess.run([path, switch], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"\d+(\.\d+)+", completed.stdout)
    return found[0] if found else ""
