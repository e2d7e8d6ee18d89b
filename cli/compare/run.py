"""Run several policies on one configuration, in parallel where joblib is installed, in order of completion."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from ...formulations.errors import EquipoiseError
from ...simulation.results.interrupt import OnStep
from ..simulate.config import SimulationConfig
from ..simulate.policy_spec import PolicySpec
from ..simulate.run import run_policy
from .comparison import Outcome


def workers_for(requested: int | None, policies: int) -> tuple[int, str]:
    """Return how many policies to run at once, and a note where that is fewer than could be."""
    if policies == 1 or requested == 1:
        return 1, ""
    if find_spec("joblib") is None:
        return 1, "one policy at a time: joblib is not installed (pip install 'equipoise[distributed]')"
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors if requested is None else requested, policies), ""


def run_policies(
    config: SimulationConfig, specs: Sequence[PolicySpec], *, workers: int, on_step: OnStep | None = None
) -> Iterator[tuple[PolicySpec, Outcome]]:
    """Yield each policy with its outcome, in order of completion; one that fails does not stop the others.

    One worker runs them in this process, one after the other, and alone calls `on_step`; more take that many processes.
    """
    if workers == 1:
        for spec in specs:
            yield spec, _attempt(config, spec, on_step)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered")
    with warnings.catch_warnings():
        # After Ctrl-C the cancellation is intended.
        warnings.filterwarnings("ignore", message=".*still being processed by the workers have been cancelled")
        yield from parallel(delayed(_attempt_in_worker)(config, spec) for spec in specs)


def _attempt_in_worker(config: SimulationConfig, spec: PolicySpec) -> tuple[PolicySpec, Outcome]:
    # Ctrl-C reaches every process of a terminal; the parent process ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return spec, _attempt(config, spec, None)


def _attempt(config: SimulationConfig, spec: PolicySpec, on_step: OnStep | None) -> Outcome:
    try:
        return run_policy(config, spec, on_step)
    except EquipoiseError as error:
        return error
