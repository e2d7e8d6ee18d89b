"""`equipoise plan`: solve one window and report it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import NO_PLAN, OK, CommandError
from ..files import STANDARD_INPUT, check_target, print_text, write_text
from ..json_text import json_text
from ..progress import SolveProgress
from .document import plan_document
from .instance import read_window

if TYPE_CHECKING:
    from ...formulations.window.problem import ScheduleWindow


def plan_instance(
    source: str,
    *,
    backend: str,
    form: str | None,
    time_limit: float,
    rel_gap: float,
    skip_wide: bool,
    out: Path | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Plan the instance in a file (or on standard input for "-") and return the exit code.

    Raises
    ------
    EquipoiseError
        For bad input, an unusable backend, or a target that cannot be written.
    """
    check_target("--out", out)
    check_target("--html", html)
    if out is not None and html is not None and _same(out, html):
        raise CommandError(f"--out and --html both name {out}", "give them different files.")
    for option, target in (("--out", out), ("--html", html)):
        if target is not None and source != STANDARD_INPUT and _same(Path(source), target):
            raise CommandError(f"{option} {target}: would overwrite the instance", "choose another file.")
    window = read_window(source, skip_wide=skip_wide)
    return plan_window(
        window,
        backend=backend,
        form=form,
        time_limit=time_limit,
        rel_gap=rel_gap,
        out=out,
        html=html,
        as_json=as_json,
    )


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other) and not (other.exists() and not other.is_file())


def plan_window(
    window: ScheduleWindow,
    *,
    backend: str,
    form: str | None,
    time_limit: float,
    rel_gap: float,
    out: Path | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Solve `window`, print the summary or the JSON, write the files asked for, and return the exit code."""
    from ...solvers.result import Reason
    from ...solvers.solve import solve

    with SolveProgress(window) as progress:
        result = solve(window, backend=backend, form=form, time_limit=time_limit, rel_gap=rel_gap, on_progress=progress)
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
    if result.plan is None or result.termination.reason is Reason.NUMERICAL:
        what = "no plan" if result.plan is None else "no verified plan"
        raise CommandError(
            f"{what} after {result.wall_time:.1f} s: {result.termination}; bound {result.bound:.6g}",
            "give it longer with --time-limit, or another --backend.",
            code=NO_PLAN,
        )
    for target, what in ((out, "plan"), (html, "page")):
        if target is not None:
            sys.stderr.write(f"equipoise: wrote the {what} to {target}\n")
    return OK
