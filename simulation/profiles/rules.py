"""Parts of profiles: critical epochs, and the columns that files and formulas provide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict


@dataclass(frozen=True)
class CriticalEpochs:
    """A stretch of critical epochs, first to last inclusive, repeated every `period` epochs (None: not repeated)."""

    first: int
    last: int
    period: int | None = None


class ProfileColumns(TypedDict):
    """Constructor arguments of `Profiles`; see its parameters."""

    name: str
    rates: Mapping[tuple[str, int, int], float]
    dataset_sizes: Mapping[str, int]
    max_batch_sizes: Mapping[str, int]
    accordion: Mapping[tuple[str, int | None, str], tuple[CriticalEpochs, ...]]
    gns: Mapping[tuple[str, int, int], tuple[tuple[int, int], ...]]
    gns_last_epoch_returns: NotRequired[bool]
