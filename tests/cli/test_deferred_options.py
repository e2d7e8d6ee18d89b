"""Each command's options are written once: typer reads them from the function that does the work."""

import inspect
from typing import Annotated

import pytest
import typer

from equipoise.cli import main
from equipoise.cli.options import deferred
from equipoise.heuristics.registry import POLICIES
from equipoise.simulation.engines import ENGINES
from equipoise.solvers.registry import BACKENDS


def test_a_deferred_command_binds_its_options_and_works_only_when_called():
    worked = []

    @deferred
    def work(name: Annotated[str, typer.Argument()], twice: Annotated[bool, typer.Option("--twice")] = False) -> int:
        """Do the work.

        Raises
        ------
        ValueError
            Never.
        """
        worked.append((name, twice))
        return 7

    app = typer.Typer(rich_markup_mode=None)
    app.command()(work)
    action = app(["a", "--twice"], standalone_mode=False)
    assert worked == []
    assert action() == 7
    assert worked == [("a", True)]
    assert work.__doc__ == "Do the work."


def commands():
    groups = {"": main.app, **{group.name: group.typer_instance for group in main.app.registered_groups}}
    return {
        f"{name} {command.name}".strip(): command.callback
        for name, group in groups.items()
        for command in group.registered_commands
    }


@pytest.mark.parametrize("name", commands())
def test_every_command_is_the_function_that_does_its_work(name):
    command = commands()[name]
    work = inspect.unwrap(command)
    assert work is not command
    assert inspect.signature(work, eval_str=True).return_annotation is int
    assert inspect.getdoc(work).startswith(command.__doc__)


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [("simulate", "policy", POLICIES), ("compare", "engine", ENGINES), ("plan", "backend", BACKENDS)],
)
def test_the_help_names_what_the_registries_hold(command, option, names):
    (found,) = inspect.signature(commands()[command], eval_str=True).parameters[option].annotation.__metadata__
    assert all(name in found.help for name in names)
