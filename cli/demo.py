"""`equipoise demo`: a generated cluster, planned, from the workload to the page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..formulations.checks import as_integer
from .errors import CommandError
from .files import check_target
from .options import deferred
from .plan.command import plan_window
from .snapshot import window_of_states

# The plan is made when this share of the jobs has arrived, so that the cluster is busy and more are to come.
_ARRIVED = 0.8


@deferred
def demo_command(
    jobs: Annotated[int, typer.Option(help="Jobs to generate.")] = 60,
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")] = 32,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 0,
    html: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("demo.html"),
) -> int:
    """Plan a generated cluster, print the plan and write it as a page."""
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
    return plan_window(window, html=html, time_limit=15.0, rel_gap=1e-4)
