"""Arithmetic of Pareto dominance: non-dominated points and hypervolume, less being better."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats


def nondominated(scores: Floats) -> NDArray[np.bool_]:
    """Return which rows no other row dominates, shape (P,): of equal rows the first; a row with nan is never one.

    Parameters
    ----------
    scores : ndarray of float, shape (P, m)
    """
    kept = np.zeros(len(scores), dtype=bool)
    chosen = np.empty((0, scores.shape[1]))
    # In lexicographic order (of equal rows the first comes first) only an earlier row can dominate a later one.
    for row in np.lexsort(scores.T[::-1]):
        point = scores[row]
        if np.isfinite(point).all() and not (chosen <= point).all(axis=1).any():
            kept[row] = True
            chosen = np.vstack((chosen, point))
    return kept


def hypervolume(scores: Floats, ideal: Floats, reference: Floats) -> float:
    """Return the share of the box from `ideal` to `reference` that the points dominate, within [0, 1].

    Points beyond the reference dominate nothing of the box; coordinates below the ideal count as the ideal's.

    Parameters
    ----------
    scores : ndarray of float, shape (P, m)
        Points; rows with nan are left out.
    ideal, reference : ndarray of float, shape (m,)
        Corners of the box, ``ideal < reference``.
    """
    points = np.maximum((scores - ideal) / (reference - ideal), 0.0)
    points = points[(points < 1.0).all(axis=1)]
    return _dominated_volume(points[nondominated(points)])


def _dominated_volume(points: Floats) -> float:
    """Return the volume of the unit box that points within it dominate, by slices across the last coordinate."""
    if not len(points):
        return 0.0
    objectives = points.shape[1]
    if objectives == 1:
        return float(1.0 - points.min())
    if objectives <= 3:
        return _volume_over_cells(points if objectives == 3 else np.insert(points, 1, 0.0, axis=1))
    points = points[np.argsort(points[:, -1], kind="stable")]
    thickness = np.diff(points[:, -1], append=1.0)
    slices = (_dominated_volume(points[:count, :-1]) for count in range(1, len(points) + 1))
    return float(sum(each * volume for each, volume in zip(thickness, slices, strict=True)))


def _volume_over_cells(points: Floats) -> float:
    """Return the dominated volume of points of three coordinates: over each cell of two, the height of the third."""
    x, column = np.unique(points[:, 0], return_inverse=True)
    y, row = np.unique(points[:, 1], return_inverse=True)
    floor = np.ones((len(x), len(y)))
    np.minimum.at(floor, (column, row), points[:, 2])
    floor = np.minimum.accumulate(np.minimum.accumulate(floor, axis=0), axis=1)
    return float(np.diff(x, append=1.0) @ (1.0 - floor) @ np.diff(y, append=1.0))


def spread(points: Floats, count: int) -> NDArray[np.int64]:
    """Return the rows of at most `count` points that lie far from each other, ascending.

    The best point of each coordinate comes first; then always the point that is farthest from its nearest chosen one.

    Parameters
    ----------
    points : ndarray of float, shape (P, m)
        Points in units that can be compared.
    count : int
        At least 1.
    """
    if len(points) <= count:
        return np.arange(len(points))
    chosen = list(dict.fromkeys(points.argmin(axis=0).tolist()))[:count]
    nearest = np.min([np.linalg.norm(points - points[row], axis=1) for row in chosen], axis=0)
    while len(chosen) < count:
        nearest[chosen] = -1.0  # of equal points each is chosen once
        row = int(nearest.argmax())
        chosen.append(row)
        nearest = np.minimum(nearest, np.linalg.norm(points - points[row], axis=1))
    return np.sort(np.array(chosen, dtype=np.int64))
