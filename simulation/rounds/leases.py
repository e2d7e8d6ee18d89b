"""Which GPUs a job gets in a round, and whether it keeps those of the round before: leases."""

from __future__ import annotations

from collections.abc import Sequence


class GpuLeases:
    """Gives jobs GPUs by number, and remembers them for one round.

    Notes
    -----
    Type by type, wide jobs first. Among jobs of one width, first each that ran on this type in the round before keeps
    its GPUs if none of them is taken by now, which extends its lease; then the others take the lowest free numbers.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        """Start with GPUs 0 to M_k - 1 of each type, all free."""
        self._counts = tuple(counts)
        self._before: dict[int, tuple[int, tuple[int, ...]]] = {}

    def assign(self, runs: Sequence[tuple[int, int, int]]) -> list[tuple[tuple[int, ...], bool]]:
        """Return the GPUs of each (job's number, GPU type, gang) of a round, and whether its lease is extended."""
        before = self._before
        now: dict[int, tuple[int, tuple[int, ...]]] = {}
        answer: list[tuple[tuple[int, ...], bool]] = [((), False)] * len(runs)
        free = [[True] * count for count in self._counts]
        lowest = [0] * len(free)
        by_size: dict[int, list[int]] = {}
        for index, (_, _, gang_gpus) in enumerate(runs):
            by_size.setdefault(gang_gpus, []).append(index)
        for gang_gpus in sorted(by_size, reverse=True):
            others = []
            for index in by_size[gang_gpus]:
                job, gpu_type, _ = runs[index]
                held = before.get(job)
                if held is None or held[0] != gpu_type or not all(free[gpu_type][gpu] for gpu in held[1]):
                    others.append(index)
                    continue
                for gpu in held[1]:
                    free[gpu_type][gpu] = False
                answer[index] = (held[1], True)
                now[job] = held
            for index in others:
                job, gpu_type, _ = runs[index]
                gpus: list[int] = []
                gpu = lowest[gpu_type]
                while len(gpus) < gang_gpus:
                    if free[gpu_type][gpu]:
                        free[gpu_type][gpu] = False
                        gpus.append(gpu)
                    gpu += 1
                lowest[gpu_type] = gpu
                answer[index] = (tuple(gpus), False)
                now[job] = (gpu_type, tuple(gpus))
        self._before = now
        return answer
