"""All-reduces of a model's gradients layer by layer, and the part of their time that the backward pass hides."""

from __future__ import annotations

import numpy as np

from ...formulations.arrays import Floats
from .communication_table import CommunicationRow
from .interconnect import Network

#: Share of the backward pass in the computation of an iteration: it computes twice as much as the forward pass.
BACKWARD = 2.0 / 3.0
#: Bytes of a MB of gradients.
MB = 10**6


def layer_bytes(row: CommunicationRow) -> Floats:
    """Return the bytes of the layers' gradients in the order in which the backward pass makes them, shape (layers,).

    The largest layer, with the share `skew`, is the last one of the model and the first one of the backward pass; the
    others are equal.
    """
    shares = np.full(row.layers, (1.0 - row.skew) / max(1, row.layers - 1))
    shares[0] = row.skew if row.layers > 1 else 1.0
    return np.asarray(row.gradient_mb * MB * shares)


def layer_times_s(row: CommunicationRow, network: Network) -> Floats:
    """Return the seconds of each layer's all-reduce, shape (layers,), in the order of `layer_bytes`."""
    sizes = layer_bytes(row)
    first, other = network.all_reduce_s(sizes[0]), network.all_reduce_s(sizes[-1])
    return np.array([first, *[other] * (row.layers - 1)])


def ready_shares(layers: int) -> Floats:
    """Return when the gradient of each layer is ready, as a share of the computation of an iteration, shape (layers,).

    The backward pass is the last `BACKWARD` of the computation, and takes equally long for each layer.
    """
    return np.asarray(1.0 - BACKWARD * np.arange(layers - 1, -1, -1) / layers)


def exposed_s(times_s: Floats, compute_s: float) -> float:
    """Return the seconds of all-reduces that remain after the computation of an iteration.

    Parameters
    ----------
    times_s : ndarray of float, shape (layers,)
        Seconds of each layer's all-reduce. It starts when the layer's gradient is ready and the one before has ended.
    compute_s : float
        Seconds of computation of an iteration, positive.
    """
    end_s = 0.0
    for ready_s, time_s in zip((compute_s * ready_shares(len(times_s))).tolist(), times_s.tolist(), strict=True):
        end_s = max(end_s, ready_s) + time_s
    return max(0.0, end_s - compute_s)
