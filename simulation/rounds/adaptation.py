"""Run-time rules of batch-size adaptation in the rounds engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ..profiles.rules import Runs
from ..profiles.table import Profiles


class Adaptation:
    """Run-time rule of one job: that of its mode in the profiles, or a given `schedule` in its place.

    The rule is a step function: from `positions[i]` epochs on it requests `sizes[i]`. Positions ascend; before the
    first one the job keeps its initial size. A static job, a model that does not scale, and a job that starts at the
    largest size have no step unless a schedule is given.

    Notes
    -----
    After e = ceil(steps run / steps per epoch) epochs have begun, Accordion requests the initial size if e is critical
    (`Profiles.critical_epochs` with use="runtime") and the largest otherwise; GNS doubles as long as its rule for e
    or e + 1 exceeds the current size. A schedule requests the size of the epoch in progress. This epoch counts in e: a
    job within its tenth epoch has e = 10.
    """

    __slots__ = ("_doubles", "_initial", "_largest", "_positions", "_sizes")

    def __init__(
        self,
        profiles: Profiles,
        model: str,
        batch_size: int,
        gpus: int,
        mode: str,
        total_epochs: int,
        schedule: Runs | None = None,
    ) -> None:
        self._initial = batch_size
        self._largest = profiles.max_batch_sizes.get(model, 0)
        self._doubles = mode == "gns" and schedule is None
        # Positions are values of e: the step is in force from that e on.
        self._positions: Sequence[int] = ()
        self._sizes: Sequence[int] = ()
        if schedule is not None:
            self._positions = [finished + 1 for finished in accumulate(epochs for _, epochs in schedule[:-1])]
            self._sizes = [size for size, _ in schedule[1:]]
            return
        if mode == "static" or batch_size >= self._largest:
            return
        if mode == "gns":
            segments = profiles.gns.get((model, batch_size, gpus), ((0, batch_size),))
            self._sizes = [size for _, size in segments[1:]]
            # max(rule(e), rule(e + 1)): an increase comes one epoch early, a decrease on time.
            self._positions = [
                first - 1 if size > before else first for (_, before), (first, size) in pairwise(segments)
            ]
            return
        # Rounding to whole epochs can add one epoch to the job.
        critical = profiles.critical_epochs(model, batch_size, total_epochs + 2, use="runtime")
        steps = [(0, self._largest)]
        for first, end in critical:
            if steps[-1][0] == first:
                steps.pop()
            steps += [(first, batch_size), (end, self._largest)]
        self._positions = [position for position, _ in steps]
        self._sizes = [size for _, size in steps]

    def requested(self, batch_size: int, epochs_begun: int) -> int:
        """Return the size that the rule requests after this many epochs have begun; GNS doubles once per call."""
        step = bisect_right(self._positions, epochs_begun) - 1
        if step < 0:
            return batch_size
        size = self._sizes[step]
        if not self._doubles:
            return size
        return min(2 * batch_size, self._largest) if size > batch_size < self._largest else batch_size

    def reachable(self, total_epochs: int) -> tuple[int, ...]:
        """Return the sizes that a job of this many epochs can reach, ascending, including its initial one."""
        sizes = {self._initial}
        # The job has ended after its last whole epoch, so later steps do not apply.
        for position, size in zip(self._positions, self._sizes, strict=True):
            if position > total_epochs:
                break
            if not self._doubles:
                sizes.add(size)
                continue
            sizes.update(self._doublings(size))
        return tuple(sorted(sizes))

    def future(self, batch_size: int, finished: float, total: float) -> tuple[tuple[int, float], ...]:
        """Return the (batch size, epochs) regimes from `finished` to `total` epochs, without the engine's delay."""
        # ceil(p) >= position from p > position - 1 on.
        marks = [finished, *(position - 1.0 for position in self._positions if finished < position - 1.0 < total)]
        regimes: list[tuple[int, float]] = []
        size = batch_size
        for start, end in zip(marks, [*marks[1:], total], strict=True):
            step = bisect_right(self._positions, start + 1.0) - 1
            if step >= 0:
                size = max(size, *self._doublings(self._sizes[step])) if self._doubles else self._sizes[step]
            if regimes and regimes[-1][0] == size:
                regimes[-1] = (size, regimes[-1][1] + (end - start))
            elif end > start:
                regimes.append((size, end - start))
        return tuple(regimes)

    def _doublings(self, size: int) -> list[int]:
        """Return the sizes from the initial one by doubling until a GNS segment's size, or the largest, is reached."""
        sizes = [self._initial]
        while size > sizes[-1] < self._largest:
            sizes.append(min(2 * sizes[-1], self._largest))
        return sizes
