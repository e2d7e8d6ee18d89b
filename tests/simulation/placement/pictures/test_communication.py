"""Communication of a job over time: its share follows the placements, and the picture has gaps where the job waits."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.network import PenaltySpeeds, TableSpeeds
from equipoise.simulation.placement import (
    Start,
    Stop,
    Wake,
    communication_picture,
    exposed_shares,
    simulate_placement,
)

CLUSTER = Cluster(gpus_by_type={"gpu": 8}, machines=4, racks=2)
SVG = "{http://www.w3.org/2000/svg}"


class Script:
    """Policy that places job 0 on a machine, then at once on a rack, and after a pause across racks."""

    name, engine, knows = "script", "placement", frozenset()

    def decide(self, state):
        if state.time_s == 0:
            yield Start(0, (0, 1))
            yield Wake(100.0)
        elif state.time_s == 100:
            yield Stop(0)
            yield Start(0, (0, 2))
            yield Wake(250.0)
        elif state.time_s == 250:
            yield Stop(0)
            yield Wake(400.0)
        elif state.time_s == 400:
            yield Start(0, (0, 4))


@pytest.fixture(scope="module")
def speeds():
    return {"table": TableSpeeds(cluster=CLUSTER), "penalties": PenaltySpeeds(cluster=CLUSTER)}


@pytest.fixture(scope="module")
def result(speeds):
    trace = Trace(job_id=["a<b"], model=["AlexNet"], gang_gpus=[2], arrival_s=[0.0], duration_s=[300.0])
    return simulate_placement(trace, Script(), cluster=CLUSTER, speeds=speeds["table"])


def test_the_share_follows_the_placements(result, speeds):
    shares = exposed_shares(result, 0, speeds["table"])
    assert shares.start_s.tolist() == [0.0, 100.0, 400.0]
    assert shares.end_s.tolist() == [100.0, 250.0, result.end_s[0]]
    # Measured on 8 GPUs: .02, .13 and 1.00; two GPUs send 1 / 1.75 of the data.
    ratios = np.array([0.02, 0.13, 1.0]) / 1.75
    assert shares.share == pytest.approx(ratios / (1 + ratios))
    # Under the speeds of the run, the shares add up to the exposed communication of the job.
    assert shares.share @ (shares.end_s - shares.start_s) == pytest.approx(result.exposed_s[0])
    other = exposed_shares(result, 0, speeds["penalties"])
    assert other.start_s.tolist() == shares.start_s.tolist()
    assert other.share.tolist() != shares.share.tolist()


def test_the_picture_has_a_line_for_each_speeds_and_a_gap_where_the_job_waits(result, speeds, tmp_path):
    path = tmp_path / "job.svg"
    svg = communication_picture(result, 0, speeds, path=path)
    assert path.read_text(encoding="utf-8") == svg
    root = ElementTree.fromstring(svg)
    found = [each for each in root.iter(f"{SVG}path") if each.find(f"{SVG}title") is not None]
    assert len(found) == 2 * len(speeds)
    first, second = ([float(number) for number in re.findall(r"[0-9.]+", each.get("d"))] for each in found[:2])
    end_s = float(result.end_s[0])
    across = [46 + 484 * time_s / end_s for time_s in (0.0, 100.0, 250.0, 400.0, end_s)]
    assert [first[0], first[2], first[4], second[0], second[2]] == pytest.approx(across, abs=0.1)
    shares = exposed_shares(result, 0, speeds["table"]).share
    up = 176 - 150 * shares / (max(exposed_shares(result, 0, each).share.max() for each in speeds.values()) * 1.06)
    assert [first[1], first[3], second[1]] == pytest.approx(up.tolist(), abs=0.1)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "Exposed communication of job a<b, AlexNet, 2 GPUs" in texts
    mean = result.exposed_s[0] / result.held_s[0]
    assert f"table: {mean:.1%} of the run time" in texts


def test_bad_input_is_refused_by_name(result, speeds):
    with pytest.raises(InvalidInput, match="trace_index = 1: at most 0"):
        exposed_shares(result, 1, speeds["table"])
    with pytest.raises(InvalidInput, match=r"speeds = '\{\}': must not be empty"):
        communication_picture(result, 0, {})
    bare = simulate_placement(result.trace, Script(), cluster=CLUSTER, speeds=speeds["table"], record=False)
    with pytest.raises(InvalidInput, match="record = False: the GPUs of the jobs were not recorded"):
        communication_picture(bare, 0, speeds)
