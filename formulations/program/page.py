"""The page of a solve: its certificate, its progress, and the picture and table of its plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..plotting import html
from ..plotting.svg import Frame, document, legend, short, text, ticks
from ..text import distinguishing_digits, figure_text, gap_text
from .certificate import SolveCertificate

# Rows of the plan's table; of a plan that has none, characters.
MOST_ROWS, MOST_CHARACTERS = 500, 4_000
_LONGEST_NOTE = 2_000


class HistoryPoint(Protocol):
    """One moment of a solve: seconds since its start, the incumbent's objective (None: none yet) and the bound."""

    @property
    def time(self) -> float:
        """Seconds."""

    @property
    def objective(self) -> float | None:
        """Of the incumbent."""

    @property
    def bound(self) -> float:
        """Infinite while nothing is proved."""


def render(certificate: SolveCertificate, plan: Any, history: Sequence[HistoryPoint] = ()) -> str:
    """Return the page of a solve as ASCII text; equal arguments give equal text.

    The page needs neither a network nor a script. Of the plan, which may be None, it shows the picture if it has
    `to_svg`, the first 500 rows of its table if it has `to_frame`, its representation if it has neither.
    """
    name = "no plan" if plan is None else type(plan).__name__
    drawing = html.picture(plan.to_svg()) if hasattr(plan, "to_svg") else ""
    table = _table(plan.to_frame()) if hasattr(plan, "to_frame") else None
    progress = history_picture(history)
    return html.render(
        "formulations/program/page.html",
        title=f"{certificate.termination}: {name}",
        lead=_lead(certificate),
        tiles=_tiles(certificate),
        notes=[short(note, _LONGEST_NOTE) for note in certificate.notes],
        facts=_facts(certificate),
        history=html.picture(progress) if progress else "",
        drawing=drawing,
        table=table,
        other="" if drawing or table else short(repr(plan), MOST_CHARACTERS) if plan is not None else "No plan.",
    )


def proof_tiles(certificate: SolveCertificate) -> list[tuple[str, str, str]]:
    """Return the tiles of the objective and the gap as (name, figure, explanation)."""
    objective = math.nan if certificate.objective is None else certificate.objective
    digits = distinguishing_digits(objective, certificate.bound)
    how = ", ".join((certificate.termination, certificate.backend, _wall_time(certificate.wall_time)))
    return [
        ("Objective", figure_text(objective, digits), f"bound {figure_text(certificate.bound, digits)}"),
        ("Gap", gap_text(certificate.gap), how),
    ]


def history_picture(history: Sequence[HistoryPoint]) -> str:
    """Return an SVG document of incumbent and bound over time; empty if neither changes."""
    series = {
        "bound": _known((point.time, point.bound) for point in history),
        "objective of the incumbent": _known((point.time, point.objective) for point in history),
    }
    series = {name: points for name, points in series.items() if len(points)}
    if all(np.ptp(points[:, 1]) == 0 for points in series.values()):
        return ""
    times, values = np.concatenate(list(series.values())).T
    first, last, low, high = float(times.min()), float(times.max()), float(values.min()), float(values.max())
    if not first < last:
        return ""
    margin = 0.05 * (high - low)
    frame = Frame(
        left=96, top=26, width=434, height=190, x_start=first, x_limit=last, y_start=low - margin, y_limit=high + margin
    )
    step = float(np.diff(ticks(frame.y_limit, 4, frame.y_start)[:2])[0])
    digits = max(4, math.ceil(math.log10(max(abs(low), abs(high), step) / step)) + 2)
    parts = [text(frame.left, 15, "Objective and bound"), *frame.y_axis(f"{{:.{digits}g}}"), *frame.x_axis("seconds")]
    for number, (name, points) in enumerate(series.items()):
        shown = np.vstack([points, [last, points[-1, 1]]])
        parts.append(frame.steps(shown[:, 0], shown[:, 1], number, f"{name}, at last {points[-1, 1]:.8g}"))
    parts += legend(frame.left, frame.bottom + 46, list(series))
    return document(540, frame.bottom + 42 + 18 * len(series), "Objective and bound over time", parts)


def _known(points: Iterable[tuple[float, float | None]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the points whose value is finite, shape (n, 2)."""
    known = [(time, value) for time, value in points if value is not None and math.isfinite(value)]
    return np.array(known, dtype=np.float64).reshape(-1, 2)


def _lead(certificate: SolveCertificate) -> str:
    limit = f", stopped by the limit on {certificate.limit}" if certificate.limit else ""
    message = f": {certificate.message}" if certificate.message else ""
    return (
        f"Solved by {certificate.backend} (version {certificate.version or 'unknown'}), form {certificate.form},"
        f" seed {certificate.seed}{limit}{message}. Objective and residuals are recomputed from the problem's data"
        " and the plan."
    )


def _tiles(certificate: SolveCertificate) -> list[tuple[str, str, str]]:
    residuals = certificate.residuals
    worst = math.nan if residuals is None else max(residuals.bound, residuals.row, residuals.integrality)
    return [
        *proof_tiles(certificate),
        ("Largest residual", figure_text(worst, 3), "violation of a bound, a row or integrality"),
        ("Wall time", _wall_time(certificate.wall_time), "building, solving and checking"),
    ]


def _facts(certificate: SolveCertificate) -> dict[str, Any]:
    """Return the certificate's values, each with all its digits, as the template's table takes them."""
    residuals = certificate.residuals
    facts: dict[str, object] = {
        "termination": certificate.termination,
        "limit": certificate.limit,
        "objective": certificate.objective,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "residual of bounds": None if residuals is None else residuals.bound,
        "residual of rows": None if residuals is None else residuals.row,
        "residual of integrality": None if residuals is None else residuals.integrality,
        "backend": certificate.backend,
        "version": certificate.version,
        "form": certificate.form,
        "seed": certificate.seed,
        "wall time, s": certificate.wall_time,
    }
    rows = [[name, "\N{EN DASH}" if value is None else str(value)] for name, value in facts.items()]
    return {"heads": ["quantity", "value"], "rows": rows}


def _table(frame: Any) -> dict[str, Any] | None:
    """Return the first rows of a data frame, with its index if that has a name."""
    shown = frame.reset_index() if frame.index.name else frame
    if not len(shown):
        return None
    table = html.table({str(name): shown[name].head(MOST_ROWS).tolist() for name in shown.columns})
    return {**table, "more": len(shown) - len(table["rows"])}


def _wall_time(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
