"""A type checker knows the plan's type of every formulation, and finds an option that does not exist."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install 'equipoise[dev]'"
)

PLANS = {
    "Program": "dict[str, numpy.ndarray[",
    "ScheduleWindow": "WindowPlan",
    "FisherMarket": "Equilibrium",
    "VolatileFisherMarket": "Equilibrium",
    "StochasticMarket": "StochasticPlan",
    "MaxMinFairness": "GpuShares",
    "HierarchicalFairness": "GpuShares",
    "MaxSumThroughput": "GpuShares",
    "MinTotalDuration": "GpuShares",
    "FinishTimeFairness": "GpuShares",
    "AlloxMatching": "AlloxPlan",
    "GoodputAllocation": "GoodputPlan",
    "PairSharing": "PairPlan",
    "GroupSharing": "SharingPlan",
    "GpuSharing": "SlotSchedule",
    "SearchProblem": "ParetoFront",
    "OpenShop": "ShopSchedule",
    "GangMakespan": "GangSchedule",
}
MISTAKES = {
    "a misspelt option of solve": "eq.solve(program, time_limt=1.0)",
    "a misspelt option of candidates": "eq.candidates(program, thread=1)",
    "an option of the wrong type": 'eq.solve(program, time_limit="1 s")',
    "a problem that is no formulation": "eq.solve(3)",
}
RIGHT = (
    "eq.solve(program, 'highs', form='matrix', time_limit=1, rel_gap=0, backend_options={'highs': {'presolve': 'off'}})"
)


@pytest.fixture(scope="module")
def checked(tmp_path_factory) -> list[str]:
    """Return what mypy says of a file with one solve by line: by line, the message, or nothing."""
    folder = tmp_path_factory.mktemp("types")
    # mypy takes a package by its folder's name, which is the clone's.
    (folder / "equipoise").symlink_to(Path(eq.__file__).resolve().parent, target_is_directory=True)
    head = ["import equipoise as eq", "program: eq.Program"]
    solves = [
        f"def f{i}(problem: eq.{name}) -> None: reveal_type(eq.solve(problem).plan)" for i, name in enumerate(PLANS)
    ]
    snippet = folder / "snippet.py"
    snippet.write_text("\n".join([*head, *solves, *MISTAKES.values(), RIGHT]), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--no-error-summary",
        "--config-file=",
    ]
    run = subprocess.run(
        [*command, "--cache-dir", str(folder / "cache"), str(snippet)],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(folder)},
        cwd=folder,
    )
    said = [""] * (len(head) + len(PLANS) + len(MISTAKES) + 1)
    for line, message in re.findall(r"^snippet\.py:(\d+): (.*)$", run.stdout, re.MULTILINE):
        said[int(line) - 1] += message
    assert not run.stderr, run.stderr
    return said[len(head) :]


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_type_follows_from_the_problems(checked, name):
    message = checked[list(PLANS).index(name)]
    revealed = re.search(r'Revealed type is "(.*)"', message)
    assert revealed is not None, message
    assert PLANS[name] in revealed[1].replace("builtins.", "")
    assert "| None" in revealed[1]
    assert "Any" not in revealed[1].removeprefix("dict")[:10]


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_a_type_error(checked, what):
    assert "error:" in checked[len(PLANS) + list(MISTAKES).index(what)]


def test_every_option_may_be_given(checked):
    assert checked[-1] == ""


def test_every_formulation_is_among_them():
    """So that the next one is added here."""
    from equipoise.formulations.program.formulation import Formulation

    public = {
        name for name in eq.__all__ if isinstance(cls := getattr(eq, name), type) and issubclass(cls, Formulation)
    }
    assert public - {"Formulation"} == set(PLANS)
