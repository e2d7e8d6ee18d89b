"""What a search reports: its named picks as a table, and all of it as a JSON document."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formulations.search.front import ParetoFront
from ...formulations.text import duration_text
from ..console import console, new_table, printable

if TYPE_CHECKING:
    from ...solvers.result import Result


def document(result: Result[ParetoFront], front: ParetoFront, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return one object: the settings, how the search ended, and the named picks."""
    from ... import __version__

    limit = result.termination.limit
    return {
        "format": "equipoise.tuning/1",
        "version": __version__,
        **settings,
        "termination": result.termination.reason.name,
        "limit": None if limit is None else limit.value,
        "hypervolume": front.hypervolume,
        "evaluations": evaluations(result),
        "points": len(front),
        "wall_s": round(result.wall_time, 6),
        "notes": list(result.notes),
        "picks": [
            {"pick": name, "point": point.index, "scores": dict(point.scores), "held_out": dict(point.held_out) or None}
            for name, point in front.named_picks.items()
        ],
    }


def evaluations(result: Result[ParetoFront]) -> int:
    """Return the number of configurations that the search scored."""
    return max((int(point.measures.get("evaluations", 0)) for point in result.history), default=0)


def evidence(found: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a `document` that the page of its front states; those that are missing are left out."""
    facts = {name: found[name] for name in ("backend", "seed", "evaluations", "trace", "gpus") if name in found}
    if isinstance(found.get("wall_s"), int | float):
        facts["wall time"] = duration_text(found["wall_s"])
    return facts


def print_picks(front: ParetoFront) -> None:
    """Print a row for each named pick."""
    from rich.text import Text

    out, table = console(), new_table()
    table.add_column("pick")
    table.add_column("point", justify="right")
    held_out = ("", " held out") if front.held_out is not None else ("",)
    for suffix in held_out:
        for objective in front.objectives:
            table.add_column(Text(printable(f"{objective}{suffix}")), justify="right")
    for name, point in front.named_picks.items():
        scores = [point.scores, point.held_out][: len(held_out)]
        texts = [
            each.text(score) for some in scores for each, score in zip(front.objectives, some.values(), strict=True)
        ]
        table.add_row(name, str(point.index), *texts)
    out.print(table)
    sys.stdout.flush()


def print_summary(front: ParetoFront, found: Mapping[str, Any]) -> None:
    """Print the named picks, and how the search ended."""
    print_picks(front)
    out = console()
    stopped = {"interrupted": ", interrupted", "method": ""}.get(
        found["limit"], f", stopped by the limit on {found['limit']}"
    )
    out.print()
    for name, text in (
        ("hypervolume", f"{found['hypervolume']:.4f} of the box from the ideal to the reference point"),
        ("front", f"{found['points']:,} configuration{'' if found['points'] == 1 else 's'}"),
        ("search", f"{found['evaluations']:,} evaluations by {found['backend']}, seed {found['seed']}{stopped}"),
        ("wall time", duration_text(found["wall_s"])),
    ):
        out.print(f"{name:<14}{text}", soft_wrap=True)
    sys.stdout.flush()
