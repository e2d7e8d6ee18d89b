"""The arithmetic of all curves at once is that of single jobs, to the last bit."""

import numpy as np
from fluid_cases import random_case, random_config
from hypothesis import given
from hypothesis import strategies as st

from equipoise.simulation.fluid.arrays import Curves
from equipoise.simulation.fluid.job import fluid_jobs


@given(seed=st.integers(0, 2**32 - 1))
def test_caps_and_least_speeds_of_all_curves(seed):
    case, rng = random_case("wfq", seed), np.random.default_rng(seed)
    jobs = fluid_jobs(case.trace, case.speedups, case.rules)
    curves, levels = Curves(jobs), random_config(rng).cap_levels
    caps = curves.capped_gpus(levels)
    assert caps.tolist() == [[job.capped_gpus(level) for level in levels] for job in jobs]
    shares = np.append(rng.uniform(0.0, case.gpus, 3), float(case.gpus))
    gpus = np.minimum(shares, caps[:, :1])
    found = curves.least_speed(gpus)
    assert found.tolist() == [[job.least_speed(each) for each in row] for job, row in zip(jobs, gpus, strict=True)]
