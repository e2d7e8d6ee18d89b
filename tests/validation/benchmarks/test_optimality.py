"""Heuristics in slots against the optimum: no ratio below 1, the same optimum by other solvers, and the rows."""

import pytest
from examples import examples

from equipoise.validation.benchmarks.optimality import Measured, measured, rows_of


def test_no_heuristic_beats_the_optimum():
    found = [measured(index, seed=7, jobs=3, gpus=2) for index in range(examples(40))]
    assert all(each.proved for each in found)
    assert all(value >= each.objective for each in found for value in each.heuristics.values())
    assert any(value > each.objective for each in found for value in each.heuristics.values())


@pytest.mark.parametrize("backend", ["scip", "ortools"])
def test_other_solvers_find_the_same_optimum(backend):
    for index in range(examples(8)):
        one, other = (measured(index, seed=1, jobs=5, backend=each) for each in ("highs", backend))
        assert one.proved
        assert one.objective == other.objective, index


def test_rows_summarise_what_was_measured():
    values = [({"sjf-bsbf": 12.0, "sjf-ffs": 20.0}, 10.0), ({"sjf-bsbf": 10.0, "sjf-ffs": 15.0}, 8.0)]
    found = [
        Measured(heuristics=values, objective=10.0, bound=bound, proved=bound == 10.0, wall_s=bound)
        for values, bound in values
    ]
    first, second = rows_of(found)
    assert first["policy"] == "sjf-bsbf"
    assert (first["mean_ratio"], first["worst_ratio"], first["optimal"], first["proved"]) == (1.1, 1.2, 0, 1)
    assert (second["mean_ratio"], second["worst_to_bound"], second["median_s"]) == (1.75, 2.0, 9.0)
