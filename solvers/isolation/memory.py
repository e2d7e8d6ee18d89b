"""The memory that an isolated backend may use: the free memory of the machine and of this process's control groups."""

from __future__ import annotations

import resource
from pathlib import Path

# Share of the memory available at the start of the solve; the rest is left to the caller.
SHARE = 0.8
# A process that ended with at least this share of its limit in use is taken to have ended by the limit.
NEAR = 0.75

_MEMINFO = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
# By version of Linux's control groups: their folder, and the files with the limit and the use, in bytes.
_V1 = (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file")


def allowed_bytes(memory_gb: float | None) -> int | None:
    """Return the bytes of a limit in GB; for None a share of the available memory, or None if that is unknown."""
    if memory_gb is not None:
        return int(memory_gb * 1e9)
    available = available_bytes()
    return None if available is None else int(SHARE * available)


def available_bytes() -> int | None:
    """Return the memory that this process could still allocate (Linux), None if unknown."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        found = [int(lines["MemAvailable"].split()[0]) * 1024]
    except (OSError, KeyError, ValueError):
        return None
    try:
        groups = [line.split(":", 2) for line in _OWN_GROUPS.read_text().splitlines()]
    except OSError:
        groups = []
    for _, controllers, path in groups:
        if controllers in ("", "memory"):
            found += _left_in(path, *(_V1 if controllers else _V2))
    return min(found)


def ended_by_limit(limit: int | None, peak: int) -> bool:
    """Whether a process whose largest size was `peak` bytes ended by its limit, where that can be decided.

    The kernel includes the size of the parent at the start in the peak of a child; a peak below our own is
    inconclusive.
    """
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return limit is not None and peak > ours and peak >= NEAR * limit


def _left_in(path: str, root: Path, most: str, used: str, cache: str) -> list[int]:
    """Return the least memory left by a control group and its parents; cached files count as free."""
    left = []
    inner = root / path.strip("/")
    for folder in (inner, *inner.parents) if inner.is_relative_to(root) else ():
        if not folder.is_relative_to(root):
            break
        try:
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            limit, use = int((folder / most).read_text()), int((folder / used).read_text())
            left.append(max(0, limit - use + int(statistics.get(cache, 0))))
        except (OSError, ValueError):
            continue  # no such group here, or no limit ("max")
    return left
