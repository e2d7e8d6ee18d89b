"""Actions of a policy of the placement engine."""

from __future__ import annotations

import math
from typing import NamedTuple


class Start(NamedTuple):
    """Start a waiting job on these GPUs, or renew the lease of a running job whose lease ends now.

    `batch_size` (samples per GPU and step) and `sub_batch` (samples per GPU at once, with gradient accumulation) are
    the job's own if None. After `lease_s` seconds the policy is called, and the job stops unless it is started again.
    """

    trace_index: int
    gpu_ids: tuple[int, ...]
    batch_size: int | None = None
    sub_batch: int | None = None
    lease_s: float = math.inf


class Move(NamedTuple):
    """Stop a running job and start it at once on other GPUs, or with another batch; the fields are those of `Start`."""

    trace_index: int
    gpu_ids: tuple[int, ...]
    batch_size: int | None = None
    sub_batch: int | None = None
    lease_s: float = math.inf


class Stop(NamedTuple):
    """Stop a running job; it waits until it is started again."""

    trace_index: int


class Wake(NamedTuple):
    """Call the policy at this time, in seconds."""

    time_s: float


Action = Start | Move | Stop | Wake
