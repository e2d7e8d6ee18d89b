"""Random cases of delay scheduling: traces, clusters, speeds, rules and policies, in which ties are frequent."""

from types import SimpleNamespace

import numpy as np

from equipoise import EquipoiseError
from equipoise.formulations.search.delay_timers import DelayTimers
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.network import TableSpeeds
from equipoise.simulation.placement import DurationSpeeds, PlacementRules, simulate_placement

#: Policies that the compiled loops of the placement engine run.
POLICIES = ("dally", "dally-manual", "dally-nowait", "dally-consolidated")
MODELS = ("VGG11", "ResNet50", "BERT-large")
#: Columns of a result, and its parts.
COLUMNS = (
    "start_s", "end_s", "run_s", "gpu_s", "exclusive_s", "held_s", "exposed_s", "shared_gpu_s", "restarts", "ended_by",
    "machines", "tier", "preemptions", "moves",
)  # fmt: skip
PARTS = ("levels", "stretches", "timers")


class SpreadSpeeds(DurationSpeeds):
    """Speeds that fall, and communication that rises, with each machine and rack."""

    def rate(self, run):
        return super().rate(run) / (1.0 + 0.07 * run.machines + 0.3 * run.racks)

    def exposed(self, run):
        return 1.0 - 1.0 / (1.0 + 0.07 * run.machines * (1 + run.trace_index % 3) + 0.3 * run.racks)


def random_cluster(rng):
    """Return a cluster with or without machines and racks."""
    size, machines, racks = int(rng.choice([1, 2, 3, 4, 8])), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    kind = rng.integers(5)
    if kind == 0:
        return Cluster.of(size * machines)
    if kind == 1:
        return Cluster(gpus_by_type={"gpu": size * machines}, gpus_per_machine=size)
    return Cluster(gpus_by_type={"gpu": size * machines * racks}, gpus_per_machine=size, racks=racks)


def random_trace(rng, gpus, *, jobs=40):
    """Return a trace; in half of the cases all times are whole, and many are equal."""
    count, whole = int(rng.integers(1, jobs)), rng.random() < 0.5
    widest = int(rng.choice([1, 2, gpus, gpus]))
    hours = rng.choice([0.0, 0.5, 6.0, 24.0])
    return Trace(
        job_id=rng.permutation(count).tolist(),
        model=rng.choice(MODELS, count).tolist(),
        gang_gpus=np.minimum(rng.choice([1, 1, 2, 4, 8, int(rng.integers(1, widest + 1)), widest], count), gpus),
        arrival_s=rng.integers(0, 5, count) * 1800.0 * hours if whole else rng.uniform(0.0, 3600.0 * hours, count),
        duration_s=rng.integers(1, 20, count) * 900.0 if whole else rng.lognormal(8.5, 1.2, count),
    )


def random_options(name, rng):
    """Return options of a policy."""
    options = {
        "lease_s": float(rng.choice([1200.0, 3600.0, 2000.7, np.inf])),
        "offer_s": rng.choice([None, None, 300.0, 777.1, 3600.0]),
        "keep": bool(rng.random() < 0.6),
    }

    def pair(*values):
        return tuple(float(value) for value in sorted(rng.choice(values, 2)))

    if name == "dally-manual" and rng.random() < 0.9:
        seconds = (0.0, 100.0, 1800.0, 4000.5, 20000.0, np.inf)
        by_demand = {int(demand): pair(*seconds)[:: rng.choice([1, -1])] for demand in rng.integers(1, 12, 4)}
        machine_s, rack_s = pair(*seconds)
        options["timers"] = DelayTimers(machine_s=machine_s, rack_s=rack_s, by_demand=by_demand)
    if name == "dally":
        finite = options["lease_s"] < np.inf
        options["preset"] = str(rng.choice(["paper", "paper", "released"])) if finite else "paper"
        options["history_s"] = float(rng.choice([1800.0, 20000.0, 3e5])) if options["preset"] == "paper" else None
        if rng.random() < 0.7:
            options["ddof"] = int(rng.integers(2))
            options["floor_s"], options["cap_s"] = pair(0.0, 50.0, 700.0), pair(2000.0, 9000.0, np.inf)
            options["least_wait_s"] = float(rng.choice([0.0, 1.0, 900.0]))
            options["empty_s"] = pair(0.0, 300.0, 3600.0, 1e5, np.inf)
    return options


def random_case(name, seed):
    """Return trace, policy, and the arguments of `simulate_placement` by name."""
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng)
    kinds = (DurationSpeeds(float(rng.choice([1.0, 1.5]))), SpreadSpeeds(1.1), TableSpeeds(cluster=cluster))
    rules = PlacementRules(
        jobs_per_gpu=int(rng.integers(1, 3)),
        checkpoint_s=float(rng.choice([0.0, 0.0, 30.0, 200.0])),
        checkpoint_s_per_gpu=float(rng.choice([0.0, 1.0, 3.3])),
        restart_s=float(rng.choice([0.0, 0.0, 10.0, 150.0])),
        most_steps=3000,
    )
    arguments = {"cluster": cluster, "speeds": kinds[rng.integers(3)], "rules": rules}
    policy = make_policy(name, "placement", **random_options(name, rng))
    return SimpleNamespace(trace=random_trace(rng, cluster.gpus), policy=policy, arguments=arguments)


def outcome(case, **options):
    """Return the result of a case, or the message of the error with which it ends."""
    try:
        return simulate_placement(case.trace, case.policy, **case.arguments, **options)
    except EquipoiseError as error:
        return str(error)


def assert_equal(one, other):
    """Compare two outcomes to the last bit."""
    if isinstance(one, str):
        assert one == other
        return
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name, strict=True)
    for part in PARTS:
        mine, its = getattr(one, part), getattr(other, part)
        assert (mine is None) == (its is None), part
        for name in () if mine is None else mine.__dataclass_fields__:
            values = getattr(mine, name), getattr(its, name)
            if any(value is not None for value in values):
                np.testing.assert_array_equal(*values, err_msg=f"{part}.{name}", strict=True)
