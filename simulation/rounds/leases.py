"""Leases: assignment of numbered GPUs to jobs in a round, with GPUs of the preceding round kept if possible."""

from __future__ import annotations

from collections.abc import Sequence


class GpuLeases:
    """Assignment of numbered GPUs to jobs, with the leases of the preceding round.

    Notes
    -----
    Larger gangs go first. Among gangs of one size, each job that ran on this type in the preceding round keeps its
    GPUs if all of them are still free, which extends its lease; then the other jobs take the lowest free numbers.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = tuple(counts)
        self._before: dict[int, tuple[int, tuple[int, ...]]] = {}

    def assign(self, runs: Sequence[tuple[int, int, int]]) -> list[tuple[tuple[int, ...], bool]]:
        """Return the GPUs of each (job number, GPU type, gang) of a round, and whether its lease is extended."""
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
