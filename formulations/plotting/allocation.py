"""The picture of a market's plan: prices of goods over amounts of buyers, by good or by round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats, Indices
from .svg import GREY, Frame, bar, bar_legend, document, rule, text

# Limits of one picture: beyond them it shows the buyers who spend most, the dearest goods and the first rounds.
# The colour after those of the buyers, a grey, is for all others.
MOST_BUYERS, MOST_BARS, MOST_PANELS = GREY, 60, 6
# Sizes in pixels.
_LEFT, _WIDTH, _RIGHT, _TOP = 64, 640, 130, 30
_PRICES, _AMOUNTS, _BETWEEN, _PANEL_GAP, _FOOT = 70, 130, 34, 62, 40


@dataclass(frozen=True)
class _Panel:
    """One row of the picture: prices (bars,), if there are any, over amounts (buyers, bars), with labels under them."""

    title: str
    prices: Floats | None
    amounts: Floats
    labels: Sequence[int]
    axis: str


def picture(allocation: Any, prices: Floats | None, weights: Floats, buyer: str = "buyer") -> str:
    """Return an SVG document: a panel of prices above a panel of stacked allocations.

    A static market is one panel over goods, a volatile one a panel for each resource over rounds. The seven buyers of
    most weight have a colour of their own, the others share one.

    Parameters
    ----------
    allocation : ndarray or csr_array of float, shape (N, K) or (N, J, T)
    prices : ndarray of float, shape (K,) or (J, T), or None
    weights : ndarray of float, shape (N,)
    buyer : str
        What a buyer is called.
    """
    shown = np.sort(np.argsort(-weights, kind="stable")[:MOST_BUYERS])
    names = [f"{buyer} {i}" for i in shown] + ["others"] * (len(weights) > len(shown))
    panels = list(_panels(allocation, prices, shown))
    each = (0 if prices is None else _PRICES + _BETWEEN) + _AMOUNTS + _PANEL_GAP
    height = _TOP + len(panels) * each - _PANEL_GAP + _FOOT
    series = [*range(len(shown)), *([GREY] if len(names) > len(shown) else [])]
    parts = list(bar_legend(_LEFT + _WIDTH + 16, _TOP + 6, names, series))
    for k, panel in enumerate(panels):
        parts += _drawn(panel, _TOP + k * each, names)
    if allocation.ndim == 3 and allocation.shape[1] > MOST_PANELS:
        more = f"{allocation.shape[1] - MOST_PANELS} more resources are not shown"
        parts.append(text(_LEFT, height - 8, more, "quiet"))
    return document(_LEFT + _WIDTH + _RIGHT, height, f"Allocation of {len(weights)} {buyer}s", parts)


def _panels(allocation: Any, prices: Floats | None, shown: Indices) -> Iterator[_Panel]:
    """Yield the panels; the last row of their amounts is of all buyers who are not shown."""
    if allocation.ndim == 2:
        worth = np.asarray(allocation.sum(axis=0)) if prices is None else prices
        dearest = np.sort(np.argsort(-worth, kind="stable")[:MOST_BARS])
        part = allocation[:, dearest]
        amounts = _rows(part if isinstance(part, np.ndarray) else part.toarray(), shown)
        few = f", the {len(dearest)} dearest of {len(worth)}" if len(dearest) < len(worth) else ""
        yield _Panel(
            f"Goods{few}", None if prices is None else prices[dearest], amounts, [int(k) for k in dearest], "good"
        )
        return
    total = allocation.shape[2]
    rounds = min(total, MOST_BARS)
    few = f", the first {rounds} of {total} rounds" if rounds < total else ""
    for j in range(min(allocation.shape[1], MOST_PANELS)):
        amounts = _rows(np.asarray(allocation)[:, j, :rounds], shown)
        own = None if prices is None else prices[j, :rounds]
        yield _Panel(f"Resource {j}{few}", own, amounts, list(range(rounds)), "round")


def _rows(amounts: Floats, shown: Indices) -> Floats:
    others = amounts.sum(axis=0) - amounts[shown].sum(axis=0)
    return np.vstack([amounts[shown], np.maximum(others, 0.0)])


def _drawn(panel: _Panel, top: float, names: Sequence[str]) -> Iterator[str]:
    """Yield the shapes of one panel."""
    step = _WIDTH / len(panel.labels)
    wide, every = 0.8 * step, -(-len(panel.labels) // 20)
    starts = [_LEFT + (k + 0.1) * step for k in range(len(panel.labels))]
    if panel.prices is not None:
        dearest = float(panel.prices.max()) or 1.0
        frame = Frame(left=_LEFT, top=top, width=_WIDTH, height=_PRICES, y_limit=dearest)
        yield from _axis(frame, f"{panel.title}: price")
        for x, label, price in zip(starts, panel.labels, panel.prices, strict=True):
            y = float(frame.y(price))
            yield bar(x, y, wide, frame.bottom - y, GREY, f"{panel.axis} {label}: price {price:.4g}")
        top = frame.bottom + _BETWEEN
    most = float(panel.amounts.sum(axis=0).max()) or 1.0
    frame = Frame(left=_LEFT, top=top, width=_WIDTH, height=_AMOUNTS, y_limit=most)
    yield from _axis(frame, f"{panel.title}: amount")
    for k, (x, label) in enumerate(zip(starts, panel.labels, strict=True)):
        y = frame.bottom
        for row, name in enumerate(names):
            series, amount = (GREY, panel.amounts[-1, k]) if name == "others" else (row, panel.amounts[row, k])
            size = _AMOUNTS * amount / most
            if size > 0.01:
                y -= size
                yield bar(x, y, wide, size, series, f"{panel.axis} {label}, {name}: {amount:.4g}")
        if k % every == 0:
            yield text(x + wide / 2, frame.bottom + 15, str(label), "quiet", "middle")
    yield text(frame.right + 8, frame.bottom + 15, panel.axis, "quiet")


def _axis(frame: Frame, title: str) -> Iterator[str]:
    yield text(frame.left, frame.top - 10, title)
    yield from frame.y_axis()
    yield rule(frame.left, frame.bottom, frame.right, frame.bottom, "base")
