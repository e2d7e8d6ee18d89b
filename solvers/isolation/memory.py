"""How much memory an isolated backend may take: what is free here, and in the group that confines this process."""

from __future__ import annotations

import resource
from pathlib import Path

# Of what is available when the solve begins: the rest is the caller's.
SHARE = 0.8
# A process that died with at least this share of its limit in use died of the limit.
NEAR = 0.75

_MEMINFO = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
# By version of Linux's control groups: where they are, and the files with the limit and the use, in bytes.
_V1 = (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file")


def allowed_bytes(memory_gb: float | None) -> int | None:
    """Return the bytes of a limit in GB; of None, a share of what is available, or None where that is not known."""
    if memory_gb is not None:
        return int(memory_gb * 1e9)
    available = available_bytes()
    return None if available is None else int(SHARE * available)


def available_bytes() -> int | None:
    """Return the memory that this process could still take (Linux), None where that is not known."""
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


def died_of(limit: int | None, peak: int) -> bool:
    """Whether a process whose largest size was `peak` bytes died of its limit, where that can be told.

    The kernel counts into the peak of a child the size of its parent when it was started; a peak below our own says
    nothing.
    """
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return limit is not None and peak > ours and peak >= NEAR * limit


def _left_in(path: str, root: Path, most: str, used: str, cache: str) -> list[int]:
    """Return what the limits of a control group and of those around it leave; files cached can be given up."""
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
