"""The contract of searches: every kind of broken search is caught by a named case, and known fronts are right."""

from dataclasses import replace

import numpy as np
import pytest
from optional import needs_package

import equipoise as eq
from equipoise.solvers.backend import Answer, Claim, ignore_progress
from equipoise.solvers.search.uniform import RandomSearch
from equipoise.validation.contract.fronts import easy_fronts, hard_fronts
from equipoise.validation.contract.suite import check_backend


class Broken(RandomSearch):
    """The random search, with one thing wrong."""

    name = "broken"

    def solve(self, task, options, on_progress):
        return self.after(super().solve(task, self.before(options), on_progress), task)

    def before(self, options):
        return options

    def after(self, answer, task):
        return answer


class IgnoresTheSeed(Broken):
    def batches(self, problem, first, settings, seed):
        return super().batches(problem, first, settings, np.random.default_rng().integers(1000))


class DependsOnTheWorkers(Broken):
    def before(self, options):
        return replace(options, seed=options.seed + options.threads)


class ForgetsTheWarmStart(Broken):
    def before(self, options):
        return replace(options, warm_start=None)


class ScoresOneMore(Broken):
    def after(self, answer, task):
        task.problem.score(np.array([[0.125]]))
        return answer


class ScoresLess(Broken):
    def batches(self, problem, first, settings, seed):
        for batch in super().batches(problem, first, settings, seed):
            yield 0.1 * batch


class IgnoresTheTimeLimit(Broken):
    def before(self, options):
        return options.with_time(None if options.time_limit is None else options.time_limit + 1.0)


class ReadsNoTimeAsNoLimit(Broken):
    def before(self, options):
        return options.with_time(options.time_limit or None)


class PraisesItsFront(Broken):
    def after(self, answer, task):
        return (
            answer if answer.plan is None else replace(answer, plan=replace(answer.plan, scores=answer.plan.scores / 2))
        )


class ReportsNothing(Broken):
    def solve(self, task, options, on_progress):
        return super().solve(task, options, ignore_progress)


class ReportsTheLastBatchOnly(Broken):
    def solve(self, task, options, on_progress):
        def report(objective, bound, incumbent, measures):
            on_progress(objective, bound, incumbent, {**measures, "evaluations": 70.0})

        return super().solve(task, options, report)


class ClaimsInfeasible(Broken):
    def after(self, answer, task):
        return Answer(claim=Claim.INFEASIBLE) if answer.plan is None else answer


class SwallowsErrors(Broken):
    def solve(self, task, options, on_progress):
        try:
            return super().solve(task, options, on_progress)
        except Exception:
            return Answer.ended(eq.Limit.METHOD)


class ClaimsAnUnknownBound(Broken):
    def after(self, answer, task):
        return replace(answer, bound=0.5)


@pytest.mark.parametrize(
    ("broken", "case"),
    [
        (IgnoresTheSeed, "same-seed"),
        pytest.param(DependsOnTheWorkers, "same-workers", marks=needs_package("joblib", "distributed")),
        (ForgetsTheWarmStart, "warm-start"),
        (ScoresOneMore, "evaluations"),
        (ScoresLess, "easy-fronts"),
        (IgnoresTheTimeLimit, "time-limit"),
        (ReadsNoTimeAsNoLimit, "no-time"),
        (PraisesItsFront, "easy-fronts"),
        (ReportsNothing, "progress"),
        (ReportsTheLastBatchOnly, "progress"),
        (ClaimsInfeasible, "infeasible"),
        (SwallowsErrors, "failing"),
        (ClaimsAnUnknownBound, "easy-fronts"),
    ],
)
def test_a_broken_search_is_caught(broken, case):
    (row,) = check_backend(broken(), cases=[f"{case}-SearchProblem"]).rows
    assert row.outcome == "failed", row


@pytest.mark.parametrize("known", [*easy_fronts(), *hard_fronts()], ids=lambda known: known.name)
def test_no_vector_is_beyond_a_known_front(known):
    """Points of the front itself fill what is said, and random vectors add nothing to it."""
    problem = known.problem
    rng = np.random.default_rng(0)
    vectors = rng.uniform(problem.lower, problem.upper, (1500, len(problem.variables)))
    front = vectors.copy()
    if "ZDT" in known.name:
        front[:, 1:] = 0.0
    elif "Fonseca" in known.name:
        front[:] = front[:, :1] / np.abs(problem.upper[0]) / np.sqrt(front.shape[1])
    elif "DTLZ2" in known.name:
        front = front[:800]
        front[:, 2:] = 0.5
    best = problem.hypervolume(problem.score(front))
    assert best <= known.hypervolume * (1.0 + 1e-9)
    assert best == pytest.approx(known.hypervolume, rel=0.1 if "DTLZ2" in known.name else 0.01)
    assert problem.hypervolume(problem.score(np.vstack((front, vectors)))) <= known.hypervolume * (1.0 + 1e-9)


@pytest.mark.parametrize("known", [*easy_fronts(), *hard_fronts()], ids=lambda known: known.name)
def test_no_vector_has_a_smaller_mean_than_the_known_one(known):
    one = known.of(1)
    rng = np.random.default_rng(0)
    vectors = rng.uniform(one.problem.lower, one.problem.upper, (4000, len(one.problem.variables)))
    if "ZDT" in known.name:
        vectors[:2000, 1:] = 0.0
    elif "Fonseca" in known.name:
        vectors[:2000] = vectors[:2000, :1]
    elif "DTLZ2" in known.name:
        vectors[:2000, 2:] = 0.5
        vectors[:2000, :2] = np.round(vectors[:2000, :2])
    scores = one.problem.score(vectors)
    assert np.nanmin(scores) >= known.least_mean * (1.0 - 1e-9)
    assert np.nanmin(scores) == pytest.approx(known.least_mean, rel=0.01)
    assert known.of(None) is known
    assert one.problem.hypervolume(scores) <= one.hypervolume * (1.0 + 1e-9)
