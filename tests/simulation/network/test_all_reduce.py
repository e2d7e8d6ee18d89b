"""Times of messages and collectives: golden values, an enumeration send by send, closed forms and relations."""

import math
from fractions import Fraction

import pytest
from enumerated_collectives import GB, all_reduce_s, hops, recursive_halving_s
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.simulation import Cluster
from equipoise.simulation.network import ALGORITHMS, SCHEMES, TOPOLOGIES, Dimension, Network

pytestmark = pytest.mark.thorough

KINDS = [(topology, algorithm) for topology in TOPOLOGIES for algorithm in ALGORITHMS]
SHAPES = [(1, 1, 1), (2, 2), (4, 1, 2), (1, 3, 1), (3, 5), (8, 8), (2, 3, 4), (4, 4, 4), (7, 3, 3), (5, 1, 2, 3), (64,)]


def dimension(topology="switch", size=8, bandwidth_gb_s=50.0, latency_ns=500.0, algorithm="ring"):
    return Dimension(
        topology=topology, size=size, bandwidth_gb_s=bandwidth_gb_s, latency_ns=latency_ns, algorithm=algorithm
    )


def dimensions():
    return st.builds(
        dimension,
        st.sampled_from(TOPOLOGIES),
        st.integers(1, 64),
        st.floats(0.5, 500.0),
        st.floats(0.0, 5000.0),
        st.sampled_from(ALGORITHMS),
    )


@pytest.mark.parametrize(("topology", "wanted"), [("ring", 21031), ("fully_connected", 20031), ("switch", 20531)])
def test_golden_values_of_a_message(topology, wanted):
    sixteen = dimension(topology, 16)
    assert sixteen.point_to_point_ns(2**20, 1, 4) == sixteen.point_to_point_ns(2**20, 4, 1) == wanted
    assert sixteen.point_to_point_ns(2**20, 4, 4) == 0


@given(st.data())
def test_a_message_takes_its_hops_and_its_bytes_truncated_to_nanoseconds(data):
    found = data.draw(dimensions())
    source, target = (data.draw(st.integers(0, found.size - 1)) for _ in range(2))
    num_bytes = data.draw(st.integers(0, 2**40))
    walked = hops(found.topology, found.size, source, target) if source != target else 0
    assert found.hops(source, target) == walked
    exact = walked * Fraction(found.latency_ns) + Fraction(num_bytes * 10**9, GB) / Fraction(found.bandwidth_gb_s)
    assert found.point_to_point_ns(num_bytes, source, target) == (math.floor(exact) if walked else 0)


@pytest.mark.parametrize(("topology", "algorithm"), KINDS)
def test_an_all_reduce_is_the_sum_of_its_steps(topology, algorithm):
    for n in range(1, 65):
        one = topology, n, 112.5, 500.0, algorithm
        wanted = all_reduce_s([one], 10**6, "flat")
        assert dimension(*one).all_reduce_s(10**6) == pytest.approx(float(wanted), rel=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shift", range(len(KINDS)))
def test_an_all_reduce_over_several_dimensions_is_the_sum_of_its_steps(scheme, shift):
    for shape in SHAPES:
        parts = []
        for index, size in enumerate(shape):
            topology, algorithm = KINDS[(index * 5 + shift) % len(KINDS)]
            parts.append(
                (topology, size, (112.5, 50.0, 100.0, 3.0)[index], (500.0, 700.0, 2000.0, 1.0)[index], algorithm)
            )
        found = Network([dimension(*part) for part in parts], scheme).all_reduce_s(123_456_789)
        assert found == pytest.approx(float(all_reduce_s(parts, 123_456_789, scheme)), rel=1e-12)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("n", [2, 4, 8, 16, 32, 64])
def test_halving_and_doubling_between_pairs_takes_as_long(topology, n):
    found = dimension(topology, n, algorithm="halving_doubling").all_reduce_s(2**20)
    assert found == pytest.approx(float(recursive_halving_s(topology, n, 50.0, 500.0, 2**20)), rel=1e-12)


@pytest.mark.parametrize("n", [2, 8, 64])
def test_closed_forms(n):
    sent_s = 2**20 / (50 * GB)
    for topology, h in (("ring", 1), ("fully_connected", 1), ("switch", 2)):
        ring = dimension(topology, n).all_reduce_s(2**20)
        assert ring == pytest.approx(2 * (n - 1) * (h * 500e-9 + sent_s / n), rel=1e-12)
        halving = dimension(topology, n, algorithm="halving_doubling").all_reduce_s(2**20)
        latencies = n - 1 if topology == "ring" else h * math.log2(n)
        assert halving == pytest.approx(2 * latencies * 500e-9 + 2 * sent_s * (1 - 1 / n), rel=1e-12)


@given(dimensions(), st.integers(1, 2**40), st.integers(1, 2**40), st.floats(0.0, 5000.0))
def test_more_bytes_nodes_latency_or_less_bandwidth_never_take_less(found, num_bytes, more, latency_ns):
    values = found.topology, found.size, found.bandwidth_gb_s, found.latency_ns, found.algorithm
    time_s = found.all_reduce_s(num_bytes)
    assert found.all_reduce_s(num_bytes + more) >= time_s
    for changed in (
        dimension(values[0], values[1] + 1, *values[2:]),
        dimension(*values[:2], values[2] / 2, *values[3:]),
        dimension(*values[:3], values[3] + latency_ns, values[4]),
    ):
        assert changed.all_reduce_s(num_bytes) >= time_s * (1 - 1e-12)


@given(dimensions(), st.integers(0, 2**40))
def test_halving_and_doubling_never_takes_longer_than_the_ring_where_hops_are_equal(found, num_bytes):
    values = found.size, found.bandwidth_gb_s, found.latency_ns
    for topology in ("fully_connected", "switch"):
        times = [dimension(topology, *values, algorithm).all_reduce_s(num_bytes) for algorithm in ALGORITHMS]
        assert times[1] <= times[0] * (1 + 1e-12)


@given(st.lists(dimensions(), min_size=1, max_size=4), st.integers(0, 2**40))
def test_hierarchical_never_takes_longer_than_flat(parts, num_bytes):
    times = [Network(parts, scheme).all_reduce_s(num_bytes) for scheme in SCHEMES]
    assert times[0] <= times[1] * (1 + 1e-12)
    alone = sum(part.all_reduce_s(num_bytes) for part in parts)
    assert times[1] == pytest.approx(alone, rel=1e-12)


def test_algorithms_have_defaults_by_topology():
    given = {"size": 4, "bandwidth_gb_s": 1.0, "latency_ns": 0.0}
    found = [Dimension(topology=topology, **given).algorithm for topology in TOPOLOGIES]
    assert found == ["ring", "halving_doubling", "halving_doubling"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"topology": "torus"}, "topology"),
        ({"algorithm": "tree"}, "algorithm"),
        ({"size": 0}, "size"),
        ({"size": 2.5}, "size"),
        ({"bandwidth_gb_s": 0.0}, "bandwidth_gb_s"),
        ({"bandwidth_gb_s": math.inf}, "bandwidth_gb_s"),
        ({"latency_ns": -1.0}, "latency_ns"),
        ({"latency_ns": math.nan}, "latency_ns"),
        ({"latency_ns": math.inf}, "latency_ns"),
    ],
)
def test_a_bad_dimension_is_refused(change, field):
    with pytest.raises(InvalidInput) as error:
        dimension(**change)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: dimension().hops(0, 8), "target"),
        (lambda: dimension().point_to_point_ns(-1, 0, 1), "num_bytes"),
        (lambda: dimension().all_reduce_s(-1.0), "num_bytes"),
        (lambda: dimension().all_reduce_s(math.nan), "num_bytes"),
        (lambda: Network([]), "dimensions"),
        (lambda: Network([3]), "dimensions"),
        (lambda: Network([dimension()], "tree"), "scheme"),
        (lambda: Network([dimension()]).resized((1, 2)), "sizes"),
        (lambda: Network([dimension()]).all_reduce_s(math.inf), "num_bytes"),
    ],
)
def test_bad_arguments_are_refused(call, field):
    with pytest.raises(InvalidInput) as error:
        call()
    assert error.value.field == field


def test_the_built_in_network_has_the_sizes_of_the_cluster():
    cluster = Cluster(gpus_by_type={"gpu": 256}, gpus_per_machine=8, racks=4)
    found = Network.builtin(cluster)
    assert found.sizes == (8, 8, 4)
    assert [each.bandwidth_gb_s for each in found.dimensions] == [112.5, 50.0, 100.0]
    assert [each.latency_ns for each in found.dimensions] == [500.0, 500.0, 2000.0]
    assert Network.builtin(6).sizes == (6, 1, 1)


FILE = """{"scheme": "flat", "machine": {"topology": "ring", "bandwidth_gb_s": 300, "latency_ns": 700},
"rack": {"topology": "switch", "algorithm": "ring", "bandwidth_gb_s": 12.5, "latency_ns": 0},
"network": {"topology": "fully_connected", "bandwidth_gb_s": 1, "latency_ns": 5000}}"""


def test_a_network_is_read_from_a_file(tmp_path):
    path = tmp_path / "network.json"
    path.write_text(FILE)
    found = Network.read(path, cluster=Cluster(gpus_by_type={"gpu": 32}, gpus_per_machine=4, racks=2))
    kinds = [(each.topology, each.size, each.algorithm) for each in found.dimensions]
    assert kinds == [("ring", 4, "ring"), ("switch", 4, "ring"), ("fully_connected", 2, "halving_doubling")]
    assert found.scheme == "flat"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rack"', '"racks"', "network.json.rack = None: is missing"),
        ('"scheme": "flat"', '"shape": "flat"', "network.json = 'shape': no such member"),
        ('"scheme": "flat"', '"scheme": "tree"', "scheme = 'tree': must be one of"),
        ('"latency_ns": 700', '"latency_ns": -1', "machine.latency_ns = -1: at least 0"),
        ('"latency_ns": 700', '"latency_ns": NaN', "machine.latency_ns = nan: must be finite"),
        ('"latency_ns": 700', '"latency_us": 0.7', "machine.latency_ns = None: is missing"),
        ('"latency_ns": 0', '"latency_ns": 0, "size": 8', "rack = 'size': no such member"),
        ('"latency_ns": 0', '"latency_ns": 0, "latency_ns": 1', "latency_ns = 1: is given twice"),
        ('"bandwidth_gb_s": 1,', '"bandwidth_gb_s": Infinity,', "network.bandwidth_gb_s = inf: must be finite"),
        ('"bandwidth_gb_s": 1,', '"bandwidth_gb_s": "1",', "network.bandwidth_gb_s = '1': must be a number"),
        ('{"scheme"', '[{"scheme"', "is no JSON"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, old, new, message):
    path = tmp_path / "network.json"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(InvalidInput) as error:
        Network.read(path, cluster=8)
    assert message in str(error.value)
