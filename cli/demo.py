"""`equipoise demo`: the main job on a generated cluster, from workload to page."""

from __future__ import annotations

import sys
from pathlib import Path

from ..formulations.checks import as_integer
from .errors import CommandError
from .files import check_target
from .plan.command import plan_window
from .snapshot import window_of_states

# The cluster is looked at when this share of the jobs has arrived; the rest only keep the arrivals going.
_ARRIVED = 0.8


def demo(*, jobs: int, gpus: int, seed: int, html: Path) -> int:
    """Generate `jobs` jobs, look at the cluster while they run, plan the next rounds, print and write the page."""
    import numpy as np

    from ..simulation import Profiles, generate_trace, snapshot

    check_target("--html", html)
    as_integer("jobs", jobs, minimum=1, maximum=100_000)
    as_integer("seed", seed, minimum=0)
    profiles = Profiles.builtin()
    trace = generate_trace(np.random.default_rng(seed), num_jobs=jobs, profiles=profiles)
    at_s = float(np.quantile(np.asarray(trace.arrival_s, dtype=np.float64), _ARRIVED))
    states = snapshot(trace, at_s=at_s, gpus=gpus, profiles=profiles)
    if not states:
        raise CommandError("every generated job had finished", "try more --jobs or fewer --gpus.")
    sys.stdout.write(
        f"A generated workload of {jobs} jobs (seed {seed}) on {gpus} GPUs; {len(states)} are unfinished after "
        f"{at_s / 3600:.1f} hours.\nThe plan of their next 20 rounds of 120 s:\n\n"
    )
    sys.stdout.flush()
    window = window_of_states(states, "restatement", gpus, 20, 120.0, skip_wide=True)
    return plan_window(
        window, backend="auto", form=None, time_limit=15.0, rel_gap=1e-4, out=None, html=html, as_json=False
    )
