"""What a search reports: its named picks as a table, and all of it as a JSON document."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...formulations.search.front import ParetoFront
from ...formulations.text import duration_text
from ..console import console, new_table, printable

if TYPE_CHECKING:
    from ...solvers.result import Result


#: The limit of a search that Ctrl-C ended.
INTERRUPTED_BY = "interrupted"


@dataclass(frozen=True, kw_only=True)
class EndedSearch:
    """What a search has found, the limit that ended it, and its effort."""

    front: ParetoFront
    limit: str | None
    evaluations: int
    wall_s: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: Result[ParetoFront]) -> EndedSearch:
        """Return that of the result of `solve`; NoSolution if it has no front."""
        limit = result.termination.limit
        return cls(
            front=result.require_plan(),
            limit=None if limit is None else limit.value,
            evaluations=max((int(point.measures.get("evaluations", 0)) for point in result.history), default=0),
            wall_s=result.wall_time,
            notes=result.notes,
        )

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.limit == INTERRUPTED_BY


def document(front: ParetoFront, settings: Mapping[str, Any], ended: EndedSearch) -> dict[str, Any]:
    """Return one object: the settings, how the search ended, and the named picks of its front."""
    from ... import __version__

    return {
        "format": "equipoise.tuning/1",
        "version": __version__,
        **settings,
        "limit": ended.limit,
        "hypervolume": front.hypervolume,
        "evaluations": ended.evaluations,
        "points": len(front),
        "wall_s": round(ended.wall_s, 6),
        "notes": list(ended.notes),
        "picks": [
            {"pick": name, "point": point.index, "scores": dict(point.scores), "held_out": dict(point.held_out) or None}
            for name, point in front.named_picks.items()
        ],
    }


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
    stopped = {INTERRUPTED_BY: ", interrupted", "method": ""}.get(
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
