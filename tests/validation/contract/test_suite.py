"""The contract of backends: every backend here keeps it, and every kind of broken backend is caught by a named case."""

import importlib
import itertools
import math
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.backend import Answer, Availability, Backend, Claim
from equipoise.solvers.external.highs import Highs
from equipoise.solvers.registry import BACKENDS, find_backend
from equipoise.solvers.selection import reads
from equipoise.solvers.window.backend import Lagrangian
from equipoise.validation.contract import limits, programs
from equipoise.validation.contract import suite as contract
from equipoise.validation.contract.formulations import FORMULATIONS
from equipoise.validation.contract.market_draws import MARKETS, UNWEIGHTED
from equipoise.validation.contract.suite import CASES, ContractBroken, check_backend, chosen_cases

INF = math.inf
LP, MILP, LOG, MILOG = eq.ProblemClass


# -- Every backend of the registry keeps the contract ------------------------------------------------------------------


# CP-SAT takes long over continuous columns on a fine grid, and says so: it is not waited for.
TIME_LIMITS = {"ortools": 2.0}


def contract_cases():
    """One test for each case that a backend reads; one skip, with the reason, for a backend that cannot run here."""
    for name in BACKENDS:
        backend = find_backend(name)
        found = backend.probe()
        if not found.usable:
            yield pytest.param(name, "all", marks=pytest.mark.skip(reason=found.reason), id=name)
            continue
        for case in CASES:
            if isinstance(case.kind, str) and case.kind not in backend.formulations:
                continue
            if not isinstance(case.kind, str) and not reads(backend, case.kind):
                continue
            # Backends of this library are held to the contract with all extras.
            long = name == "scipy" or not backend.classes
            marks = [pytest.mark.thorough] if long else []
            yield pytest.param(name, case.name, marks=marks, id=f"{name}-{case.name}")


@pytest.mark.parametrize(("name", "case"), list(contract_cases()))
def test_a_backend_keeps_its_contract(name, case):
    (row,) = check_backend(name, cases=[case], time_limit=TIME_LIMITS.get(name, 20.0)).rows
    if row.outcome == "skipped":
        pytest.skip(row.detail)
    assert row.outcome == "passed", row.detail


# -- Broken backends are caught ----------------------------------------------------------------------------------------


class Broken(Highs):
    """HiGHS, with one thing wrong."""

    name = "broken"

    def solve(self, task, options, on_progress):
        task, options = self.before(task, options)
        return self.after(super().solve(task, options, on_progress), task, options)

    def before(self, task, options):
        return task, options

    def after(self, answer, task, options):
        return answer


def sign(task):
    return 1.0 if task.program.sense == "max" else -1.0


def with_program(task, **changes):
    return replace(task, program=replace(task.program, **changes))


class FlipsDuals(Broken):
    def after(self, answer, task, options):
        return answer if answer.duals is None else replace(answer, duals=-answer.duals)


class FlipsDualsOfMaximisations(Broken):
    def after(self, answer, task, options):
        if answer.duals is None:
            return answer
        return replace(answer, duals=-sign(task) * answer.duals, reduced_costs=-sign(task) * answer.reduced_costs)


class FlipsReducedCosts(Broken):
    def after(self, answer, task, options):
        return answer if answer.duals is None else replace(answer, reduced_costs=-answer.reduced_costs)


class HasTooTightABound(Broken):
    def after(self, answer, task, options):
        return (
            answer
            if answer.bound is None
            else replace(answer, bound=answer.bound - 0.01 * sign(task) * abs(answer.bound))
        )


class HasItsBoundOnTheWrongSide(Broken):
    def after(self, answer, task, options):
        return answer if answer.bound is None else replace(answer, bound=answer.bound - 100 * sign(task))


class CallsItsIncumbentTheBound(Broken):
    def after(self, answer, task, options):
        return answer if answer.values is None else replace(answer, bound=task.program.objective_at(answer.values))


class HasABoundOf1e20(Broken):
    def after(self, answer, task, options):
        return answer if answer.bound is not None else replace(answer, bound=1e20 * sign(task))


class IgnoresTheTimeLimit(Broken):
    def after(self, answer, task, options):
        if options.time_limit is not None and options.time_limit < 2:
            time.sleep(2.0)
        return answer


class ReadsNoTimeAsNoLimit(Broken):
    def before(self, task, options):
        return task, options.with_time(2.5 if options.time_limit < 1.0 else options.time_limit)


class IsNeverQuiet(Broken):
    def after(self, answer, task, options):
        os.write(1, b"solved\n")
        return answer


class NeverWritesALog(Broken):
    def before(self, task, options):
        return task, replace(options, log=False)


class IgnoresTheSeed(Broken):
    def before(self, task, options):
        cost = task.program.objective
        return with_program(task, objective=cost + 1e-9 * np.random.default_rng().random(len(cost))), options


class ReturnsTheStart(Broken):
    def after(self, answer, task, options):
        if task.start is None or np.isnan(task.start).any():
            return answer
        return replace(answer, values=task.start, bound=task.program.objective_at(task.start))


class DropsTheStart(Broken):
    def before(self, task, options):
        return replace(task, start=None), options

    def after(self, answer, task, options):
        return replace(answer, notes=("warm start accepted, objective 1",))


class SaysNothingOfTheStart(Broken):
    def after(self, answer, task, options):
        return replace(answer, notes=())


class ClaimsInfeasible(Broken):
    def after(self, answer, task, options):
        return Answer(claim=Claim.INFEASIBLE)


class CallsUnboundedInfeasible(Broken):
    def after(self, answer, task, options):
        return Answer(claim=Claim.INFEASIBLE) if answer.claim is Claim.UNBOUNDED else answer


class CallsInfeasibleOptimal(Broken):
    def after(self, answer, task, options):
        if answer.claim is not Claim.INFEASIBLE:
            return answer
        return replace(answer, claim=Claim.SOLVED, values=np.zeros(task.program.num_columns), bound=0.0)


class ReturnsZeros(Broken):
    def after(self, answer, task, options):
        return replace(answer, values=np.zeros(task.program.num_columns), bound=task.program.offset, duals=None)


class SwapsMaxAndMin(Broken):
    def before(self, task, options):
        return with_program(task, sense="min" if task.program.sense == "max" else "max"), options


class DropsTheOffset(Broken):
    def after(self, answer, task, options):
        return answer if answer.bound is None else replace(answer, bound=answer.bound - task.program.offset)


class CutsTheFractions(Broken):
    def before(self, task, options):
        return with_program(task, integer=np.zeros_like(task.program.integer)), options

    def after(self, answer, task, options):
        if answer.values is None:
            return answer
        values = np.trunc(answer.values)
        return replace(answer, values=values, bound=task.program.objective_at(values), duals=None)


class IgnoresIntegrality(CutsTheFractions):
    def after(self, answer, task, options):
        return answer


class IgnoresTheLowerSideOfRanges(Broken):
    def before(self, task, options):
        low, high = task.program.row_lower, task.program.row_upper
        return with_program(task, row_lower=np.where(np.isfinite(high) & (low < high), -INF, low)), options


class KeepsFreeColumnsAboveZero(Broken):
    def before(self, task, options):
        low = task.program.lower
        return with_program(task, lower=np.where(np.isinf(low), np.minimum(0.0, task.program.upper), low)), options


class ReadsUpperBoundsBelowZeroAsFree(Broken):
    def before(self, task, options):
        upper = task.program.upper
        return with_program(task, upper=np.where(upper < 0, INF, upper)), options


class DropsEmptyRows(Broken):
    def before(self, task, options):
        full = np.diff(task.program.matrix.starts) > 0
        low, high = task.program.row_lower, task.program.row_upper
        return with_program(task, row_lower=np.where(full, low, -INF), row_upper=np.where(full, high, INF)), options


class IgnoresTheGap(Broken):
    def before(self, task, options):
        return task, replace(options, rel_gap=0.5)


class ReadsTheGapInTheObjective(Broken):
    def before(self, task, options):
        return with_program(task, gap_unit=None), options


class IsAlwaysALittleOff(Broken):
    def after(self, answer, task, options):
        return answer if answer.values is None else replace(answer, values=answer.values + 3e-7)


class AcceptsAnyOption(Broken):
    def before(self, task, options):
        return task, replace(options, backend_options={})


class TakesSomeThingsTwice(Broken):
    def before(self, task, options):
        given = options.backend_options.get(self.name, {})
        own = {name: value for name, value in given.items() if name not in Highs.covered_options}
        return task, replace(options, backend_options={self.name: own})


class CannotUseThreads(Broken):
    def before(self, task, options):
        if options.threads > 1:
            raise eq.InvalidInput("threads", options.threads, "one is enough")
        return task, options


class HonoursMoreThanThereIs(Broken):
    supported_options = frozenset({"log", "speed"})


class StreamsWhatItHasNot(Broken):
    def solve(self, task, options, on_progress):
        def boasting(objective, bound, incumbent=None):
            on_progress(objective, bound, None if incumbent is None else np.ones_like(incumbent))

        return super().solve(task, options, boasting)


class StreamsAWorseBoundThanItProves(Broken):
    def solve(self, task, options, on_progress):
        def rash(objective, bound, incumbent=None):
            on_progress(objective, bound if objective is None else objective - 1e-3 * abs(objective), incumbent)

        return super().solve(task, options, rash)


class GivesUp(Broken):
    """Stops at the clock, it says, with a true bound that is far away."""

    def after(self, answer, task, options):
        if answer.bound is None:
            return answer
        return replace(answer, claim=Claim.STOPPED, limit=eq.Limit.TIME, bound=answer.bound + 5 * sign(task))


class TakesAllItsTime(GivesUp):
    def after(self, answer, task, options):
        time.sleep(options.time_limit)
        return super().after(answer, task, options)


class Refuses(Broken):
    def before(self, task, options):
        raise eq.UnsupportedProblem("not today")


class Crashes(Broken):
    def before(self, task, options):
        raise ZeroDivisionError("division by zero")


class BoundsWindowsTooTightly(Lagrangian):
    name = "broken"

    def solve(self, task, options, on_progress):
        answer = super().solve(task, options, lambda *report: None)
        return replace(answer, bound=answer.bound - 0.01 * task.problem.gap_scale(0.0))


class WastesRounds(Lagrangian):
    name = "broken"

    def solve(self, task, options, on_progress):
        answer = super().solve(task, options, lambda *report: None)
        idle = eq.WindowPlan(task.problem, np.zeros_like(answer.plan.grants))
        return replace(answer, plan=idle, bound=idle.objective)


class Shares(Backend):
    """Reads markets directly, and solves them by tangent cuts on HiGHS."""

    name, licence = "broken", "Apache-2.0"
    formulations = frozenset(UNWEIGHTED)
    supported_options = frozenset({"warm_start"})

    def probe(self):
        return Availability(True, "1")

    def solve(self, task, options, on_progress):
        self.backend_options(options)
        if options.time_limit == 0.0:
            return Answer(claim=Claim.STOPPED, limit=eq.Limit.TIME)
        options = self.before(task.problem, options)
        wanted = {name: getattr(options, name) for name in ("rel_gap", "abs_gap", "time_limit")}
        result = eq.solve(task.problem, "highs", **wanted)
        plan = None if result.plan is None else self.after(result.plan, task.problem)
        self.report(on_progress, result, plan)
        notes = () if options.warm_start is None else self.noted()
        limit = result.termination.limit
        return Answer(claim=Claim.STOPPED if limit else Claim.SOLVED, limit=limit, plan=plan, notes=notes)

    def before(self, market, options):
        return options

    def after(self, plan, market):
        return plan

    def report(self, on_progress, result, plan):
        on_progress(result.objective, result.bound, plan)

    def noted(self):
        return ("warm start dropped",)


class GivesNobodyAnything(Shares):
    def after(self, plan, market):
        return replace(plan, allocation=0.0 * plan.allocation)


class ChargesTheSameForEverything(Shares):
    def after(self, plan, market):
        return replace(plan, prices=market.normal_prices(np.ones_like(plan.prices)))


class ReadsDualsAsPricesOfShares(Shares):
    def after(self, plan, market):
        return replace(plan, prices=plan.prices * market.capacities)


class HandsOutMoreThanThereIs(Shares):
    def after(self, plan, market):
        return replace(plan, allocation=1.001 * plan.allocation)


class MixesUpTheBuyers(Shares):
    def after(self, plan, market):
        return replace(plan, allocation=plan.allocation[::-1])


class SplitsByBudget(Shares):
    """A plan that is no equilibrium, with the prices that it implies: a true gap, which does not close."""

    def after(self, plan, market):
        split = np.multiply.outer(market.budgets / market.total_budget, market.capacities)
        return market.equilibrium(split)


class IsEasilyContent(Shares):
    def before(self, market, options):
        return replace(options, rel_gap=0.5)


class ReadsTheGapInTheWelfare(Shares):
    def before(self, market, options):
        return replace(options, rel_gap=0.0, abs_gap=max(options.rel_gap, options.abs_gap) * 10)


class IsNotInAHurry(Shares):
    def before(self, market, options):
        if options.time_limit < 1.0:
            time.sleep(2.0)
        return options.with_time(None)


class ReturnsDenseForSparse(Shares):
    def after(self, plan, market):
        dense = plan.allocation if isinstance(plan.allocation, np.ndarray) else plan.allocation.toarray()
        return replace(plan, allocation=dense)


class Jitters(Shares):
    def after(self, plan, market):
        return replace(plan, allocation=plan.allocation * (1.0 - 1e-9 * np.random.default_rng().random()))


class BoastsOfItsBound(Shares):
    def report(self, on_progress, result, plan):
        on_progress(result.objective, result.bound - 1e-3 * result.plan.spending.sum(), plan)


class StreamsMoreThanThereIs(Shares):
    def report(self, on_progress, result, plan):
        on_progress(None, math.inf, replace(plan, allocation=2.0 * plan.allocation))


class GetsWorseOnTheWay(Shares):
    def report(self, on_progress, result, plan):
        for less in (0.0, 1.0):
            on_progress(result.objective - less * plan.spending.sum(), result.bound)


class NeverMentionsTheStart(Shares):
    def noted(self):
        return ()


CAUGHT_IN_MARKETS = [
    (GivesNobodyAnything, "optimal-FisherMarket"),
    (GivesNobodyAnything, "edges-VolatileFisherMarket:leontief"),
    (ChargesTheSameForEverything, "optimal-FisherMarket"),
    (ChargesTheSameForEverything, "optimal-VolatileFisherMarket:leontief"),
    (ReadsDualsAsPricesOfShares, "optimal-VolatileFisherMarket:linear"),
    (HandsOutMoreThanThereIs, "optimal-FisherMarket"),
    (HandsOutMoreThanThereIs, "bounds-VolatileFisherMarket:leontief"),
    (MixesUpTheBuyers, "optimal-VolatileFisherMarket:leontief"),
    (MixesUpTheBuyers, "closed-forms-FisherMarket"),
    (SplitsByBudget, "wide-budgets-VolatileFisherMarket:linear"),
    (IsEasilyContent, "gaps-FisherMarket"),
    (ReadsTheGapInTheWelfare, "gaps-VolatileFisherMarket:linear"),
    (IsNotInAHurry, "time-limit-FisherMarket"),
    (ReturnsDenseForSparse, "edges-FisherMarket"),
    (Jitters, "same-seed-FisherMarket"),
    (BoastsOfItsBound, "progress-FisherMarket"),
    (StreamsMoreThanThereIs, "progress-VolatileFisherMarket:linear"),
    (GetsWorseOnTheWay, "progress-VolatileFisherMarket:leontief"),
    (NeverMentionsTheStart, "warm-start-FisherMarket"),
]


CAUGHT = [
    (FlipsDuals, "planted-LP"),
    (FlipsDuals, "duals-LP"),
    (FlipsDualsOfMaximisations, "dual-signs-LP"),
    (FlipsReducedCosts, "duals-LP"),
    (FlipsReducedCosts, "dual-signs-LP"),
    (HasTooTightABound, "bounds-MILP"),
    (HasItsBoundOnTheWrongSide, "optimal-MILP"),
    (CallsItsIncumbentTheBound, "gaps-MILP"),
    (HasABoundOf1e20, "no-time-equality-MILP"),
    (IgnoresTheTimeLimit, "time-limit-MILP"),
    (ReadsNoTimeAsNoLimit, "no-time-hard-MILP"),
    (IsNeverQuiet, "log-MILP"),
    (NeverWritesALog, "log-LP"),
    (IgnoresTheSeed, "same-seed-LP"),
    (ReturnsTheStart, "warm-start-MILP"),
    (DropsTheStart, "warm-start-used-MILP"),
    (SaysNothingOfTheStart, "warm-start-LP"),
    (ClaimsInfeasible, "optimal-LP"),
    (ClaimsInfeasible, "no-time-equality-MILP"),
    (CallsUnboundedInfeasible, "unbounded-MILP"),
    (CallsInfeasibleOptimal, "infeasible-MILP"),
    (ReturnsZeros, "optimal-MILP"),
    (SwapsMaxAndMin, "no-rows-LP"),
    (SwapsMaxAndMin, "no-rows-MILP"),
    (DropsTheOffset, "optimal-MILP"),
    (CutsTheFractions, "negative-integers-MILP"),
    (IgnoresIntegrality, "infeasible-by-integrality-MILP"),
    (IgnoresTheLowerSideOfRanges, "row-ranges-MILP"),
    (KeepsFreeColumnsAboveZero, "free-columns-LP"),
    (KeepsFreeColumnsAboveZero, "planted-endless-LP"),
    (ReadsUpperBoundsBelowZeroAsFree, "negative-integers-MILP"),
    (DropsEmptyRows, "empty-row-LP"),
    (IgnoresTheGap, "gaps-MILP"),
    (ReadsTheGapInTheObjective, "gaps-MILP"),
    (IsAlwaysALittleOff, "feasibility-LP"),
    (AcceptsAnyOption, "own-options-LP"),
    (TakesSomeThingsTwice, "said-twice-MILP"),
    (CannotUseThreads, "threads-MILP"),
    (HonoursMoreThanThereIs, "optional-options-LP"),
    (StreamsWhatItHasNot, "progress-MILP"),
    (StreamsAWorseBoundThanItProves, "progress-MILP"),
    (GivesUp, "optimal-MILP"),
    (Refuses, "optimal-MILP"),
    (Crashes, "degenerate-LP"),
    (HasTooTightABound, "job-clusters-MILP"),
    (ReturnsZeros, "job-clusters-MILP"),
    (BoundsWindowsTooTightly, "bounds-ScheduleWindow"),
    (WastesRounds, "optimal-ScheduleWindow"),
    *CAUGHT_IN_MARKETS,
]


# Caught after many times the grace of a time limit.
LATE = (IsNotInAHurry, IgnoresTheTimeLimit, ReadsNoTimeAsNoLimit)


@pytest.mark.parametrize(
    ("broken", "case"),
    [
        pytest.param(
            broken, case, id=f"{broken.__name__}-{case}", marks=[pytest.mark.thorough] if broken in LATE else []
        )
        for broken, case in CAUGHT
    ],
)
def test_a_broken_backend_is_caught(broken, case, monkeypatch):
    # Ten times less than the delays of those that are late: a busy machine hides none.
    monkeypatch.setattr(limits, "GRACE_S", 0.2)
    monkeypatch.setattr(limits, "TRIES", 1)
    report = check_backend(broken(), cases=[case])
    (row,) = report.rows
    assert row.outcome == "failed", row
    assert row.detail
    with pytest.raises(ContractBroken, match=case):
        report.require()


@pytest.mark.thorough
def test_the_same_backend_unbroken_is_not_caught():
    cases = sorted({case for broken, case in CAUGHT if issubclass(broken, Broken)})
    report = check_backend(Broken(), cases=cases).require()
    assert report.passed
    assert {row.outcome for row in report.rows} == {"passed"}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", UNWEIGHTED)
def test_the_same_reader_of_markets_unbroken_is_not_caught(kind):
    cases = [case for case in CASES if case.kind == kind and case.topic not in ("isolated", "log", "threads")]
    report = check_backend(Shares(), cases=[case.name for case in cases]).require()
    assert [row.outcome for row in report.rows] == ["passed"] * len(cases), str(report)


def test_a_backend_that_is_slow_and_honest_is_skipped_not_failed():
    (row,) = check_backend(TakesAllItsTime(), cases=["optimal-MILP"], time_limit=0.2).rows
    assert row.outcome == "skipped"
    assert row.detail.startswith("too slow to tell: FEASIBLE (time limit)")


# -- The report --------------------------------------------------------------------------------------------------------


class Absent(Broken):
    name = "absent"

    def probe(self):
        return Availability(False, reason="it is not installed: pip install absent")


class ReadsSomethingElse(Broken):
    formulations = frozenset({"JobPair"})


def test_a_backend_that_cannot_run_here_skips_everything_with_the_reason():
    report = check_backend(Absent())
    assert report.passed
    assert [row.case for row in report.rows] == [case.name for case in CASES]
    assert {row.outcome for row in report.rows} == {"skipped"}
    assert {row.detail for row in report.rows} == {"absent cannot run here: it is not installed: pip install absent"}
    assert str(report).startswith(f"skipped: {len(CASES)} cases: absent cannot run here")


def test_an_unknown_backend_or_case_is_an_error_that_names_the_nearest():
    with pytest.raises(eq.BackendNotFound, match="did you mean 'highs'"):
        check_backend("hihgs")
    with pytest.raises(eq.InvalidInput, match="did you mean 'optimal-LP'"):
        check_backend("highs", cases=["optimal-PL"])


def test_a_formulation_without_a_generator_is_skipped_by_name(monkeypatch):
    monkeypatch.setattr(contract, "CASES", chosen_cases(["optimal-LP"]))
    rows = check_backend(ReadsSomethingElse()).rows
    assert [(row.case, row.outcome) for row in rows] == [("optimal-LP", "passed"), ("optimal-JobPair", "skipped")]
    assert rows[-1].detail == "no generator of such problems"


def test_cases_go_by_topic_or_by_name_and_are_told_as_they_are_done():
    told = []
    report = check_backend("highs", cases=["row-ranges", "optimal-MILP"], on_case=told.append)
    assert [row.case for row in told] == [
        "optimal-MILP",
        *(f"row-ranges-{kind.value}" for kind in (LP, MILP, LOG, MILOG)),
    ]
    assert tuple(told) == report.rows
    assert all(row.seconds > 0 for row in told)


def test_a_report_reads_as_a_table_with_reasons_below():
    text = str(check_backend(ClaimsInfeasible(), cases=["optimal-LP", "no-time-ScheduleWindow", "infeasible-LP"]))
    *table, failed, skipped, summary = text.splitlines()
    assert [line.split() for line in table] == [
        ["case", "LP"],
        ["optimal", "failed"],
        ["infeasible", "passed"],
    ]
    assert failed.startswith("failed: optimal-LP: NUMERICAL: the backend claims that there is no plan")
    assert skipped == "skipped: no-time-ScheduleWindow: it does not read ScheduleWindow directly"
    assert summary == "broken: 1 passed, 1 skipped, 1 failed"


def test_a_kind_with_a_hyphen_has_a_column_of_its_own():
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    text = str(check_backend("clarabel", cases=["no-time-VolatileFisherMarket:cobb-douglas"]))
    assert [line.split() for line in text.splitlines()[:2]] == [
        ["case", "VolatileFisherMarket:cobb-douglas"],
        ["no-time", "passed"],
    ]


def test_names_of_cases_are_unique_and_say_the_kind():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert {case.name.removeprefix(f"{case.topic}-") for case in CASES} == {
        *("LP", "MILP", "LOG", "MILOG", "ScheduleWindow", "SearchProblem"),
        *MARKETS,
        *FORMULATIONS,
    }
    assert all(case.run.__doc__ for case in CASES)


def test_hypothesis_is_not_needed():
    script = "import sys, equipoise.validation.contract.suite; print('hypothesis' in sys.modules)"
    path = os.pathsep.join(each for each in sys.path if each)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert run.stdout == "False\n", run.stderr


# -- The programs of the contract --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LP, LOG])
@pytest.mark.parametrize("options", [{}, {"scaled": True}, {"endless": True}], ids=str)
def test_planted_multipliers_prove_the_planted_optimum(kind, options):
    for seed in range(50):
        for sense in programs.senses(kind):
            known = programs.planted(np.random.default_rng(seed), kind, sense, **options)
            inside = None
            if kind is LOG:
                # The slopes are what the costs leave of the planted multipliers.
                program = known.program
                spare = rows_of(program).T @ known.duals + known.reduced_costs - program.objective
                inside = np.linalg.lstsq(logs_of(program).T, spare, rcond=None)[0]
                if np.linalg.matrix_rank(logs_of(program)) < 2 or (inside <= 0).any():
                    continue
            bound = known.program.linear_bound(known.duals, inside)
            assert bound == pytest.approx(known.optimum, rel=1e-9), (seed, sense)


def rows_of(program):
    return program.to_scipy().toarray()


def logs_of(program):
    dense = np.zeros((len(program.log_weights), program.num_columns))
    dense[program.log_matrix.row_of_entry(), program.log_matrix.columns] = program.log_matrix.values
    return dense


def test_planted_programs_are_of_the_class_asked_for_and_have_rows_of_every_kind():
    kinds = set()
    for seed in range(100):
        for kind in programs.EVERY:
            program = programs.planted(np.random.default_rng(seed), kind, "max", endless=True).program
            assert program.problem_class is kind
            sides = zip(np.isfinite(program.row_lower), np.isfinite(program.row_upper), strict=True)
            kinds |= {*sides, *(program.row_lower == program.row_upper).tolist()}
            kinds |= {"free"} if (np.isinf(program.lower) & np.isinf(program.upper)).any() else set()
    assert kinds >= {(True, True), (True, False), (False, True), True, "free"}


def test_the_optimum_of_a_knapsack_is_that_of_all_subsets():
    for seed in range(5):
        known = programs.knapsack(np.random.default_rng(seed), MILP, items=12)
        points = np.array(list(itertools.product((0.0, 1.0), repeat=12)))
        fits = (points @ rows_of(known.program).T <= known.program.row_upper).all(axis=1)
        assert known.optimum == (points[fits] @ known.program.objective).max()


def test_two_buyers_by_hand():
    own = programs.two_buyers([1, 1], [[2, 1], [1, 2]])
    assert own.optimum == pytest.approx(2 * math.log(2))
    assert own.duals.tolist() == [1.0, 1.0]
    # One good, shared as the budgets are; its price is all the money there is.
    one = programs.two_buyers([3, 1], [[2], [5]])
    assert one.optimum == pytest.approx(3 * math.log(3 / 4 * 2) + math.log(1 / 4 * 5))
    assert one.duals.tolist() == pytest.approx([4.0])
    # Buyer 0 has all of good 0 and 1/4 of good 1; per worth both goods cost him the same.
    split = programs.two_buyers([5, 3], [[4, 4], [1, 3]])
    assert split.duals.tolist() == pytest.approx([4.0, 4.0])
    assert split.optimum == pytest.approx(5 * math.log(5.0) + 3 * math.log(9 / 4))


def test_prices_are_those_of_an_equilibrium():
    """Budgets are spent, and nobody buys what costs more per worth than something else."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        budgets, worth = rng.integers(1, 6, 2), rng.integers(1, 8, (2, int(rng.integers(1, 5))))
        known = programs.two_buyers(budgets.tolist(), worth.tolist())
        assert known.duals.sum() == pytest.approx(budgets.sum())
        slopes = (known.duals / worth).min(axis=1)  # what a unit of worth costs each buyer
        assert known.program.linear_bound(known.duals, slopes) == pytest.approx(known.optimum)


def test_a_split_market_has_the_point_it_was_drawn_around():
    for kind in (MILP, MILOG):
        program, plan = programs.market_split(np.random.default_rng(1), kind)
        assert program.residuals_at(program.encode(plan)).worst == 0.0


def test_a_backend_that_is_lost_in_another_process_is_caught(tmp_path, monkeypatch):
    (tmp_path / "homesick_solver.py").write_text(
        "import os\n"
        "import equipoise as eq\n"
        "from equipoise.solvers.backend import Answer, Claim\n"
        "from equipoise.solvers.external.highs import Highs\n\n\n"
        "class Homesick(Highs):\n"
        "    name = 'homesick'\n\n"
        "    def __init__(self):\n"
        "        self.home = os.getpid()\n\n"
        "    def solve(self, task, options, on_progress):\n"
        "        if os.getpid() != self.home:\n"
        "            return Answer(claim=Claim.STOPPED, limit=eq.Limit.NODES)\n"
        "        return super().solve(task, options, on_progress)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (row,) = check_backend(importlib.import_module("homesick_solver").Homesick(), cases=["isolated-MILP"]).rows
    assert row.outcome == "failed"
    assert row.detail.startswith("OPTIMAL in this process, NO_SOLUTION_FOUND (nodes limit)")
    assert row.detail.endswith("in one of its own")


def test_a_backend_that_cannot_travel_is_not_isolated():
    class Local(Broken):
        pass

    (row,) = check_backend(Local(), cases=["isolated-LP"]).rows
    assert row.outcome == "skipped"
    assert "cannot be passed to a separate process" in row.detail
