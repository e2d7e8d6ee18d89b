"""The picture of throughputs: a curve for each number of GPUs through the model's values."""

import re
from xml.etree import ElementTree

import pytest

from equipoise import InvalidInput
from equipoise.simulation.placement import ModelTable, throughput_picture

# Where the horizontal axis lies.
AXIS = 270.0
TIME = ModelTable.builtin().row("cifar10").time


def heights(svg):
    """Return the vertical places of the dots, and that of the axis."""
    return [float(y) for y in re.findall(r'cy="([0-9.]+)"', svg)]


def test_curves_have_the_heights_of_the_throughputs(tmp_path):
    sizes, path = [32, 128, 1024], tmp_path / "throughput.svg"
    svg = throughput_picture(TIME, gpus=[1, 8], batch_sizes=sizes, gpus_per_machine=4, path=path)
    assert path.read_text(encoding="utf-8") == svg
    ElementTree.fromstring(svg)
    rates = [
        gpus * size / TIME.iteration(gpus, size, machines=machines).total_s
        for gpus, machines in ((1, 1), (8, 2))
        for size in sizes
    ]
    y = heights(svg)
    scale = (y[0] - y[5]) / (rates[5] - rates[0])
    assert y == pytest.approx([y[0] - scale * (rate - rates[0]) for rate in rates], abs=0.2)


def test_with_small_sub_batches_throughput_grows_less():
    growths = []
    for part in (None, 32):
        low, high = heights(throughput_picture(TIME, gpus=[1], batch_sizes=[32, 256], sub_batch=part))
        growths.append((AXIS - high) / (AXIS - low))
    rates = [TIME.iteration(1, 32).total_s * 8 / TIME.iteration(1, 256, sub_batch=part).total_s for part in (None, 32)]
    assert growths == pytest.approx(rates, abs=0.01)
    assert growths[1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": []}, "gpus"),
        ({"gpus": [0]}, r"gpus\[0\] = 0"),
        ({"batch_sizes": [32]}, "batch_sizes"),
        ({"batch_sizes": [32, 32]}, "batch_sizes"),
        ({"gpus_per_machine": -1}, "gpus_per_machine = -1"),
        ({"sub_batch": 0}, "sub_batch = 0"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        throughput_picture(TIME, **{"gpus": [1], "batch_sizes": [32, 64], **change})
