"""`equipoise compare`: several policies on one trace, as a table and a page; each is on disk once it is finished."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...formulations.checks import as_integer
from ..errors import OK, CommandError, explain
from ..files import check_target, print_text, write_text
from ..json_text import json_text
from ..progress import QUIET_S, Counted
from ..simulate.document import Finished, check_folder, document, plain, write_folder
from ..simulate.policy_spec import REFERENCE, PolicySpec, read_policies
from ..simulate.setting import Setting, check_engine, read_setting, tell
from .run import run_policies, workers_for

PAGE = Path("compare.html")
#: The policies of the paper's main figures.
PAPER = ("shockwave", "ossp", "themis", "gavel", "allox", "mst", "gandiva-fair")


def compare_command(
    trace: str,
    *,
    policies: list[str] | None,
    engine: str | None,
    seed: int,
    workers: int | None,
    out: Path | None,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Run the policies, print the table or the JSON, write page and folders, and return the exit code.

    Parameters
    ----------
    trace : str
        A file, or "generated".
    policies : list of str or None
        Lists of names; None: those of the paper, or all of an engine that has none of these.
    engine : str or None
        None: that of the first policy.
    seed : int
    workers : int or None
        Policies run at once.
    out : Path or None
        Folder for tables and page; one inside for each policy.
    html : Path or None
        The page; compare.html if nothing else is asked for.
    as_json : bool
    **options
        The others of `read_setting`.

    Raises
    ------
    EquipoiseError
        For bad input, or if every policy fails.
    KeyboardInterrupt
        After saying what is on disk.
    """
    check_engine(engine)
    if workers is not None:
        as_integer("--workers", workers, minimum=1)
    specs = read_policies(policies or default_policies(engine), seed, engine)
    setting = read_setting(trace, engine=str(specs[0].engine), seed=seed, **options)
    page = PAGE if html is None and out is None and not as_json else html
    check_target("--html", page)
    check_folder(out)
    comparison = Comparison(setting, specs, out, page)
    count, note = workers_for(workers, len(specs))
    if note:
        tell(note)
    try:
        _run(comparison, count)
    except KeyboardInterrupt:
        if comparison.finished:
            comparison.write()  # the interrupt may have come between two files
        tell(comparison.on_disk())
        raise
    _report(comparison, as_json=as_json)
    return OK


def default_policies(engine: str | None) -> Sequence[str]:
    """Return the policies of the paper's main figures that the engine has; all of the engine's if it has none."""
    from ...heuristics.registry import policies_of

    return PAPER if engine is None else [name for name in PAPER if name in policies_of(engine)] or ["all"]


def _report(comparison: Comparison, *, as_json: bool) -> None:
    """Print what is finished, and raise if a policy failed."""
    failed = comparison.failed
    if not comparison.finished and len({str(error) for error in failed.values()}) == 1:
        raise next(iter(failed.values()))  # a fault of the trace or the cluster, not of the policies
    if as_json:
        print_text(json_text(comparison.document()))
    elif comparison.finished:
        print_table(comparison)
    if comparison.writes:
        tell(comparison.on_disk())
    for label, error in failed.items():
        tell(f"{label}: {explain(error, 'compare').line}")
    if failed:
        failure = explain(next(iter(failed.values())), "compare")
        raise CommandError(f"{len(failed)} of {len(comparison.specs)} policies failed", failure.hint, failure.code)


def _run(comparison: Comparison, workers: int) -> None:
    specs = comparison.specs
    with Counted("policies" if workers > 1 else "jobs of all policies", QUIET_S) as counted:

        def on_step(number: int, time_s: float, completed: int, total: int) -> None:
            done = len(comparison.finished) + len(comparison.failed)
            counted(done * total + completed, total * len(specs))

        for spec, outcome in run_policies(comparison.setting, specs, workers=workers, on_step=on_step):
            comparison.add(spec, outcome)
            if workers > 1:
                counted(len(comparison.finished) + len(comparison.failed), len(specs))


class Comparison:
    """What is finished so far, in memory and on disk.

    Parameters
    ----------
    setting : Setting
    specs : sequence of PolicySpec
    out, page : Path or None
    """

    def __init__(self, setting: Setting, specs: Sequence[PolicySpec], out: Path | None, page: Path | None) -> None:
        self.setting = setting
        self.specs = specs
        self.failed: dict[str, Exception] = {}
        self._done: dict[str, Finished] = {}
        self._out = out
        self._page = page

    @property
    def finished(self) -> dict[str, Finished]:
        """The finished runs by label, in the order asked for."""
        return {spec.label: self._done[spec.label] for spec in self.specs if spec.label in self._done}

    @property
    def writes(self) -> bool:
        """Whether results go to disk."""
        return self._out is not None or self._page is not None

    @property
    def base(self) -> str:
        """The label that the others are compared with: the first Shockwave that finished, else the first policy."""
        finished = self.finished
        own = [label for label, each in finished.items() if each.spec.name == REFERENCE]
        return next(iter(own or finished))

    def add(self, spec: PolicySpec, outcome: Finished | Exception) -> None:
        """Keep an outcome, and write it down at once."""
        if not isinstance(outcome, Finished):
            self.failed[spec.label] = outcome
            if self._done:
                self.write()
            return
        if self._out is not None:
            from ..simulate.page import render

            write_folder(self._out / spec.folder, self.setting, outcome, render(self.setting, outcome))
        self._done[spec.label] = outcome
        self.write()

    def write(self) -> None:
        """Write what covers all finished policies: page, table and summary."""
        from .page import render

        page = render(self)
        if self._page is not None:
            write_text(self._page, page)
        if self._out is not None:
            import pandas as pd

            rows = [{"policy": label, **each.result.metrics} for label, each in self.finished.items()]
            write_text(self._out / "comparison.csv", pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))
            write_text(self._out / "page.html", page)
            write_text(self._out / "summary.json", json_text(self.document()))

    def document(self) -> dict[str, Any]:
        """Return one object: what was compared, and each policy's figures."""
        from ... import __version__

        common = {"format", "version", *self.setting.facts()}
        rows = []
        for each in self.finished.values():
            fields = document(self.setting, each)
            rows.append({key: value for key, value in fields.items() if key not in common})
        return {
            "format": "equipoise.comparison/1",
            "version": __version__,
            **self.setting.facts(),
            "relative_to": self.base if rows else None,
            "asked": [spec.label for spec in self.specs],
            "failed": {label: str(error) for label, error in self.failed.items()},
            "policies": rows,
        }

    def on_disk(self) -> str:
        """Return which results are on disk, and where."""
        places = [str(place) for place in (self._out, self._page) if place is not None]
        finished = self.finished
        names = ", ".join(finished)
        if not finished:
            return "no policy had finished; nothing was written"
        if not places:
            return f"finished, but not written (no --out, no --html): {names}"
        return f"wrote {len(finished)} of {len(self.specs)} policies ({names}) to {' and '.join(places)}"


def print_table(comparison: Comparison) -> None:
    """Print a row for each policy, the best of each column marked, with the ratio to the base in brackets."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from ..plan.summary import console

    out = console()
    setting = comparison.setting
    head = f"{len(setting.trace):,} jobs of {setting.trace_name} on {setting.total_gpus:,} GPUs"
    out.print(Text(f"{head}; in brackets, relative to {comparison.base}", style="bold"), soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("policy")
    for headline in setting.engine.headlines:
        table.add_column(headline.title, justify="right")
    for label, cells in table_rows(comparison).items():
        table.add_row(Text(label), *(Text(text, style="bold green" if best else "") for text, best in cells))
    out.print(table)
    sys.stdout.flush()


def table_rows(comparison: Comparison) -> dict[str, list[tuple[str, bool]]]:
    """Return for each policy its cells as (text, whether it is the column's best)."""
    finished = comparison.finished
    rows: dict[str, list[tuple[str, bool]]] = {label: [] for label in finished}
    for headline in comparison.setting.engine.headlines:
        values = {label: plain(float(each.result.metrics[headline.metric])) for label, each in finished.items()}
        known = [value for value in values.values() if value is not None]
        best = (min if headline.less_is_better else max)(known, default=None)
        base = values[comparison.base]
        for label, value in values.items():
            text = "-" if value is None else headline.form.format(value)
            if value is not None and base and headline.relative:
                text += f" ({value / base:.2f})"
            rows[label].append((text, value is not None and value == best and headline.less_is_better is not None))
    return rows
