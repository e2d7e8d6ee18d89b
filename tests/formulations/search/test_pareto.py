"""Dominance, hypervolume and spread against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from equipoise.formulations.search.pareto import hypervolume, nondominated, spread


def points(objectives, most):
    return st.lists(st.tuples(*[st.integers(0, 6)] * objectives), min_size=1, max_size=most).map(
        lambda rows: np.array(rows, dtype=float)
    )


any_points = st.integers(1, 4).flatmap(lambda objectives: points(objectives, 7))


def dominates(one, other):
    return (one <= other).all() and (one < other).any()


@given(scores=any_points)
def test_nondominated_by_its_definition(scores):
    for row, kept in enumerate(nondominated(scores)):
        beaten = any(dominates(other, scores[row]) for other in scores)
        repeated = any((other == scores[row]).all() for other in scores[:row])
        assert kept == (not beaten and not repeated)


def test_rows_that_are_not_finite_are_never_kept():
    scores = np.array([[np.nan, 0.0], [1.0, 1.0], [np.inf, -1.0], [0.0, np.nan]])
    assert nondominated(scores).tolist() == [False, True, False, False]
    assert not nondominated(scores[:1]).any()


def by_inclusion_and_exclusion(scores, ideal, reference):
    """Volume of the union of boxes from each point to the reference, as a share of the whole."""
    corners = np.maximum(scores, ideal)
    corners = corners[(corners < reference).all(axis=1)]
    volume = 0.0
    for size in range(1, len(corners) + 1):
        for chosen in combinations(corners, size):
            volume -= (-1.0) ** size * np.prod(reference - np.max(chosen, axis=0))
    return volume / np.prod(reference - ideal)


@given(scores=any_points)
def test_hypervolume_by_inclusion_and_exclusion(scores):
    ideal, reference = np.full(scores.shape[1], 1.0), np.full(scores.shape[1], 5.5)
    found = hypervolume(scores, ideal, reference)
    assert found == pytest.approx(by_inclusion_and_exclusion(scores, ideal, reference), abs=1e-12)
    assert 0.0 <= found <= 1.0


@given(objectives=st.integers(2, 4), count=st.integers(1, 30), seed=st.integers(0, 999))
def test_hypervolume_by_moocore(objectives, count, seed):
    moocore = pytest.importorskip("moocore")
    scores = np.random.default_rng(seed).random((count, objectives))
    found = hypervolume(scores, np.zeros(objectives), np.ones(objectives))
    assert found == pytest.approx(moocore.hypervolume(scores, ref=np.ones(objectives)), abs=1e-12)


def test_hypervolume_of_nothing():
    ideal, reference = np.zeros(2), np.ones(2)
    assert hypervolume(np.empty((0, 2)), ideal, reference) == 0.0
    assert hypervolume(np.array([[1.0, 0.0], [np.nan, 0.0]]), ideal, reference) == 0.0
    assert hypervolume(np.array([[-5.0, 0.0]]), ideal, reference) == 1.0


@given(scores=any_points, seed=st.integers(0, 99))
def test_hypervolume_depends_on_neither_order_nor_units(scores, seed):
    rng = np.random.default_rng(seed)
    ideal, reference = np.zeros(scores.shape[1]), np.full(scores.shape[1], 6.0)
    found = hypervolume(scores, ideal, reference)
    assert hypervolume(scores[rng.permutation(len(scores))], ideal, reference) == pytest.approx(found, abs=1e-12)
    unit = 2.0 ** rng.integers(-9, 9, scores.shape[1])
    assert hypervolume(scores * unit, ideal * unit, reference * unit) == pytest.approx(found, abs=1e-12)


@given(scores=any_points, count=st.integers(1, 8))
@example(scores=np.zeros((3, 1)), count=2)
def test_spread_points_are_the_farthest_from_each_other(scores, count):
    chosen = spread(scores, count)
    assert len(set(chosen.tolist())) == len(chosen) == min(count, len(scores))
    assert (np.diff(chosen) > 0).all()
    if count >= scores.shape[1]:
        assert (scores[chosen].min(axis=0) == scores.min(axis=0)).all()


def test_spread_leaves_out_the_crowd():
    line = np.array([[0.0, 1.0], [0.5, 0.5], [0.501, 0.499], [0.502, 0.498], [1.0, 0.0]])
    assert spread(line, 3).tolist() in ([0, 1, 4], [0, 2, 4], [0, 3, 4])
