"""Every option is checked by name, type and range, before anything runs."""

import dataclasses
import inspect
import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.registry import BACKENDS


def knapsack() -> eq.Program:
    build = eq.ProgramBuilder(sense="max")
    take = build.add_binaries("take", shape=(3,))
    build.add_rows("room", shape=(1,), terms=[(0, take, [4, 2, 2])], upper=5)
    build.set_objective([(take, [5.0, 3.0, 3.0])])
    return build.program()


def window() -> eq.ScheduleWindow:
    jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 90.0)]) for i in "ab"]
    return eq.ScheduleWindow(jobs, gpus=1, rounds=3)


BAD = [
    ("time_limit", -1.0),
    ("time_limit", math.nan),
    ("time_limit", math.inf),
    ("time_limit", "5"),
    ("time_limit", True),
    ("rel_gap", -1e-9),
    ("rel_gap", math.nan),
    ("rel_gap", math.inf),
    ("rel_gap", None),
    ("rel_gap", "small"),
    ("abs_gap", -1.0),
    ("abs_gap", math.nan),
    ("abs_gap", math.inf),
    ("abs_gap", None),
    ("abs_gap", [0.0]),
    ("feasibility_tol", 0.0),
    ("feasibility_tol", 1e-10),
    ("feasibility_tol", 0.1),
    ("feasibility_tol", math.nan),
    ("feasibility_tol", None),
    ("threads", 0),
    ("threads", -2),
    ("threads", 1.5),
    ("threads", 1025),
    ("threads", True),
    ("threads", "4"),
    ("threads", None),
    ("seed", -1),
    ("seed", 2**31),
    ("seed", 0.5),
    ("seed", None),
    ("seed", math.nan),
    ("seed", True),
    ("log", 1),
    ("log", "yes"),
    ("log", None),
    ("backend_options", None),
    ("backend_options", [("highs", {})]),
    ("backend_options", "highs"),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name}={value!r}" for name, value in BAD])
def test_a_value_out_of_range_or_of_the_wrong_type_is_named(name, value):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.Options(**{name: value})
    assert caught.value.field == name
    assert name in str(caught.value)
    with pytest.raises(eq.InvalidInput):
        eq.solve(knapsack(), **{name: value})


EDGES = [
    ("time_limit", 0.0),
    ("time_limit", 1e9),
    ("time_limit", 3),
    ("time_limit", np.float64(2.0)),
    ("rel_gap", 0),
    ("rel_gap", 5.0),
    ("abs_gap", 0),
    ("abs_gap", 1e6),
    ("feasibility_tol", 1e-9),
    ("feasibility_tol", 1e-2),
    ("threads", 1),
    ("threads", 1024),
    ("threads", np.int64(2)),
    ("seed", 0),
    ("seed", 2**31 - 1),
    ("log", True),
    ("log", np.False_),
]


@pytest.mark.parametrize(("name", "value"), EDGES, ids=[f"{name}={value!r}" for name, value in EDGES])
def test_the_ends_of_every_range_are_allowed(name, value):
    assert getattr(eq.Options(**{name: value}), name) == value


def test_options_of_numpy_types_and_whole_floats_reach_the_backend():
    result = eq.solve(
        knapsack(),
        "highs",
        threads=np.int64(1),
        seed=3.0,
        rel_gap=np.float32(0.0),
        time_limit=np.int64(60),
        log=np.False_,
    )
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.objective == 6.0


MISSPELT = {
    "timelimit": "time_limit",
    "time_limt": "time_limit",
    "mip_rel_gap": "rel_gap",
    "Threads": "threads",
    "backend_option": "backend_options",
    "warmstart": "warm_start",
    "zzz": None,
}


@pytest.mark.parametrize("name", MISSPELT)
def test_an_unknown_option_is_refused_with_the_nearest_name(name):
    with pytest.raises(TypeError, match=name):
        eq.Options(**{name: 1})
    for ask in (eq.solve, eq.candidates):
        with pytest.raises(eq.InvalidInput, match="no such option") as caught:
            ask(knapsack(), **{name: 1})
        assert isinstance(caught.value, eq.UnknownOption)
        assert isinstance(caught.value, TypeError)
        assert (caught.value.field, caught.value.value) == (name, 1)
        hint = f"did you mean {MISSPELT[name]!r}?"
        assert (hint in str(caught.value)) is (MISSPELT[name] is not None)
        assert "feasibility_tol" in str(caught.value)


def test_a_misspelt_keyword_of_solve_itself_is_named_too():
    with pytest.raises(eq.UnknownOption, match="did you mean 'on_progress'"):
        eq.solve(knapsack(), onprogress=print)
    with pytest.raises(eq.UnknownOption, match="did you mean 'form'"):
        eq.candidates(knapsack(), forms="matrix")


def test_the_defaults_of_solve_and_candidates_are_those_of_options():
    for call in (eq.solve, eq.candidates):
        signature = inspect.signature(call).parameters
        for field in dataclasses.fields(eq.Options):
            assert signature[field.name].default == getattr(eq.Options(), field.name)
            assert signature[field.name].kind is inspect.Parameter.KEYWORD_ONLY


def test_options_are_keyword_only_and_frozen():
    with pytest.raises(TypeError):
        eq.Options(5.0)
    with pytest.raises(AttributeError):
        eq.Options().seed = 1


def test_with_time_changes_nothing_else():
    options = eq.Options(time_limit=9.0, rel_gap=0.5, seed=7, backend_options={"highs": {"presolve": "off"}})
    shorter = options.with_time(1.0)
    assert shorter.time_limit == 1.0
    assert options.time_limit == 9.0
    assert shorter.with_time(9.0) == options


COMMON = [
    ("highs", "time_limit", 1.0, "time_limit"),
    ("highs", "mip_rel_gap", 0.1, "rel_gap"),
    ("highs", "mip_abs_gap", 0.1, "abs_gap"),
    ("highs", "primal_feasibility_tolerance", 1e-7, "feasibility_tol"),
    ("highs", "mip_feasibility_tolerance", 1e-7, "feasibility_tol"),
    ("highs", "threads", 2, "threads"),
    ("highs", "random_seed", 2, "seed"),
    ("highs", "output_flag", True, "log"),
    ("highs", "log_to_console", True, "log"),
    ("scipy", "time_limit", 1.0, "time_limit"),
    ("scipy", "mip_rel_gap", 0.1, "rel_gap"),
    ("scipy", "disp", True, "log"),
]


@pytest.mark.parametrize(("backend", "name", "value", "common"), COMMON, ids=[f"{b}-{n}" for b, n, _, _ in COMMON])
def test_a_clash_of_a_specific_with_a_common_option_is_refused(backend, name, value, common):
    with pytest.raises(eq.InvalidInput, match=f"use {common}= instead") as caught:
        eq.solve(knapsack(), backend, backend_options={backend: {name: value}})
    assert backend in caught.value.field
    assert name in caught.value.field


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_options_of_one_backend_must_be_a_mapping(backend):
    with pytest.raises(eq.InvalidInput, match=backend):
        eq.Options(backend_options={backend: ["presolve"]})


def test_options_of_a_backend_that_was_not_chosen_are_refused():
    with pytest.raises(eq.InvalidInput, match="would be ignored"):
        eq.solve(knapsack(), "highs", backend_options={"scipy": {"presolve": False}})
    with pytest.raises(eq.InvalidInput, match="would be ignored"):
        eq.solve(window(), "lagrangian", backend_options={"scipy": {"presolve": False}})


def test_options_of_an_unknown_backend_are_refused():
    for backend in ("auto", "highs"):
        with pytest.raises(eq.BackendNotFound, match="highs"):
            eq.solve(knapsack(), backend, backend_options={"higs": {"presolve": "off"}})


def test_options_of_the_solver_that_a_special_backend_uses_pass_through():
    result = eq.solve(window(), "lagrangian", backend_options={"highs": {"presolve": "off"}})
    assert result.plan is not None
    assert result.backend == "lagrangian"


def test_auto_takes_options_for_whichever_backend_it_would_choose():
    result = eq.solve(knapsack(), backend_options={"highs": {"presolve": "off"}})
    assert result.backend == "highs"
    assert result.termination.reason is eq.Reason.OPTIMAL


def test_auto_does_not_trip_over_options_of_the_others():
    """They are for the case that the first choice cannot run here."""
    both = {"scipy": {"presolve": False}, "highs": {"presolve": "off"}}
    assert eq.solve(knapsack(), backend_options=both).backend == "highs"


def test_unknown_options_of_a_backend_are_refused():
    for backend in ("highs", "scipy"):
        with pytest.raises(eq.InvalidInput, match="no_such_option"):
            eq.solve(knapsack(), backend, backend_options={backend: {"no_such_option": 1}})
    with pytest.raises(eq.InvalidInput, match="no_such_option"):
        eq.solve(window(), "lagrangian", backend_options={"lagrangian": {"no_such_option": 1}})
