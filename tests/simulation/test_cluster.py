"""The cluster: counts, machines and racks that fit together, and the tiers of GPUs."""

import pickle

import pytest

import equipoise as eq
from equipoise.simulation import Cluster


def test_a_number_a_mapping_and_a_cluster_are_clusters():
    assert Cluster.of(8) == Cluster(gpus_by_type={"gpu": 8})
    cluster = Cluster.of({"a100": 4, "v100": 8})
    assert (cluster.types, cluster.gpus, cluster.machines) == (("a100", "v100"), 12, None)
    assert Cluster.of(cluster) is cluster
    with pytest.raises(TypeError):
        cluster.gpus_by_type["a100"] = 5


def test_machines_follow_from_their_size_and_back():
    assert Cluster(gpus_by_type={"gpu": 32}, gpus_per_machine=8).machines == 4
    assert Cluster(gpus_by_type={"gpu": 32}, machines=4).gpus_per_machine == 8
    whole = Cluster(gpus_by_type={"gpu": 32}, machines=4, gpus_per_machine=8, racks=2)
    assert pickle.loads(pickle.dumps(whole)) == whole


def test_tiers_are_those_of_the_widest_link():
    cluster = Cluster(gpus_by_type={"old": 16, "new": 16}, gpus_per_machine=4, racks=4)
    for ids, tier in (([5], 0), ([4, 7], 0), ([3, 4], 1), ([0, 7], 1), ([7, 8], 2), ([0, 31], 2), ([30, 24], 1)):
        assert cluster.tier(ids) == tier
    assert Cluster(gpus_by_type={"gpu": 16}, machines=4).tier([0, 15]) == 1  # one rack
    assert Cluster.of(16).tier([0, 15]) == 0  # machines are not stated
    with pytest.raises(eq.InvalidInput, match=r"gpu_ids\[1\] = 32"):
        cluster.tier([0, 32])
    with pytest.raises(eq.InvalidInput, match="gpu_ids"):
        cluster.tier([])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gpus_by_type": {}}, "gpus_by_type = '{}': must name at least one GPU type"),
        ({"gpus_by_type": 8}, "gpus_by_type = 'int': must be a mapping"),
        ({"gpus_by_type": {"": 8}}, "gpus_by_type = '': a GPU type must have a name"),
        ({"gpus_by_type": {"gpu": 0}}, r"gpus_by_type\[gpu\] = 0: at least 1"),
        ({"machines": 0}, "machines = 0: at least 1"),
        ({"machines": 3}, "machines = 3: does not divide the 8 GPUs"),
        ({"gpus_per_machine": 3}, "gpus_per_machine = 3: does not divide the 8 GPUs"),
        ({"machines": 2, "gpus_per_machine": 2}, "gpus_per_machine = 2: machines = 2 and 8 GPUs make it 4"),
        (
            {"gpus_by_type": {"a": 2, "b": 6}, "machines": 2},
            r"gpus_by_type\[a\] = 2: machines of 4 GPUs would mix types",
        ),
        ({"racks": 2}, "racks = 2: needs machines or gpus_per_machine"),
        ({"machines": 4, "racks": 3}, "racks = 3: 4 machines do not divide into so many racks"),
        ({"machines": 4, "racks": 1.5}, "racks = 1.5: must be a whole number"),
    ],
)
def test_what_does_not_fit_is_named(fields, message):
    with pytest.raises(eq.InvalidInput, match=message):
        Cluster(**{"gpus_by_type": {"gpu": 8}} | fields)


def test_counts_given_directly_are_named_as_given():
    with pytest.raises(eq.InvalidInput, match=r"gpus\[v100\] = 0: at least 1"):
        Cluster.of({"v100": 0})
    with pytest.raises(eq.InvalidInput, match="gpus = 0: at least 1"):
        Cluster.of(0)
