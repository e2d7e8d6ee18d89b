"""What a backend declares, and what the base class makes of it: probes, own options, former names."""

import math
import sys

import pytest

import equipoise as eq
from equipoise.solvers.backend import Answer, Availability, Backend, Claim, ignore_progress
from equipoise.solvers.deadline import Deadline
from equipoise.solvers.registry import BACKENDS, find_backend


class Plain(Backend):
    name = "plain"
    licence = "none"
    classes = frozenset({eq.ProblemClass.LP})

    def solve(self, task, options, on_progress):
        self.backend_options(options)
        return Answer(claim=Claim.STOPPED, limit=eq.Limit.METHOD)


def variant(**members):
    return type("Variant", (Plain,), members)()


def with_own(**own):
    return eq.Options(backend_options={"plain": own})


def test_a_backend_without_a_solve_is_none():
    with pytest.raises(TypeError, match="solve"):
        type("Half", (Backend,), {"name": "half", "licence": "none"})()


def test_a_backend_that_requires_nothing_can_run_anywhere():
    assert variant(version="3").probe() == Availability(True, "3")


def test_its_version_is_its_own_or_that_of_the_first_package():
    import numpy

    assert variant(requires=("numpy", "scipy")).probe().version == numpy.__version__
    assert variant(requires=("numpy>=1",), version="2").probe().version == "2"


def test_what_is_missing_or_too_old_is_named_with_what_to_do(monkeypatch):
    assert variant(requires=("no_such_package",)).probe().reason == (
        "no_such_package is not installed: pip install no_such_package"
    )
    by_extra = variant(requires=("no_such_package",), extra="more").probe()
    assert (by_extra.usable, by_extra.reason) == (
        False,
        "no_such_package is not installed: pip install 'equipoise[more]'",
    )
    monkeypatch.setattr("equipoise.solvers.backend._installed", lambda package: "1.9.3")
    old = variant(requires=("numpy>=1.10",)).probe()
    assert (old.usable, old.version) == (False, "1.9.3")
    assert old.reason == "numpy 1.9.3 is too old: pip install 'numpy>=1.10'"
    assert variant(requires=("numpy>=1.9",)).probe().usable
    assert variant(requires=("numpy>=1.9.4",)).probe().usable is False


def test_a_package_without_its_metadata_is_not_installed_completely(monkeypatch, tmp_path):
    (tmp_path / "half_installed.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    found = variant(requires=("half_installed",)).probe()
    assert "not installed completely" in found.reason
    assert not found.usable


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_a_probe_imports_no_solver(name):
    find_backend(name).probe()
    assert "ortools" not in sys.modules


def test_own_options_are_checked_in_one_place():
    tuned = variant(covered_options={"MIPGap": "rel_gap"}, known_options=frozenset({"cuts", "depth"}))
    assert tuned.backend_options(with_own(cuts=3)) == {"cuts": 3}
    assert tuned.backend_options(eq.Options()) == {}
    with pytest.raises(eq.InvalidInput, match=r"\['plain'\]\['MIPGap'\] = 0.1: use rel_gap= instead"):
        tuned.backend_options(with_own(MIPGap=0.1))
    with pytest.raises(eq.InvalidInput, match=r"\['plain'\]\['cutz'\] = 3: its options are cuts, depth"):
        tuned.backend_options(with_own(cutz=3))
    with pytest.raises(eq.InvalidInput, match=r"\['plain'\]\['cuts'\] = 3: it has no options"):
        variant().backend_options(with_own(cuts=3))
    with pytest.raises(eq.InvalidInput, match="use time_limit= instead"):
        tuned.backend_options(with_own(time_limit=3.0))
    whatever = variant(covered_options={"MIPGap": "rel_gap"}, known_options=None)
    assert whatever.backend_options(with_own(cuts=3)) == {"cuts": 3}
    with pytest.raises(eq.InvalidInput, match="use rel_gap= instead"):
        whatever.backend_options(with_own(MIPGap=0.1))


@pytest.mark.parametrize("name", [name for name in sorted(BACKENDS) if find_backend(name).covered_options])
def test_every_covered_option_names_a_common_one(name):
    backend = find_backend(name)
    for own, common in backend.covered_options.items():
        assert hasattr(eq.Options(), common)
        with pytest.raises(eq.InvalidInput, match=f"use {common}= instead"):
            backend.backend_options(eq.Options(backend_options={name: {own: 1}}))


FORMER = {
    "honours": ("supported_options", frozenset({"log"})),
    "uses": ("delegates_to", frozenset({"highs"})),
    "takes_tangents": ("supports_outer_approximation", False),
    "defers": ("skip_reason", lambda self, problem, options: "not today"),
}


@pytest.mark.parametrize("old", FORMER)
def test_a_former_name_warns_and_counts(old):
    new, value = FORMER[old]
    with pytest.warns(DeprecationWarning, match=rf"Older\.{old} of a Backend is called {new} now"):
        older = type("Older", (Plain,), {old: value})
    assert older.__dict__[new] is value
    if old == "defers":
        assert older().skip_reason(None, eq.Options()) == "not today"


def test_own_of_the_options_warns():
    with pytest.warns(DeprecationWarning, match="backend_options"):
        assert with_own(cuts=3).own("plain", {}) == {"cuts": 3}


def test_progress_can_be_ignored_in_every_form():
    assert ignore_progress(1.0, 2.0) is None
    assert ignore_progress(objective=None, bound=math.inf, incumbent=[1.0]) is None


def test_a_deadline_without_a_limit_never_passes():
    never = Deadline.of(eq.Options())
    assert (never.passed, never.left(), never.options().time_limit) == (False, None, None)


def test_a_deadline_counts_down_to_zero_and_not_below(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    deadline = Deadline.of(eq.Options(time_limit=5.0, seed=3))
    assert (deadline.passed, deadline.left()) == (False, 5.0)
    clock[0] = 103.5
    assert deadline.left() == 1.5
    assert (deadline.options().time_limit, deadline.options().seed) == (1.5, 3)
    clock[0] = 105.0
    assert (deadline.passed, deadline.left()) == (True, 0.0)
    clock[0] = 200.0
    assert deadline.options().time_limit == 0.0
    assert Deadline.of(eq.Options(time_limit=0.0)).passed
