"""The `equipoise` command: typer reads the options, `run` does the work and words every failure in one line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .bench.options import Action, Json, bench_app
from .errors import BROKEN_PIPE, INTERRUPTED, OK, CommandError, explain, traceback_wanted
from .simulate.options import compare_options, simulate_options

app = typer.Typer(
    name="equipoise",
    help="Plan which jobs of a GPU cluster run in which of the next rounds, with a proven bound.",
    epilog="Exit codes: 0 done, 1 failed here, 2 bad input, 3 no plan within the limit, 4 backend unavailable.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(bench_app, name="bench")

SkipWide = Annotated[bool, typer.Option("--skip-wide", help="Skip jobs wider than the cluster, with a warning.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> Any:
    if context.invoked_subcommand is None:
        return _print_version if version else partial(_print_help, context.get_help())
    return None


@app.command("plan")
def _plan(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE.json", help="The instance; - reads standard input.")],
    backend: Annotated[str, typer.Option(help="A name from `equipoise backends`, or auto.")] = "auto",
    form: Annotated[
        str | None, typer.Option(help="Program given to a general backend: time_indexed or counts.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 15.0,
    rel_gap: Annotated[float, typer.Option(help="Stop at this gap.")] = 1e-4,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the plan as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the plan as a page.")] = None,
    skip_wide: SkipWide = False,
    as_json: Json = False,
) -> Action:
    """Plan the next rounds of the jobs in INSTANCE.json."""
    from .plan.command import plan_instance

    return partial(
        plan_instance,
        instance,
        backend=backend,
        form=form,
        time_limit=time_limit,
        rel_gap=rel_gap,
        skip_wide=skip_wide,
        out=out,
        html=html,
        as_json=as_json,
    )


@app.command("snapshot", short_help="Make an instance from a trace, at one moment.")
def _snapshot(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="Shockwave's CSV, a CSV of durations, or Gavel's text.")
    ],
    at: Annotated[float, typer.Option(help="Seconds after the start of the trace.")],
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")],
    profiles: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of throughputs.csv, models.csv, accordion_rules.csv and gns_rules.csv, or builtin; "
            "by default the trace's own folder if it holds them, else builtin.",
        ),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Cluster whose throughputs to read [tacc].")] = None,
    predictor: Annotated[
        str, typer.Option(help="How remaining regimes are foreseen: restatement, bayes, greedy or oracle.")
    ] = "restatement",
    rounds: Annotated[int, typer.Option(help="Rounds in the window.")] = 20,
    round_s: Annotated[float, typer.Option(help="Seconds in a round.")] = 120.0,
    skip_wide: SkipWide = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write here, not on standard output.")] = None,
) -> Action:
    """Make an instance of the jobs of TRACE that are unfinished at one moment."""
    from .snapshot import snapshot_trace

    return partial(
        snapshot_trace,
        trace,
        at_s=at,
        gpus=gpus,
        profiles=profiles,
        cluster=cluster,
        predictor=predictor,
        rounds=rounds,
        round_s=round_s,
        skip_wide=skip_wide,
        out=out,
    )


app.command("simulate", short_help="Run a policy on a trace.")(simulate_options)
app.command("compare", short_help="Run several policies on a trace, side by side.")(compare_options)


@app.command("backends", short_help="List the solvers, check them, or say which one an instance gets.")
def _backends(
    check: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Run the contract on these backends: names, all, or MODULE:ATTRIBUTE for an object of your own.",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="INSTANCE.json", help="Say why auto takes or passes over each; - reads standard input."
        ),
    ] = None,
    form: Annotated[str | None, typer.Option(help="With --for: a program of the instance.")] = None,
    rel_gap: Annotated[float | None, typer.Option(help="With --for: the gap asked for [1e-4].")] = None,
    threads: Annotated[int | None, typer.Option(help="With --for: threads [1].")] = None,
    seed: Annotated[int | None, typer.Option(help="With --for and --check: the seed [0].")] = None,
    as_json: Json = False,
) -> Action:
    """List the solvers: which can run here, and why the others cannot."""
    from .backends import backends_command

    return partial(
        backends_command,
        check=check,
        instance=instance,
        form=form,
        rel_gap=rel_gap,
        threads=threads,
        seed=seed,
        as_json=as_json,
    )


@app.command("schema", short_help="Print the JSON Schema of instances or plans.")
def _schema(name: Annotated[str, typer.Argument(metavar="instance|plan")] = "instance") -> Action:
    """Print the JSON Schema of the instances that `plan` reads or the plans it writes."""
    return partial(_print_schema, name)


@app.command("demo")
def _demo(
    jobs: Annotated[int, typer.Option(help="Jobs to generate.")] = 60,
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")] = 32,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 0,
    html: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("demo.html"),
) -> Action:
    """Plan a generated cluster, print the plan and write it as a page."""
    from .demo import demo

    return partial(demo, jobs=jobs, gpus=gpus, seed=seed, html=html)


@app.command("verify", short_help="Prove the theory, and try what it promises on random problems.")
def _verify(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(metavar="[theorems|market|stochastic|window]...", help="What to verify; everything by default."),
    ] = None,
    examples: Annotated[int, typer.Option(help="Random problems of each kind.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the problems.")] = 0,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page to write [verify.html; none with --json].")
    ] = None,
    as_json: Json = False,
) -> Action:
    """Prove what can be proved, try the rest on random problems, and write a page; exit code 1 if anything fails."""
    from .verify.command import verify_command

    return partial(verify_command, subjects=subjects or [], examples=examples, seed=seed, html=html, as_json=as_json)


def _print_help(text: str) -> int:
    sys.stdout.write(text + "\n")
    return OK


def _print_version() -> int:
    from .. import __version__

    sys.stdout.write(f"equipoise {__version__}\n")
    return OK


def _print_schema(name: str) -> int:
    from .plan.schema import SCHEMAS, schema_text

    if name not in SCHEMAS:
        raise CommandError(f"no schema {name!r}", f"there are {' and '.join(SCHEMAS)}.")
    sys.stdout.write(schema_text(name))
    return OK


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 2 bad input, 3 no plan, 4 no backend, 130 interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; those of the process by default.

    Notes
    -----
    Every failure is one line and a hint on standard error. With EQUIPOISE_TRACEBACK=1 the traceback comes first.
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
    _complain("equipoise: interrupted\n")
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
    _complain(text)
    return failure.code


def _complain(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, AttributeError):
        pass  # nobody is listening; the exit code still speaks


def _discard_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not fail as well."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        _complain(f"equipoise: warning: {' '.join(str(message).split())}\n")

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
