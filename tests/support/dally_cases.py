"""Cases of the policies of Dally: small simulations of 2 racks of 2 machines of 2 GPUs, and drawn ones."""

import math

from hypothesis import strategies as st

from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import PlacementRules, simulate_placement

CLUSTER = Cluster(gpus_by_type={"gpu": 8}, gpus_per_machine=2, racks=2)
ENDLESS = math.inf


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


def play(jobs, policy, *, cluster=CLUSTER, speeds=None, models=None, compiled=False, **rules):
    """Simulate jobs (demand, arrival, duration)."""
    demands, arrivals, durations = zip(*jobs, strict=True)
    trace = Trace(
        job_id=list(range(len(jobs))), model=models or ["m"] * len(jobs), gang_gpus=demands, arrival_s=arrivals,
        duration_s=durations,
    )  # fmt: skip
    return simulate_placement(
        trace, policy, cluster=cluster, speeds=speeds or TierSpeeds(), rules=PlacementRules(**rules), compiled=compiled
    )


def rows(result, *jobs):
    """Return the stretches of these jobs, or of all, as (job, start, end, GPUs), by start."""
    found = result.stretches
    gpus = [tuple(ids.tolist()) for ids in found.ids()]
    listed = zip(found.start_s.tolist(), found.trace_index.tolist(), found.end_s.tolist(), gpus, strict=True)
    return [(job, start, end, gpus) for start, job, end, gpus in sorted(listed) if not jobs or job in jobs]


# -- Drawn cases -----------------------------------------------------------------------------------------------------

MODELS = {
    "light": [0.0, 0.0, 0.0],
    "even": [0.1, 0.5, 0.75],
    "heavy": [0.5, 0.5, 0.8],
    "skewed": [0.25, 0.75, 0.75],
}


@st.composite
def setups(draw):
    """Return the arguments of a simulation, but for the policy."""
    size, per_rack, racks = draw(st.sampled_from([(1, 3, 2), (2, 2, 2), (4, 1, 2), (2, 3, 1), (2, 2, 3), (4, 2, 2)]))
    cluster = Cluster(gpus_by_type={"gpu": size * per_rack * racks}, gpus_per_machine=size, racks=racks)
    count = draw(st.integers(1, 12))

    def listed(strategy):
        return draw(st.lists(strategy, min_size=count, max_size=count))

    demands = st.sampled_from([1, 1, 1, 2, 2, 3, 4, 6, 8, 12]).map(lambda demand: min(demand, cluster.gpus))
    trace = Trace(
        job_id=[f"job-{index}" for index in range(count)],
        model=listed(st.sampled_from(sorted(MODELS))),
        gang_gpus=listed(demands),
        arrival_s=listed(st.sampled_from([0.0, 0.0, 10.0, 25.0, 31.4, 77.7, 120.0])),
        duration_s=listed(st.sampled_from([5.0, 20.0, 33.3, 60.0, 150.0])),
    )
    rules = PlacementRules(
        checkpoint_s_per_gpu=draw(st.sampled_from([0.0, 1.0])), restart_s=draw(st.sampled_from([0.0, 3.0]))
    )
    return {"trace": trace, "cluster": cluster, "speeds": TierSpeeds(**MODELS), "rules": rules}


TIMERS_S = st.sampled_from([0.0, 5.0, 15.0, 40.0, 100.0, math.inf])


@st.composite
def policies(draw):
    """Return a policy with the timers by which it is checked."""
    # A lease is longer than the costs of a start on 12 GPUs: jobs make progress in each.
    options = {"lease_s": draw(st.sampled_from([20.0, 30.0, 45.5])), "offer_s": draw(st.sampled_from([None, 5.0, 7.3]))}
    options["keep"] = draw(st.booleans())
    name = draw(st.sampled_from(["dally", "dally", "dally-manual", "dally-nowait", "dally-consolidated"]))
    if name == "dally-manual":
        pair = draw(TIMERS_S), draw(TIMERS_S)
        policy = make_policy(name, machine_s=pair[0], rack_s=pair[1], **options)
        return policy, pair
    if name == "dally":
        more = {
            "preset": draw(st.sampled_from(["paper", "released"])),
            "history_s": draw(st.sampled_from([546.0, 600.0])),
            "least_wait_s": draw(st.sampled_from([0.0, 1.0])),
            "empty_s": draw(st.sampled_from([(0.0, 0.0), (20.0, 50.0), (math.inf, math.inf)])),
        }
        policy = make_policy(name, **options, **more)
        return policy, policy.settings
    policy = make_policy(name, **options)
    return policy, (0.0, 0.0) if name == "dally-nowait" else (math.inf, math.inf)
