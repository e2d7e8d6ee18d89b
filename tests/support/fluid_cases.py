"""Random cases of the fluid engine, and PCS's recorded traces and runs, for tests."""

import csv
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from shared_data import DATA

from equipoise import WfqConfig
from equipoise.heuristics import make_policy, policies_of
from equipoise.simulation import Trace, read_pcs
from equipoise.simulation.fluid import FluidRules, Speedups

PCS = DATA / "pcs"
MODELS = ("a", "b", "c")
#: Names of `random_case` for the policies that the compiled loops run.
COMPILED = [*(name for name in policies_of("fluid") if make_policy(name, "fluid").rule is not None), "integral"]


def random_speedups(rng):
    """Return tables of up to 6 GPUs; some are linear, and some fall somewhere."""
    tables = {}
    for model in MODELS:
        gpus = int(rng.integers(1, 7))
        steps = rng.uniform(-0.2 if rng.random() < 0.3 else 0.0, 1.2, gpus - 1)
        tables[model] = np.arange(1.0, gpus + 1.0) if rng.random() < 0.3 else np.cumsum([1.0, *steps]).clip(0.3)
    return Speedups(tables=tables)


def random_trace(rng, jobs=25, *, whole=None):
    """Return a trace; in half of the cases all times are whole, and many are equal."""
    count = int(rng.integers(1, jobs))
    whole = rng.random() < 0.5 if whole is None else whole
    return Trace(
        job_id=rng.permutation(count).tolist(),
        model=rng.choice(MODELS, count).tolist(),
        gang_gpus=rng.integers(1, 8, count),
        arrival_s=rng.integers(0, 200, count) if whole else np.cumsum(rng.exponential(30.0, count)),
        size_s=rng.integers(1, 60, count) * 10.0 if whole else rng.lognormal(4.0, 1.5, count),
    )


def with_least_gpus(rng, trace, speedups, gpus):
    """Return a trace whose jobs need at least so many GPUs, as far as tables and cluster allow."""
    longest = np.minimum([len(speedups.tables[model]) for model in trace.model], gpus)
    return replace(trace, min_gpus=np.minimum(rng.integers(1, 5, len(trace)), np.minimum(trace.gang_gpus, longest)))


def random_config(rng, *, zeta=None):
    """Return one to four queues with random weights and cap."""
    finite = sorted({*rng.integers(20, 400, int(rng.integers(0, 4))).tolist()})
    weights = rng.integers(1, 10, len(finite) + 1).tolist()
    return WfqConfig(
        thresholds=[*map(float, finite), float("inf")],
        weights=[Fraction(weight, sum(weights)) for weight in weights],
        zeta=float(rng.choice([0.0, 0.3, 0.8, rng.random()])) if zeta is None else zeta,
        delta=float(rng.uniform(0.02, 0.5)),
    )


def random_case(name, seed):
    """Return trace, policy, cluster, speedups and rules; `name` is that of a policy, or "integral" for that of WFQ."""
    rng = np.random.default_rng(seed)
    trace, speedups, gpus = random_trace(rng), random_speedups(rng), int(rng.choice([1, 2, 3, 4, 8, 13]))
    options = {}
    if name in ("wfq", "integral"):
        options = {"config": random_config(rng), "integral": name == "integral"}
        options["quantum_s"] = float(rng.choice([50.0, 500.0]))
    if name == "themis":
        options = {"lease_s": float(rng.choice([5.0, 50.0, 600.0]))}
    rules = FluidRules(
        preemption_s=float(rng.choice([0.0, 0.0, 7.0])),
        size_error_pct=float(rng.choice([0.0, 0.0, 30.0])),
        seed=int(rng.integers(9)),
        microseconds=bool(rng.random() < 0.3),
        predict=bool(rng.random() < (0.1 if name == "integral" else 0.6)),
    )
    if rng.random() < 0.4:
        trace = with_least_gpus(rng, trace, speedups, gpus)
    policy = make_policy("wfq" if name == "integral" else name, "fluid", **options)
    return SimpleNamespace(trace=trace, policy=policy, gpus=gpus, speedups=speedups, rules=rules)


def recorded_policy(name):
    """Return the policy of a recorded run of PCS: FIFO, ..., MCS-CONFIG, or PMCS-CONFIG, the integral form."""
    kind, _, config = name.partition("-")
    if config:
        return make_policy("wfq", "fluid", config=PCS / "configs" / f"{config}.json", integral=kind == "PMCS")
    return make_policy(kind.lower(), "fluid")


def recorded_trace(name, jobs=None):
    """Return the first jobs of a trace of PCS."""
    trace = read_pcs(PCS / "traces" / f"trace_{name}.csv")
    return trace if jobs is None else trace.select(range(jobs))


def recorded_columns(path):
    """Return the columns of a recorded run as arrays; nan where a cell is empty."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}
