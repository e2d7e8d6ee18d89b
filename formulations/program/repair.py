"""Repair of multipliers that prove no bound, or a weak one: they are moved to the nearest that prove a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .data import ProgramData
from .duality import EPSILON, Duality, Multipliers, allowed

# Thresholds of a repair, tried in order: multipliers below the fault times a threshold become 0.
DUST = (10.0, 100.0, 1000.0)
# Steps of a repair with one threshold.
MOST_STEPS = 15
# Largest relative change in a scaling of all multipliers instead of a repair; it weakens the bound as much.
MOST_SCALING = 1e-12
# Number of roundings by which a reduced cost is moved off 0; a larger fault is more than rounding.
MARGIN = 4.0
# Regularisation of the equations of a repair, which dependent columns make singular; the next step corrects for it.
DAMPING = 1e-13
# Limit, as a share of the largest multiplier, of the change of a zero multiplier that may have either sign.
FREEDOM = 1e-3


def repaired(duality: Duality, wanted: Duality, given: Multipliers) -> Multipliers:
    """Return multipliers near the given ones that prove a bound, if found.

    First no reduced cost may be against an infinite bound of `wanted`. Then reduced costs that rounding puts against an
    infinite bound of `duality` are moved further, to the side where the column's bound is finite.
    """
    scaled = _scaled(duality, given) if wanted is duality else given
    if scaled is not given:
        return scaled
    system = _System.of(duality, given)
    moved = _nearest(wanted, system, given)
    exact = duality.exact(moved)
    return _with_margins(duality, system, moved, exact) if duality.open_ended(moved, exact).any() else moved


def _scaled(duality: Duality, given: Multipliers) -> Multipliers:
    """Return multipliers scaled by rounding, if that suffices, as it does for costs of one sign."""
    exact = duality.exact(given)
    at_fault = duality.open_ended(given, exact)
    sizes = duality.rounding(given) + np.abs(exact[0])
    share = MARGIN * float((sizes[at_fault] / np.abs(duality.cost[at_fault])).max(initial=0.0))
    for factor in (1.0 - share, 1.0 + share) if share <= MOST_SCALING else ():
        scaled = Multipliers(factor * given.rows, factor * given.slopes)
        if not duality.open_ended(scaled, duality.exact(scaled)).any():
            return scaled
    return given


@dataclass(frozen=True)
class _System:
    """Multipliers of rows and of logarithms in use as one vector, and the matrix of their coefficients."""

    program: ProgramData
    used: NDArray[np.bool_]
    factors: Any
    typical: Floats
    free: NDArray[np.bool_]

    @classmethod
    def of(cls, duality: Duality, given: Multipliers) -> _System:
        """Return the system around the given multipliers."""
        from scipy.sparse import csr_array, vstack

        program, used, lines = duality.program, given.slopes > 0, duality.program.log_matrix
        logs = csr_array((lines.values, lines.columns, lines.starts), shape=(len(used), len(duality.cost)))
        factors = vstack([program.to_scipy(), -logs[np.flatnonzero(used)]]).tocsr()
        start = np.concatenate([given.rows, given.slopes[used]])
        size = np.sqrt(np.asarray(factors.multiply(factors).sum(axis=1)).ravel())
        largest = float(max((np.abs(start) * size).max(initial=1e-300), np.abs(duality.cost).max(initial=0.0)))
        typical = largest / np.where(size > 0, size, np.inf)
        free = np.concatenate([program.row_lower == program.row_upper, np.zeros(int(used.sum()), dtype=bool)])
        return cls(program, used, factors, typical, free)

    def vector(self, multipliers: Multipliers) -> Floats:
        """Return the vector of multipliers, without their corrections."""
        return np.concatenate([multipliers.rows, multipliers.slopes[self.used]])

    def multipliers(self, vector: Floats) -> Multipliers:
        """Return the multipliers of a vector; the slopes of logarithms not in use are 0."""
        slopes = np.zeros(len(self.used))
        slopes[self.used] = vector[self.program.num_rows :]
        return Multipliers(allowed(self.program, vector[: self.program.num_rows]), slopes)

    def moved(self, vector: Floats, columns: NDArray[np.bool_], change: Floats) -> Floats:
        """Return a vector that lowers the reduced costs of `columns` by `change`, as far as no entry changes sign."""
        # The scale of each multiplier's change: its size, or a small share if it is 0 and of either sign.
        weight = np.abs(vector) + np.where(self.free, FREEDOM * self.typical, 0.0)
        moved = vector + weight * _shares(self.factors[:, np.flatnonzero(columns)], weight, change[columns])
        moved[np.abs(moved) <= EPSILON * self.typical] = 0.0
        return np.where(self.free | (moved * vector > 0), moved, 0.0)


def _nearest(duality: Duality, system: _System, given: Multipliers) -> Multipliers:
    """Return multipliers near the given ones whose reduced costs are against no infinite bound, up to rounding.

    Multipliers no larger than the fault are noise and become 0. The others change by the least relative amount that
    makes the reduced costs at fault 0: so none changes its sign, and rows with slack keep small ones. Reduced costs
    that come to be at fault are added to the equations.
    """
    start, rows = system.vector(given), len(given.rows)
    largest = system.typical * np.sqrt(np.asarray(system.factors.multiply(system.factors).sum(axis=1)).ravel())
    fault = float(np.abs(duality.reduced(given)[duality.endless(given, duality.reduced(given))]).max(initial=0.0))
    found = given
    for dust in DUST:
        z = np.where(np.abs(start) <= dust * fault / largest.max(initial=1e-300) * system.typical, 0.0, start)
        at_fault, counts = np.isinf(duality.lower) & np.isinf(duality.upper), []
        while (z[rows:] > 0).all():
            found = system.multipliers(z)
            reduced = duality.reduced(found)
            endless = duality.endless(found, reduced)
            if not endless.any():
                return found
            counts.append(int(endless.sum()))
            joined = bool((endless & ~at_fault).any())
            if len(counts) > MOST_STEPS or (len(counts) > 3 and not joined and counts[-1] > 0.9 * counts[-3]):
                break
            at_fault |= endless
            z = system.moved(z, at_fault, reduced)
    return found


def _with_margins(duality: Duality, system: _System, given: Multipliers, exact: Floats) -> Multipliers:
    """Return multipliers that move reduced costs next to 0 to the side where the column's bound is finite."""
    margin, reduced = MARGIN * duality.rounding(given), exact[0]
    below, above = np.isinf(duality.lower), np.isinf(duality.upper)
    near = (above & (reduced > -margin)) | (below & (reduced < margin))
    if not np.isfinite(reduced).all():
        return given
    target = np.where(below & above, 0.0, np.where(below, 2.0 * margin, -2.0 * margin))
    moved = system.multipliers(system.moved(system.vector(given), near, reduced - target))
    return moved if (moved.slopes[system.used] > 0).all() else given


def _shares(factors: Any, weight: Floats, wanted: Floats) -> Floats:
    """Return the least h with (weight h) @ factors = wanted, by the equations of its optimality."""
    from scipy.sparse import block_array, diags_array, eye_array
    from scipy.sparse.linalg import splu

    moving = np.flatnonzero(weight)
    scaled = (diags_array(weight[moving]) @ factors[moving]).tocsc()
    norm = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel())
    unit = np.where(norm > 0, 1.0 / np.where(norm > 0, norm, 1.0), 0.0)
    scaled = scaled @ diags_array(unit)
    m, n = scaled.shape
    system = block_array([[eye_array(m), scaled], [scaled.T, -DAMPING * eye_array(n)]]).tocsc()
    shares = np.zeros(len(weight))
    try:
        factored = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options={"SymmetricMode": True})
    except RuntimeError:  # singular in spite of the regularisation
        return shares
    shares[moving] = factored.solve(np.concatenate([np.zeros(m), wanted * unit]))[:m]
    return shares
