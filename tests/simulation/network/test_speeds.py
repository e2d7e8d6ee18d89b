"""Speeds by the network in the placement engine: work, rates, exposed time, tiers, and bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics.placement.queue import FifoPolicy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.network import (
    AllReduceSpeeds,
    CommunicationTable,
    Network,
    PenaltySpeeds,
    TableSpeeds,
    placement_at,
    tier_latencies,
)
from equipoise.simulation.placement import Move, Start, simulate_placement

TABLE = CommunicationTable.builtin()
PAPER = Cluster(gpus_by_type={"gpu": 128}, gpus_per_machine=8, racks=2)
# Two racks of two machines of four GPUs.
SMALL = Cluster(gpus_by_type={"gpu": 16}, gpus_per_machine=4, racks=2)
KINDS = (TableSpeeds, AllReduceSpeeds, PenaltySpeeds)


def trace(*jobs):
    """Jobs of (model, GPUs, duration in seconds), all at 0."""
    models, gangs, durations = zip(*jobs, strict=True)
    return Trace(
        job_id=range(len(jobs)), model=models, gang_gpus=gangs, arrival_s=np.zeros(len(jobs)), duration_s=durations
    )


class Scripted:
    """Placements of job 0 at given times."""

    name, knows = "scripted", frozenset()

    def __init__(self, *gpu_ids):
        self.gpu_ids = gpu_ids

    def decide(self, state):
        for job in list(state.jobs.values()):
            yield (Start if job.run is None else Move)(job.trace_index, self.gpu_ids)


def run(speeds, job, gpu_ids, cluster=SMALL):
    return simulate_placement(trace(job), Scripted(*gpu_ids), cluster=cluster, speeds=speeds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gang", [1, 2, 4, 5, 8, 9, 16])
def test_a_job_alone_on_its_tightest_placement_takes_its_duration(kind, gang):
    speeds = kind(cluster=SMALL)
    found = simulate_placement(trace(("AlexNet", gang, 1000.0)), FifoPolicy(), cluster=SMALL, speeds=speeds)
    assert found.end_s[0] == pytest.approx(1000.0, rel=1e-12)
    assert found.tier[0] == (0 if gang <= 4 else 1 if gang <= 8 else 2)
    computed = 1000.0 * speeds.rate(speeds.alone("AlexNet", gang))
    assert speeds.work(trace(("AlexNet", gang, 1000.0)))[0] == pytest.approx(computed)
    assert found.exposed_s[0] == pytest.approx(1000.0 - computed)
    assert (found.exposed_s[0] == 0) == (gang == 1 or (kind is PenaltySpeeds and gang <= 4))


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_speed_is_computation_over_computation_and_communication(tier):
    gpu_ids = ((0, 1, 2, 3), (0, 1, 4, 5), (0, 1, 2, 15))[tier]
    scale = 2 * 3 / 4 / 1.75
    ratio, least = (TABLE.row("AlexNet").ratios[each] * scale for each in (tier, 0))
    found = run(TableSpeeds(cluster=SMALL), ("AlexNet", 4, 1000.0), gpu_ids)
    compute_s = 1000.0 / (1 + least)
    assert found.end_s[0] == pytest.approx(compute_s * (1 + ratio))
    assert found.exposed_s[0] == pytest.approx(compute_s * ratio)


def test_penalties_are_factors_on_the_run_time():
    speeds = PenaltySpeeds(1.25, 2.0, 5.0, cluster=SMALL)
    for gpu_ids, factor in (((0, 1), 1.25), ((0, 4), 2.0), ((0, 8), 5.0)):
        found = run(speeds, ("any model", 2, 100.0), gpu_ids)
        assert found.end_s[0] == pytest.approx(80.0 * factor)
        assert found.exposed_s[0] == pytest.approx(80.0 * (factor - 1.0))
    assert run(speeds, ("any model", 1, 100.0), (3,)).exposed_s[0] == 0.0
    # The least tier of 5 GPUs is a rack.
    assert run(speeds, ("any model", 5, 100.0), (0, 1, 2, 3, 15)).end_s[0] == pytest.approx(250.0)


def test_the_default_penalties_are_the_medians_of_the_table():
    factors = [[(1 + ratio) / (1 + row.machine) for ratio in row.ratios] for row in TABLE.rows]
    assert PenaltySpeeds(cluster=8).penalties == tuple(np.round(np.median(factors, axis=0), 2))


def test_the_all_reduce_model_counts_machines_and_racks_rounded_up():
    speeds = AllReduceSpeeds(cluster=SMALL)
    for gpu_ids, sizes in (
        ((0, 1, 2, 3), (4, 1, 1)),
        ((0, 1, 2, 4), (2, 2, 1)),
        ((0, 1, 8, 9), (2, 1, 2)),
        ((0, 1, 4, 8), (2, 2, 2)),
        ((0, 4, 8, 12), (1, 2, 2)),
    ):
        found = run(speeds, ("ResNet18", 4, 100.0), gpu_ids)
        model = speeds.models["ResNet18"]
        work = 100.0 / (1 + model.ratio((4, 1, 1)))
        assert found.end_s[0] == pytest.approx(work * (1 + model.ratio(sizes)))


@given(st.sampled_from(TABLE.models), st.integers(1, 16), st.integers(0, 2), st.sampled_from(KINDS))
def test_rates_are_shares_and_exposed_is_the_rest(model, gpus, tier, kind):
    speeds = kind(cluster=SMALL)
    found = placement_at(tier, model, gpus, SMALL)
    if found is not None:
        assert 0.0 < speeds.rate(found) <= 1.0
        assert speeds.exposed(found) == 1.0 - speeds.rate(found)
        assert speeds.rate(found) == pytest.approx(1.0 / (1.0 + speeds.ratio(found)))
        assert speeds.exposed(found) == 0.0 or gpus > 1


@given(st.integers(1, 16), st.integers(0, 2))
def test_placements_at_a_tier_are_those_that_exist(gpus, tier):
    found = placement_at(tier, "AlexNet", gpus, SMALL)
    shapes = set()
    for counts in np.ndindex(5, 5, 5, 5):
        if sum(counts) == gpus:
            machines, racks = sum(c > 0 for c in counts), (sum(counts[:2]) > 0) + (sum(counts[2:]) > 0)
            shapes.add((2 if racks == 2 else int(machines == 2), racks, machines))
    of_tier = sorted(shape for shape in shapes if shape[0] == tier)
    assert (found is None) == (not of_tier)
    if found is not None:
        assert (found.tier, found.racks, found.machines) == of_tier[0]


def test_times_of_an_iteration_by_tier():
    for row in TABLE.rows:
        found = tier_latencies(row.model, cluster=PAPER)
        assert set(found) == {"table", "all-reduce", "penalties"}
        compute_s = AllReduceSpeeds(cluster=PAPER).models[row.model].compute_s
        assert found["table"] == pytest.approx([compute_s * (1 + ratio) for ratio in row.ratios])
        assert found["penalties"] == pytest.approx([compute_s * factor for factor in (1.0, 1.12, 4.75)])
        # In one machine, the model has the measured time.
        assert found["all-reduce"][0] == pytest.approx(found["table"][0])
    one = Cluster(gpus_by_type={"gpu": 16}, gpus_per_machine=8)
    found = tier_latencies("VGG11", gpus=9, cluster=one)["table"]
    assert found[0] is None
    assert found[1] is not None
    assert found[2] is None


def test_sources_are_never_mixed():
    changed = CommunicationTable([replace(row, rack=77.0, network=99.0) for row in TABLE.rows])
    for tier in range(3):
        found = placement_at(tier, "ResNet18", 4, SMALL)
        modelled = [AllReduceSpeeds(None, table, cluster=SMALL).ratio(found) for table in (TABLE, changed)]
        assert modelled[0] == modelled[1] < 77.0
        assert TableSpeeds(changed, cluster=SMALL).ratio(found) != TableSpeeds(cluster=SMALL).ratio(found) or tier == 0


def test_the_all_reduce_model_is_read_with_measurements(tmp_path):
    link = {"topology": "ring", "bandwidth_gb_s": 10, "latency_ns": 100}
    (tmp_path / "own.csv").write_text("model,machine,rack,network,gradient_mb,layers,skew\nnet,0.5,1,2,30,4,0.3\n")
    path = tmp_path / "network.json"
    path.write_text(json.dumps({**dict.fromkeys(("machine", "rack", "network"), link), "table": "own.csv"}))
    found = AllReduceSpeeds.read(path, cluster=PAPER)
    assert list(found.models) == ["net"]
    assert found.ratio(found.alone("net", 8)) == pytest.approx(0.5)
    assert found.network.dimensions[0].bandwidth_gb_s == 10
    path.write_text(json.dumps({**dict.fromkeys(("machine", "rack", "network"), link), "table": 3}))
    with pytest.raises(InvalidInput, match="table = 3: must be the path of a CSV file"):
        AllReduceSpeeds.read(path, cluster=PAPER)


def test_a_network_of_another_cluster_is_refused():
    with pytest.raises(InvalidInput, match=r"network = '8 x 8 x 2': the cluster has 4 x 2 x 2"):
        AllReduceSpeeds(Network.builtin(PAPER), cluster=SMALL)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: TableSpeeds(3, cluster=8), "table"),
        (lambda: TableSpeeds(cluster=0), "gpus"),
        (lambda: TableSpeeds(cluster=Cluster(gpus_by_type={"gpu": 16}, machines=2, racks=0)), "racks"),
        (lambda: TableSpeeds(cluster=Cluster(gpus_by_type={"gpu": 16}, machines=3)), "machines"),
        (lambda: TableSpeeds(cluster=Cluster(gpus_by_type={"gpu": 16}, machines=4, racks=3)), "racks"),
        (lambda: AllReduceSpeeds(3, cluster=8), "network"),
        (lambda: AllReduceSpeeds(None, 3, cluster=8), "table"),
        (lambda: PenaltySpeeds(0.5, cluster=8), "machine"),
        (lambda: PenaltySpeeds(rack=float("nan"), cluster=8), "rack"),
        (lambda: PenaltySpeeds(network=float("inf"), cluster=8), "network"),
        (lambda: placement_at(3, "VGG11", 1, 8), "tier"),
        (lambda: placement_at(0, "VGG11", 9, 8), "gpus"),
        (lambda: tier_latencies("unknown", cluster=8), "model"),
    ],
)
def test_bad_arguments_are_refused(call, field):
    with pytest.raises(InvalidInput) as error:
        call()
    assert error.value.field == field


@pytest.mark.parametrize("kind", [TableSpeeds, AllReduceSpeeds])
def test_a_model_that_the_table_lacks_is_refused_before_the_run(kind):
    with pytest.raises(InvalidInput) as error:
        run(kind(cluster=SMALL), ("GPT", 2, 10.0), (0, 1))
    assert (error.value.field, error.value.index) == ("model", (0,))


def test_other_gpus_than_the_gang_and_no_durations_are_refused():
    with pytest.raises(InvalidInput, match="4 GPUs that the job asks for"):
        run(TableSpeeds(cluster=SMALL), ("VGG11", 4, 10.0), (0, 1))
    plain = Trace(job_id=[0], model=["VGG11"], gang_gpus=[1], arrival_s=[0.0], total_steps=[5])
    with pytest.raises(InvalidInput, match="no durations"):
        TableSpeeds(cluster=SMALL).work(plain)


def test_penalties_are_read_from_a_file(tmp_path):
    path = tmp_path / "penalties.json"
    path.write_text(json.dumps({"rack": 1.5, "machine": 1.25}))
    assert PenaltySpeeds.read(path, cluster=8).penalties == (1.25, 1.5, 4.75)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"zone": 2}', "penalties.json = 'zone': no such member"),
        ('{"rack": 0.5}', "rack = 0.5: at least 1"),
        ('{"rack": NaN}', "rack = nan: must be finite"),
        ('{"rack": 2, "rack": 3}', "rack = 3: is given twice"),
        ("[1, 2, 3]", "penalties.json = 'list': must be an object of JSON"),
        ('{"rack"', "is no JSON"),
    ],
)
def test_bad_files_of_penalties_are_refused(tmp_path, text, message):
    path = tmp_path / "penalties.json"
    path.write_text(text)
    with pytest.raises(InvalidInput) as error:
        PenaltySpeeds.read(path, cluster=8)
    assert message in str(error.value)
