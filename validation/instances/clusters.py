"""Random jobs on a small cluster that share GPUs in slots."""

from __future__ import annotations

import numpy as np

from ...formulations.gpu_sharing.cluster import GpuSharing

#: Gang sizes and how often each is drawn, where the cluster has so many GPUs.
GANGS, GANG_SHARES = (1, 2, 4), (0.5, 0.3, 0.2)


def random_cluster(
    rng: np.random.Generator,
    *,
    jobs: int = 6,
    gpus: int = 4,
    most_slots: int = 6,
    last_arrival: int = 5,
    weighted: bool = False,
) -> GpuSharing:
    """Draw jobs of 1 to `most_slots` whole slots, with arrivals from 0 to `last_arrival` and ratios from 1 to 2.

    All are uniform; ratios have two digits, each job its own beside each other one. The first job arrives in slot 0.
    Gangs of 1, 2 and 4 GPUs are drawn at 5:3:2, up to the GPUs of the cluster. Weights are whole, from 1 to 5.
    """
    fit = [size <= gpus for size in GANGS]
    shares = np.where(fit, GANG_SHARES, 0.0)
    arrivals = rng.integers(0, last_arrival + 1, jobs)
    return GpuSharing(
        work_slots=rng.integers(1, most_slots + 1, jobs).astype(np.float64),
        gang_gpus=rng.choice(GANGS, size=jobs, p=shares / shares.sum()),
        gpus=gpus,
        ratios=np.round(rng.uniform(1.0, 2.0, (jobs, jobs)), 2),
        arrival_slots=arrivals - arrivals.min(),
        weights=rng.integers(1, 6, jobs).astype(np.float64) if weighted else None,
    )
