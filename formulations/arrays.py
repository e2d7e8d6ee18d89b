"""Types of the arrays that hold all data, and consecutive ranges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def ranges(lengths: Indices) -> Indices:
    """Return 0, ..., n - 1 for each n of `lengths`, one after another."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
