"""The choice of a backend: each is asked once, and no program is built that nobody reads."""

from collections import Counter

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.registry import all_backends
from equipoise.solvers.selection import ProblemInfo


def window() -> eq.ScheduleWindow:
    job = eq.WindowJob(id="a", gpus=1, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 90.0)])
    return eq.ScheduleWindow([job], gpus=1, rounds=3)


def log_program() -> eq.Program:
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1.0)
    build.add_logs([1.0], terms=[(0, x, 1.0)])
    return build.program()


@pytest.fixture
def probes(monkeypatch):
    """Count how often each backend is asked whether it can run here."""
    asked = Counter()
    for kind in {type(backend) for backend in all_backends()}:

        def counted(self, probe=kind.probe):
            asked[self.name] += 1
            return probe(self)

        monkeypatch.setattr(kind, "probe", counted)
    return asked


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("backend", ["auto", "highs"])
@pytest.mark.parametrize("problem", [window(), log_program()], ids=["window", "logarithms"])
def test_each_backend_is_asked_at_most_once_whether_it_can_run(probes, problem, backend, explain):
    result = eq.solve(problem, backend, explain=explain)
    assert result.plan is not None
    assert probes[result.backend] == 1
    assert max(probes.values()) == 1
    assert bool(result.candidates) is explain


def test_explained_or_not_the_same_backend_is_taken_with_its_version():
    for problem in (window(), log_program()):
        plain, explained = eq.solve(problem), eq.solve(problem, explain=True)
        (taken,) = [row for row in explained.candidates if row.taken]
        assert (plain.backend, plain.version) == (explained.backend, explained.version) == (taken.name, taken.version)
        assert explained.candidates == eq.candidates(problem)


def test_the_explanation_of_a_named_backend_is_what_auto_would_have_done():
    result = eq.solve(window(), "highs", explain=True)
    assert result.backend == "highs"
    assert [row.name for row in result.candidates if row.taken] == ["lagrangian"]


def test_no_program_is_built_that_is_not_read(monkeypatch):
    built = []
    program = eq.FisherMarket.program
    monkeypatch.setattr(eq.FisherMarket, "program", lambda self, form: built.append(form) or program(self, form))
    market = eq.FisherMarket(np.ones((2, 2)), [1.0, 2.0])
    assert eq.solve(market).form == "special"
    assert not built
    eq.solve(market, "highs")
    assert len(built) == 1


def test_a_problem_is_looked_at_once():
    info = ProblemInfo(log_program())
    assert info.program is info.program
    assert (info.kind, info.form, info.problem_class, info.program_size) == (
        "Program",
        "matrix",
        eq.ProblemClass.LOG,
        2,
    )
    with pytest.raises(eq.UnsupportedProblem, match="int"):
        ProblemInfo(3)
    with pytest.raises(eq.InvalidInput, match="counts"):
        ProblemInfo(log_program(), "counts")
