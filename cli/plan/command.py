"""`equipoise plan`, which solves one window and reports the plan, and `equipoise schema`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import print_status, print_text
from ..errors import NO_PLAN, OK, CommandError
from ..files import STANDARD_INPUT, check_target, write_text
from ..json_text import json_text
from ..options import BackendName, Json, SkipWide, deferred
from ..progress import SolveProgress
from .document import plan_document
from .instance import read_window
from .schema import SCHEMAS, schema_text

if TYPE_CHECKING:
    from ...formulations.window.problem import ScheduleWindow


@deferred
def plan_command(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE.json", help="The instance; - reads standard input.")],
    backend: BackendName = "auto",
    form: Annotated[
        str | None, typer.Option(help="Program given to a general backend: time_indexed or counts.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 15.0,
    rel_gap: Annotated[float, typer.Option(help="Stop at this gap.")] = 1e-4,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the plan as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the plan as a page.")] = None,
    skip_wide: SkipWide = False,
    as_json: Json = False,
) -> int:
    """Plan the next rounds of the jobs in INSTANCE.json."""
    check_target("--out", out)
    check_target("--html", html)
    if out is not None and html is not None and _same(out, html):
        raise CommandError(f"--out and --html both name {out}", "give them different files.")
    for option, target in (("--out", out), ("--html", html)):
        if target is not None and instance != STANDARD_INPUT and _same(Path(instance), target):
            raise CommandError(f"{option} {target}: would overwrite the instance", "choose another file.")
    window = read_window(instance, skip_wide=skip_wide)
    options = {"backend": backend, "form": form, "time_limit": time_limit, "rel_gap": rel_gap}
    return plan_window(window, html=html, out=out, as_json=as_json, **options)


@deferred
def schema_command(name: Annotated[str, typer.Argument(metavar="|".join(SCHEMAS))] = "instance") -> int:
    """Print the JSON Schema of the instances that `plan` reads or the plans it writes."""
    if name not in SCHEMAS:
        raise CommandError(f"no schema {name!r}", f"there are {' and '.join(SCHEMAS)}.")
    print_text(schema_text(name))
    return OK


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other) and not (other.exists() and not other.is_file())


def plan_window(
    window: ScheduleWindow, *, html: Path | None, out: Path | None = None, as_json: bool = False, **options: Any
) -> int:
    """Solve a window with the options of `solve`, print the summary or the JSON, and return the exit code.

    `html` and `out` are the files for the page and the JSON. CommandError comes after the document is printed and
    written, if there is no verified plan.
    """
    from ...solvers.result import TerminationReason
    from ...solvers.solve import solve

    with SolveProgress(window) as progress:
        result = solve(window, **options, on_progress=progress)
    document = json_text(plan_document(window, result)) if as_json or out is not None else ""
    if out is not None:
        write_text(out, document)
    if html is not None and result.plan is not None:
        write_text(html, result.plan.to_html(certificate=result.certificate()))
    if as_json:
        print_text(document)
    else:
        from .summary import print_summary

        print_summary(window, result)
    if result.plan is None or result.termination.reason is TerminationReason.NUMERICAL:
        what = "no plan" if result.plan is None else "no verified plan"
        raise CommandError(
            f"{what} after {result.wall_time:.1f} s: {result.termination}; bound {result.bound:.6g}",
            "give it longer with --time-limit, or another --backend.",
            code=NO_PLAN,
        )
    for target, what in ((out, "plan"), (html, "page")):
        if target is not None:
            print_status(f"wrote the {what} to {target}")
    return OK
