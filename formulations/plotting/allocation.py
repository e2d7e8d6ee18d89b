"""A plan of a market as one picture: what every good costs, and who gets it, over rounds or over goods."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats, Indices

# What one picture can hold; of more, the buyers who spend most, the dearest goods and the first rounds, and it says so.
MOST_BUYERS, MOST_BARS, MOST_PANELS = 7, 60, 6
# Okabe and Ito's colours, which stay apart under all common kinds of colour blindness; the last is for all others.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b9a800", "#9aa3af")
# Sizes in pixels.
_LEFT, _WIDTH, _RIGHT, _TOP = 64, 640, 130, 30
_PRICES, _SHARES, _BETWEEN, _PANEL_GAP = 70, 130, 22, 52
_STYLE = (
    "svg{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:#1b2330;background:#fff}"
    "text{fill:currentColor}.soft{opacity:.65}.axis{stroke:currentColor;opacity:.3}"
    "@media(prefers-color-scheme:dark){svg{color:#e6ebf2;background:#171e27}}"
)


@dataclass(frozen=True)
class _Panel:
    """One row of the picture: prices (bars,), if there are any, over amounts (buyers, bars), with labels under them."""

    title: str
    prices: Floats | None
    amounts: Floats
    labels: Sequence[int]
    axis: str


def picture(allocation: Any, prices: Floats | None, weights: Floats, who: str = "buyer") -> str:
    """Return an SVG document: a panel of prices above a panel of stacked allocations.

    A static market is one panel over goods, a volatile one a panel for each resource over rounds. The seven buyers of
    most weight have a colour of their own, the others share one.

    Parameters
    ----------
    allocation : ndarray or csr_array of float, shape (N, K) or (N, J, T)
    prices : ndarray of float, shape (K,) or (J, T), or None
    weights : ndarray of float, shape (N,)
        What the buyers spend, say.
    who : str
        What a buyer is called.
    """
    shown = np.sort(np.argsort(-weights, kind="stable")[:MOST_BUYERS])
    names = [f"{who} {i}" for i in shown] + ["others"] * (len(weights) > len(shown))
    panels = list(_panels(allocation, prices, shown))
    each = _height(prices)
    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + len(panels) * each
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>Allocation of {len(weights)} {who}s</title><style>{_STYLE}</style>",
    ]
    for row, name in enumerate(names):
        x, y = _LEFT + _WIDTH + 16, _TOP + 18 * row
        parts += [_bar(x, y + 10, 10, 10, _colour(name, row), name), _text(x + 16, y + 10, name)]
    for k, panel in enumerate(panels):
        parts += _drawn(panel, _TOP + k * each, names)
    if allocation.ndim == 3 and allocation.shape[1] > MOST_PANELS:
        more = f"{allocation.shape[1] - MOST_PANELS} more resources are not shown"
        parts.append(_text(_LEFT, height - 8, more, "soft"))
    return "\n".join([*parts, "</svg>", ""])


def _height(prices: Floats | None) -> int:
    return (0 if prices is None else _PRICES + _BETWEEN) + _SHARES + _PANEL_GAP


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
    count = len(panel.labels)
    step, every = _WIDTH / count, -(-count // 20)
    bottom = top + _height(panel.prices) - _PANEL_GAP
    yield _text(_LEFT, top - 8, panel.title)
    if panel.prices is not None:
        dearest = float(panel.prices.max()) or 1.0
        yield from _axis(top + _PRICES, _PRICES, dearest, "price")
        for k, (label, price) in enumerate(zip(panel.labels, panel.prices, strict=True)):
            size, tip = _PRICES * price / dearest, f"{panel.axis} {label}: price {price:.4g}"
            yield _bar(_LEFT + (k + 0.1) * step, top + _PRICES, 0.8 * step, size, "#6b7684", tip)
    most = float(panel.amounts.sum(axis=0).max()) or 1.0
    yield from _axis(bottom, _SHARES, most, "amount")
    for k, label in enumerate(panel.labels):
        x, wide, y = _LEFT + (k + 0.1) * step, 0.8 * step, bottom
        for row, name in enumerate(names):
            amount = panel.amounts[row if name != "others" else -1, k]
            size = _SHARES * amount / most
            if size > 0.01:
                yield _bar(x, y, wide, size, _colour(name, row), f"{panel.axis} {label}, {name}: {amount:.4g}")
                y -= size
        if k % every == 0:
            yield _text(x + wide / 2, bottom + 14, str(label), "soft", "middle")
    yield _text(_LEFT + _WIDTH + 8, bottom + 14, panel.axis, "soft")


def _axis(y: float, height: float, limit: float, what: str) -> Iterator[str]:
    yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:g}" y2="{y:g}"/>'
    for place, word in ((y, "0"), (y - height + 9, f"{limit:.3g}"), (y - height / 2, what)):
        yield _text(_LEFT - 6, place, word, "soft", "end")


def _colour(name: str, row: int) -> str:
    return COLOURS[-1] if name == "others" else COLOURS[row]


def _bar(x: float, bottom: float, width: float, height: float, colour: str, tip: str) -> str:
    """Return a rectangle that stands on `bottom` and says `tip` when pointed at."""
    place = f'x="{x:.2f}" y="{bottom - height:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f'<rect {place} fill="{colour}"><title>{html.escape(tip)}</title></rect>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" class="{kind}" text-anchor="{anchor}">{html.escape(text)}</text>'
