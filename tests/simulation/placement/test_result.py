"""Metrics of a placement result: queueing and communication of each job, their spread, and billed GPU-hours."""

import numpy as np
import pytest

from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster
from equipoise.simulation.network import TableSpeeds
from equipoise.simulation.network.workloads import draw_dally_jobs
from equipoise.simulation.placement import simulate_placement

CLUSTER = Cluster(gpus_by_type={"gpu": 64}, machines=8, racks=2)


@pytest.fixture(scope="module")
def result():
    trace = draw_dally_jobs(np.random.default_rng(4), jobs=60, gpus=CLUSTER.gpus)
    return simulate_placement(trace, make_policy("tiresias"), cluster=CLUSTER, speeds=TableSpeeds(cluster=CLUSTER))


def test_queueing_and_communication_of_each_job_are_columns(result):
    assert (result.waited_s > 0).any()
    assert (result.exposed_s > 0).any()
    assert result.jobs["waited_s"].tolist() == result.waited_s.tolist()
    assert result.jobs["exposed_s"].tolist() == result.exposed_s.tolist()
    # Without restarts, the time of a job is waiting, computation or exposed communication.
    computed_s = result.run_s - result.exposed_s
    assert result.waited_s + computed_s + result.exposed_s == pytest.approx(result.jct_s)


def test_the_spread_of_times_is_that_of_the_jobs(result):
    mask = result.trace.gang_gpus > 1
    for metrics, some in ((result.metrics, np.ones(60, dtype=bool)), (result.of(mask), mask)):
        for name in ("jct_s", "waited_s", "exposed_s"):
            values = np.sort(getattr(result, name)[some])
            assert metrics[f"avg_{name}"] == pytest.approx(values.mean())
            for word, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
                # Between the order statistics on both sides of the rank, in proportion.
                rank = share * (len(values) - 1)
                low = values[int(rank)]
                between = low + (values[min(int(rank) + 1, len(values) - 1)] - low) * (rank - int(rank))
                assert metrics[f"{word}_{name}"] == pytest.approx(between)
    assert result.of(mask)["avg_exposed_s"] > result.metrics["avg_exposed_s"]


def test_all_gpus_are_billed_until_the_last_job_ends(result):
    metrics = result.metrics
    assert metrics["billed_gpu_h"] == pytest.approx(64 * metrics["makespan_s"] / 3600)
    ran_h = float(result.gpu_s.sum()) / 3600
    assert metrics["utilisation"] == pytest.approx(ran_h / metrics["billed_gpu_h"])
    assert result.timers is None
