"""The picture of a table of pairs: a cell for each measured pair, in order, the darker the slower."""

import re
from xml.etree import ElementTree

from equipoise.simulation.placement import PairTable, pair_ratio_picture


def test_each_measured_pair_has_a_cell(tmp_path):
    ratios = {("LM 5", "LM 10"): 1.0, ("LM 10", "LM 5"): 2.0, ("LM 10", "LM 10"): 9.0}
    svg = pair_ratio_picture(PairTable(ratios=ratios), path=tmp_path / "pairs.svg")
    assert (tmp_path / "pairs.svg").read_text(encoding="utf-8") == svg
    ElementTree.fromstring(svg)
    lightness = {tip: int(light) for light, tip in re.findall(r'hsl\(210,75%,(\d+)%\)"[^>]*><title>([^<]*)', svg)}
    assert lightness == {"LM 5 beside LM 10: 1.00": 96, "LM 10 beside LM 5: 2.00": 67, "LM 10 beside LM 10: 9.00": 38}
    assert svg.index(">LM 5<") < svg.index(">LM 10<")
    assert "3 of 4 pairs" in svg
