"""Calibration of the all-reduce model: the computation with which the time in one machine is the measured one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from .communication_table import MEASURED_GPUS, CommunicationRow
from .gradients import exposed_s, layer_times_s, ready_shares
from .interconnect import Network


@dataclass(frozen=True, kw_only=True)
class CalibratedModel:
    """Model of the all-reduce model, with its calibrated computation.

    Attributes
    ----------
    row : CommunicationRow
        The model's gradients, and its measurements.
    network : Network
        Dimensions, whose sizes are those of the placements asked for.
    compute_s : float
        Seconds of computation of an iteration on each GPU, on any number of GPUs.
    measured : float
        Measurement in one machine that was fitted: the ratio of exposed communication to computation, or the seconds of
        an iteration.
    residual : float
        Relative difference of the model's value from it.
    """

    row: CommunicationRow
    network: Network
    compute_s: float
    measured: float
    residual: float

    def exposed_s(self, sizes: Sequence[int]) -> float:
        """Return the seconds of exposed communication of an iteration, with so many nodes in each dimension."""
        return exposed_s(layer_times_s(self.row, self.network.resized(sizes)), self.compute_s)

    def ratio(self, sizes: Sequence[int]) -> float:
        """Return the exposed communication over the computation, with so many nodes in each dimension."""
        return self.exposed_s(sizes) / self.compute_s

    def iteration_s(self, sizes: Sequence[int]) -> float:
        """Return the seconds of an iteration, with so many nodes in each dimension."""
        return self.compute_s + self.exposed_s(sizes)


def calibrate(
    row: CommunicationRow, network: Network, *, gpus: int = MEASURED_GPUS, iteration_s: float | None = None
) -> CalibratedModel:
    """Scale the computation of a model until its time on the GPUs of one machine is the measured one.

    Parameters
    ----------
    row : CommunicationRow
        The model's gradients, and the ratio that was measured in one machine.
    network : Network
        The innermost dimension joins the GPUs of a machine.
    gpus : int
        GPUs of the measurement, at least 2.
    iteration_s : float, optional
        Measured seconds of an iteration. By default the measured ratio `row.machine` of exposed communication to
        computation is fitted.

    Returns
    -------
    CalibratedModel

    Raises
    ------
    InvalidInput
        If the measured ratio is 0, which no computation attains, or the measured time is no longer than that of the
        all-reduces.

    Notes
    -----
    With S_i the seconds of the all-reduces from the i-th layer on, and a_i the share of the computation after its
    gradient is ready, exposed communication is ``max_i (S_i - a_i c)``. So the computation c is ``max_i S_i / (r +
    a_i)`` for a ratio r, and ``min_i (t - S_i) / (1 - a_i)`` for an iteration of t seconds.
    """
    if not isinstance(row, CommunicationRow):
        raise InvalidInput("row", type(row).__name__, "must be a CommunicationRow")
    if not isinstance(network, Network):
        raise InvalidInput("network", type(network).__name__, "must be a Network")
    gpus = as_integer("gpus", gpus, minimum=2)  # one GPU does not communicate
    sizes = (gpus, *[1] * (len(network.dimensions) - 1))
    times_s = layer_times_s(row, network.resized(sizes))
    left_s, after = np.cumsum(times_s[::-1])[::-1], 1.0 - ready_shares(row.layers)
    if iteration_s is None:
        if row.machine == 0.0:
            raise InvalidInput("machine", row.machine, f"a ratio of 0 of {row.model} fits no finite computation")
        measured, compute_s = row.machine, float(np.max(left_s / (row.machine + after)))
    else:
        measured = as_real("iteration_s", iteration_s, above=0.0)
        compute_s = float(np.min((measured - left_s) / (1.0 - after)))
        if compute_s <= 0.0:
            raise InvalidInput("iteration_s", measured, f"the all-reduces alone take {left_s[0]:g} s")
    found_s = exposed_s(times_s, compute_s)
    predicted = found_s / compute_s if iteration_s is None else compute_s + found_s
    return CalibratedModel(
        row=row, network=network, compute_s=compute_s, measured=measured, residual=predicted / measured - 1.0
    )
