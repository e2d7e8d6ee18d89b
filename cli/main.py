"""The `equipoise` command: typer reads the options, `run` does the work and reports every failure in one line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer

from .backends import backends_command
from .bench.command import bench_app
from .compare.command import compare_command
from .console import print_error, print_text
from .demo import demo_command
from .errors import BROKEN_PIPE, INTERRUPTED, OK, explain, traceback_wanted
from .front import front_command
from .options import Action
from .plan.command import plan_command, schema_command
from .simulate.command import simulate_command
from .snapshot import snapshot_command
from .tune.command import tune_app
from .verify.command import verify_command

app = typer.Typer(
    name="equipoise",
    help="Plan which jobs of a GPU cluster run in which of the next rounds, with a proven bound.",
    epilog="Exit codes: 0 done, 1 failed here, 2 bad input, 3 no plan within the limit, 4 backend unavailable.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("plan")(plan_command)
app.command("snapshot", short_help="Make an instance from a trace, at one moment.")(snapshot_command)
app.command("simulate", short_help="Run a policy on a trace.")(simulate_command)
app.command("compare", short_help="Run several policies on a trace, side by side.")(compare_command)
app.command("backends", short_help="List the solvers, check them, or explain the choice for an instance.")(
    backends_command
)
app.command("schema", short_help="Print the JSON Schema of instances or plans.")(schema_command)
app.command("demo")(demo_command)
app.command("verify", short_help="Prove the theory, and test its properties on random problems.")(verify_command)
app.command("front", short_help="Write the page on which an operator chooses a point of a front.")(front_command)
app.add_typer(tune_app, name="tune")
app.add_typer(bench_app, name="bench")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> Action | None:
    if context.invoked_subcommand is None:
        return _print_version if version else partial(_print_help, context.get_help())
    return None


def _print_help(text: str) -> int:
    print_text(text + "\n")
    return OK


def _print_version() -> int:
    from .. import __version__

    print_text(f"equipoise {__version__}\n")
    return OK


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 2 bad input, 3 no plan, 4 no backend, 130 interrupted.

    The arguments, without the program's name, are those of the process by default. Every failure is one line and a hint
    on standard error. With EQUIPOISE_TRACEBACK=1 the traceback comes first.
    """
    try:
        with _warnings_as_lines():
            parsed = app(
                args=None if arguments is None else list(arguments), prog_name="equipoise", standalone_mode=False
            )
            code = parsed() if callable(parsed) else int(parsed or OK)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        if type(error).__name__ == "Abort":  # how older versions of typer report an interrupt
            return _interrupted()
        return _report(error, next(iter(sys.argv[1:] if arguments is None else arguments), ""))


def _interrupted() -> int:
    print_error("equipoise: interrupted\n")
    return INTERRUPTED


def _report(error: Exception, command: str) -> int:
    failure = explain(error, command)
    text = f"equipoise: error: {failure.line}\nhint: {failure.hint}\n"
    if traceback_wanted():
        import traceback

        text = "".join(traceback.format_exception(error)) + text
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    print_error(text)
    return failure.code


def _discard_output() -> None:
    """Point standard output at the null device, so that the interpreter's last flush does not fail as well."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        print_error(f"equipoise: warning: {' '.join(str(message).split())}\n")

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = show
        yield


def main() -> None:
    """Run the command with the arguments of this process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())


if __name__ == "__main__":
    main()
