"""Interference ratios of pairs of jobs, as a picture."""

from __future__ import annotations

import re
from os import PathLike

import numpy as np

from ....formulations.files import written
from ....formulations.plotting.svg import bar, document, short, text
from ..interference import PairTable

_CELL, _NAMES, _TOP, _RIGHT, _FOOT = 20, 240, 56, 16, 40
# A ratio of this much or more has the full colour.
_FULL_RATIO = 3.0
_LIGHTEST, _DARKEST = 96.0, 38.0


def pair_ratio_picture(
    table: PairTable, *, title: str = "Interference ratios", path: str | PathLike[str] | None = None
) -> str:
    """Return the ratio of each job (row) beside each other (column) as SVG: the darker, the slower.

    A ratio of 1 is almost white, one of 3 or more has the full colour; a pair that the table lacks stays empty.
    Tips show both names and the ratio.

    Parameters
    ----------
    table : PairTable
    title : str
    path : path, optional
        File to write as well.
    """
    # Numbers in names count as numbers: batch size 5 before 10.
    names = sorted(
        {name for pair in table.ratios for name in pair},
        key=lambda name: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)],
    )
    known = np.array(list(table.ratios.values()))
    quarters = ", ".join(f"{value:.2f}" for value in np.percentile(known, (25, 50, 75)))
    parts = [
        text(8, 16, f"{title}: {len(known)} of {len(names) ** 2} pairs"),
        text(8, 34, f"quartiles {quarters}; at most {known.max():.2f}", "quiet"),
    ]
    for row, mine in enumerate(names):
        y = _TOP + _CELL * row
        parts.append(text(_NAMES - 8, y + 14, short(mine, 34), anchor="end"))
        for column, other in enumerate(names):
            ratio = table.ratios.get((mine, other))
            if ratio is not None:
                share = min(1.0, (ratio - 1.0) / (_FULL_RATIO - 1.0))
                colour = f"hsl(210,75%,{_LIGHTEST + (_DARKEST - _LIGHTEST) * share:.0f}%)"
                tip = f"{mine} beside {other}: {ratio:.2f}"
                parts.append(bar(_NAMES + _CELL * column, y, _CELL - 1, _CELL - 1, colour, tip))
    bottom = _TOP + _CELL * len(names)
    parts.append(text(_NAMES, bottom + 18, "columns: the other job, in the order of the rows", "quiet"))
    return written(document(_NAMES + _CELL * len(names) + _RIGHT, bottom + _FOOT, title, parts), path)
