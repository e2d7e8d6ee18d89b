"""The contract of a formulation: what it must declare, and what it gets without declaring it."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.program.data import Sense
from equipoise.formulations.program.formulation import Formulation
from equipoise.solvers.backend import Answer, Availability, Backend, Claim

PROBLEMS = [
    eq.AlloxMatching,
    eq.FinishTimeFairness,
    eq.FisherMarket,
    eq.GangMakespan,
    eq.GoodputAllocation,
    eq.GpuSharing,
    eq.GroupSharing,
    eq.HierarchicalFairness,
    eq.MaxMinFairness,
    eq.MaxSumThroughput,
    eq.MinTotalDuration,
    eq.OpenShop,
    eq.PairSharing,
    eq.Program,
    eq.ScheduleWindow,
    eq.SearchProblem,
    eq.StochasticMarket,
    eq.VolatileFisherMarket,
]


class Smallest(Formulation[dict]):
    """Minimise x within [2, 5]: as little as a formulation with a program can say."""

    sense = "min"
    forms = ("plain", "same")

    def program(self, form):
        build = eq.ProgramBuilder(sense="min")
        x = build.add_columns("x", (1,), lower=2.0, upper=5.0)
        build.set_objective([(x, [1.0])])
        return build.program()

    def decode(self, values, duals, form):
        return {"x": float(values[0]), "form": form}


class NoProgram(Formulation[float]):
    """Minimise the square of the plan itself; no program states it."""

    sense = "min"

    def evaluate(self, plan):
        return plan**2, eq.Residuals()


def test_every_exported_problem_is_a_formulation():
    exported = [getattr(eq, name) for name in eq.__all__]
    assert [each for each in exported if inspect.isclass(each) and issubclass(each, Formulation)] == PROBLEMS
    assert all(callable(getattr(each, "program", None)) for each in PROBLEMS)
    other = [each for each in exported if hasattr(each, "program") and each not in PROBLEMS]
    assert other == [eq.ProgramBuilder]


def test_without_a_sense_there_is_no_formulation():
    with pytest.raises(TypeError, match="Blind must declare its sense, 'max' or 'min'"):

        class Blind(Formulation):
            def evaluate(self, plan):
                return 0.0, eq.Residuals()


def test_a_sense_is_max_or_min():
    with pytest.raises(TypeError, match=r"Odd\.sense must be 'max' or 'min', not 'least'"):

        class Odd(Formulation):
            sense = "least"


@pytest.mark.parametrize("missing", ["program", "decode"])
def test_a_form_needs_a_program_and_a_way_back(missing):
    methods = {name: lambda self, *given: None for name in ("program", "decode") if name != missing}
    with pytest.raises(TypeError, match=f"Half has forms, and must define {missing}"):
        type("Half", (Formulation,), {"sense": "max", "forms": ("plain",), **methods})


def test_an_instance_may_have_a_sense_of_its_own():
    @dataclass
    class Either(Formulation):
        sense: Sense

    assert Either(sense="min").sense == "min"


def test_what_the_smallest_formulation_gets():
    problem, plan = Smallest(), {"x": 3.0}
    assert problem.kind == "Smallest"
    assert problem.class_of() is problem.class_of("same") is eq.ProblemClass.LP
    assert problem.program_size() is None
    assert problem.check_form(None) == "plain"
    assert problem.check_form("same") == "same"
    assert problem.check_plan(plan) is None
    assert problem.evaluate(plan) is None
    assert (problem.gap_scale(-4.0), problem.gap_scale(0.0)) == (4.0, 1e-9)
    assert not problem.proves_bounds
    assert problem.proved_bound(plan) is None
    assert problem.normalized(plan) is plan
    assert problem.improve(plan, {"x": 2.0}) is plan


def test_the_smallest_formulation_is_solved_in_each_form():
    for form, named in ((None, "plain"), ("same", "same")):
        result = eq.solve(Smallest(), "highs", form=form)
        assert result.termination.reason is eq.Reason.OPTIMAL
        assert result.plan == {"x": 2.0, "form": named}
        assert result.bound == result.objective == 2.0


def test_a_form_that_it_does_not_have_is_named():
    with pytest.raises(eq.InvalidInput, match="form = 'other': must be one of plain, same"):
        eq.solve(Smallest(), form="other")
    with pytest.raises(eq.InvalidInput, match="form = 'plain': a NoProgram has no program: leave form out"):
        eq.solve(NoProgram(), form="plain")


def test_a_warm_start_needs_encode():
    with pytest.raises(eq.UnsupportedProblem, match="leave the warm start out"):
        eq.solve(Smallest(), "highs", warm_start={"x": 3.0})


def test_a_problem_that_no_program_states_is_for_backends_that_read_it():
    problem = NoProgram()
    assert problem.class_of() is None
    for ask in (problem.check_form, problem.program):
        with pytest.raises(eq.UnsupportedProblem, match="no program states a NoProgram"):
            ask(None)
    with pytest.raises(eq.UnsupportedProblem, match="highs cannot state this NoProgram"):
        eq.solve(problem, "highs")

    class Zero(Backend):
        name, licence, formulations = "zero", "-", frozenset({"NoProgram"})

        def probe(self):
            return Availability(True, "1")

        def solve(self, task, options, on_progress):
            return Answer(claim=Claim.SOLVED, plan=0.5, bound=0.25)

    result = eq.solve(problem, Zero())
    assert (result.plan, result.objective, result.bound) == (0.5, 0.25, 0.25)
    assert result.termination.reason is eq.Reason.OPTIMAL


def test_no_other_object_is_solved():
    class Lookalike:
        sense, forms = "min", ("plain",)
        program, decode = Smallest.program, Smallest.decode

    for ask in (eq.solve, eq.candidates, eq.backends):
        with pytest.raises(eq.UnsupportedProblem, match="cannot solve a Lookalike: give a formulation or a Program"):
            ask(Lookalike())


def test_a_program_is_a_formulation_of_one_form():
    program = Smallest().program("plain")
    assert program.forms == ("matrix",)
    assert program.program("matrix") is program.program() is program
    assert program.class_of() is program.problem_class
    assert program.decode(np.array([2.5]))["x"].tolist() == [2.5]
    for call, given in ((program.program, ()), (program.decode, (np.zeros(1), None)), (program.encode, ({},))):
        with pytest.raises(eq.InvalidInput, match="must be one of matrix"):
            call(*given, form="shares")
