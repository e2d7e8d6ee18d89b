"""All backends agree on random programs, a twentieth of those of `make verify-full`; and the checker can fail."""

import dataclasses
import os

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers import registry
from equipoise.validation import agreement as module
from equipoise.validation.agreement import KINDS, agreement

FULL = 500
COUNT = int(os.environ.get("EQUIPOISE_AGREEMENT", FULL // 20))


@pytest.mark.parametrize("kind", KINDS)
def test_all_backends_agree(kind):
    tallies = agreement(count=COUNT, seed=2026, kinds=[kind])
    assert {tally.kind for tally in tallies} == {kind}
    names = {tally.backend for tally in tallies}
    assert {"highs", "scipy"} <= names
    for tally in tallies:
        assert not tally.disagreements, tally
        assert tally.programs == COUNT
        assert tally.agreed + tally.refused == COUNT
        assert tally.worst_residual <= 1e-6
    least = COUNT if "window" in kind or "enumerated" in kind else 0
    assert all(tally.agreed >= least for tally in tallies), tallies


def test_what_is_drawn_depends_on_the_seed_and_on_nothing_else():
    once, again = ({t.backend: t.worst_gap for t in agreement(count=3, names=["highs"], seed=5)} for _ in range(2))
    assert once == again
    one, other = (KINDS["planted LP"](np.random.default_rng([seed, 0, 0])).program for seed in (1, 2))
    assert one.objective.shape != other.objective.shape or (one.objective != other.objective).any()


CORRUPTIONS = {
    "objective": lambda r: dataclasses.replace(r, objective=r.objective - 1.0),
    "better than the optimum": lambda r: dataclasses.replace(r, objective=r.objective + 1.0),
    "bound": lambda r: dataclasses.replace(r, bound=r.bound - 1.0),
    "optimum": lambda r: dataclasses.replace(r, termination=eq.Termination(eq.Reason.INFEASIBLE)),
    "FEASIBLE": lambda r: dataclasses.replace(r, termination=eq.Termination(eq.Reason.FEASIBLE, eq.Limit.METHOD)),
}


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_a_corrupted_result_is_a_disagreement(monkeypatch, what):
    solve = module.solve

    def corrupt(program, name, **options):
        return CORRUPTIONS[what](solve(program, name, **options))

    monkeypatch.setattr(module, "solve", corrupt)
    (tally,) = agreement(count=2, names=["highs"], kinds=["planted LOG"])
    assert tally.agreed == 0
    assert len(tally.disagreements) == 2
    assert what in tally.disagreements[0]
    assert tally.row()["first_disagreement"] == tally.disagreements[0]


def test_a_wrong_claim_about_an_infeasible_program_is_a_disagreement(monkeypatch):
    infeasible = next(
        k for k in range(200) if KINDS["enumerated MILP"](np.random.default_rng([0, 2, k])).optimum is None
    )
    assert agreement(count=infeasible + 1, names=["highs"], kinds=["enumerated MILP"])[0].agreed == infeasible + 1
    solve, unbounded = module.solve, eq.Termination(eq.Reason.UNBOUNDED)
    monkeypatch.setattr(module, "solve", lambda *a, **k: dataclasses.replace(solve(*a, **k), termination=unbounded))
    assert agreement(count=infeasible + 1, names=["highs"], kinds=["enumerated MILP"])[0].agreed == 0


def test_one_backend_worse_than_the_others_is_found_where_no_optimum_is_known(monkeypatch):
    solve = module.solve

    def corrupt(program, name, **options):
        result = solve(program, name, **options)
        return dataclasses.replace(result, objective=result.objective - 1.0) if name == "scipy" else result

    monkeypatch.setattr(module, "solve", corrupt)
    found = {tally.backend: tally for tally in agreement(count=2, names=["highs", "scipy"], kinds=["window counts"])}
    assert found["highs"].agreed == 2
    assert found["scipy"].agreed == 0


@pytest.mark.parametrize(("field", "value"), [("count", 0), ("count", -1), ("kinds", ["LP"])])
def test_bad_input(field, value):
    with pytest.raises(eq.InvalidInput, match=field):
        agreement(**{"count": 1, field: value})
    with pytest.raises(eq.BackendNotFound):
        agreement(count=1, names=["higs"])
    assert set(registry.BACKENDS) >= {"highs", "scipy"}
