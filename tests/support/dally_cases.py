"""Small simulations of the policies of Dally: 2 racks of 2 machines of 2 GPUs, and jobs whose speeds are set by hand."""

from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import PlacementRules, simulate_placement

CLUSTER = Cluster(gpus_by_type={"gpu": 8}, gpus_per_machine=2, racks=2)
# Longer than any run of these tests: a lease without an end.
AGES = 1e9


class TierSpeeds:
    """Speeds by tier: durations are run times without communication, `exposed` its share of the time in each tier.

    A model has its own shares in `of_model`, with the machine, the rack and the network in this order.
    """

    def __init__(self, *exposed, **of_model):
        self.shares, self.of_model = exposed or (0.0, 0.0, 0.0), of_model

    def work(self, trace):
        return trace.duration_s

    def exposed(self, run):
        return self.of_model.get(run.model, self.shares)[run.tier]

    def rate(self, run):
        return 1.0 - self.exposed(run)


def play(jobs, policy, *, cluster=CLUSTER, speeds=None, models=None, **rules):
    """Simulate jobs (demand, arrival, duration)."""
    demands, arrivals, durations = zip(*jobs, strict=True)
    trace = Trace(
        job_id=list(range(len(jobs))), model=models or ["m"] * len(jobs), gang_gpus=demands, arrival_s=arrivals,
        duration_s=durations,
    )  # fmt: skip
    rules = PlacementRules(**rules)
    return simulate_placement(trace, policy, cluster=cluster, speeds=speeds or TierSpeeds(), rules=rules)


def rows(result, *jobs):
    """Return the stretches of these jobs, or of all, as (job, start, end, GPUs), by start."""
    found = result.stretches
    gpus = [tuple(ids.tolist()) for ids in found.ids()]
    listed = zip(found.start_s.tolist(), found.trace_index.tolist(), found.end_s.tolist(), gpus, strict=True)
    return [(job, start, end, gpus) for start, job, end, gpus in sorted(listed) if not jobs or job in jobs]
