"""The archive of a search: its front is that of all scores, in whatever order they come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.search.pareto import nondominated
from equipoise.solvers.search.archive import Archive
from equipoise.validation.contract.fronts import problem_of, schaffer

scores = st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30)


def filled(rows, order):
    archive = Archive(problem_of(schaffer, ideal=(0.0,) * 3, reference=(5.0,) * 3))
    for place in order:
        archive.add(place, np.array([place / 100.0]), np.array(rows[place], dtype=float))
    return archive


@given(rows=scores, seed=st.integers(0, 99))
def test_the_front_is_that_of_all_scores_in_any_order(rows, seed):
    found = filled(rows, np.random.default_rng(seed).permutation(len(rows))).front(100)
    kept = np.flatnonzero(nondominated(np.array(rows, dtype=float)))
    # Of equal scores the first proposed is kept, so the vectors are the same too.
    assert sorted(found.vectors[:, 0]) == [place / 100.0 for place in kept]


@given(rows=scores, most=st.integers(1, 5))
def test_a_thinned_front_keeps_the_best_of_each_objective(rows, most):
    archive = filled(rows, range(len(rows)))
    found = archive.front(most)
    assert len(found) <= most
    if most >= 3:
        assert (found.scores.min(axis=0) == archive.points.min(axis=0)).all()


def test_two_zeros_are_one_vector():
    assert Archive.key(np.array([0.0, 1.0])) == Archive.key(np.array([-0.0, 1.0]))
    assert Archive.key(np.array([0.0])) != Archive.key(np.array([5e-324]))
