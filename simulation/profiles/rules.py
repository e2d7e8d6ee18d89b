"""Parts of profiles: modes of batch-size adaptation, runs at one size, critical epochs, and the columns of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict

MODES = ("static", "accordion", "gns")

# Successive (batch size, epochs) stretches of one job.
Runs = tuple[tuple[int, int], ...]


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


def extend_runs(runs: list[tuple[int, int]], batch_size: int, epochs: int) -> None:
    """Append epochs at one size, joining them to the last run if it has that size."""
    if epochs <= 0:
        return
    if runs and runs[-1][0] == batch_size:
        runs[-1] = (batch_size, runs[-1][1] + epochs)
    else:
        runs.append((batch_size, epochs))
