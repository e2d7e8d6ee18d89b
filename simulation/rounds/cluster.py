"""Cluster of the rounds engine: GPU types with their counts and throughput profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from ..profiles.table import Profiles


class RoundCluster:
    """Checked GPU types with their counts and profiles: one for all types, or one for each.

    Machines and racks are ignored. Profiles of one cluster may differ only in name and rates, since an epoch of a job
    is the same work on every type. Raises InvalidInput if they do not, if a type has none, or if a count is not
    positive.
    """

    def __init__(self, gpus: Cluster | int | Mapping[str, int], profiles: Profiles | Mapping[str, Profiles]) -> None:
        self.cluster = Cluster.of(gpus)
        self.types = self.cluster.types
        self.counts = tuple(self.cluster.gpus_by_type.values())
        self.profiles = tuple(self._profiles(profiles))
        self._rates: dict[tuple[str, int, int], Floats] = {}

    def _profiles(self, profiles: Profiles | Mapping[str, Profiles]) -> list[Profiles]:
        if isinstance(profiles, Profiles):
            return [profiles] * len(self.types)
        if not isinstance(profiles, Mapping):
            raise InvalidInput("profiles", type(profiles).__name__, "must be Profiles, or one for each GPU type")
        for gpu_type in self.types:
            if not isinstance(profiles.get(gpu_type), Profiles):
                why = f"no Profiles for this GPU type; the mapping has {', '.join(map(str, profiles)) or 'none'}"
                raise InvalidInput("profiles", gpu_type, why)
        for gpu_type in profiles:
            if gpu_type not in self.types:
                raise InvalidInput("profiles", gpu_type, f"no such GPU type; the cluster has {', '.join(self.types)}")
        chosen = [profiles[gpu_type] for gpu_type in self.types]
        for gpu_type, each in zip(self.types, chosen, strict=True):
            for name in ("dataset_sizes", "max_batch_sizes", "accordion", "gns", "accordion_share"):
                if getattr(each, name) != getattr(chosen[0], name):
                    why = f"{name} differ from those of {self.types[0]!r}: GPU types may differ in rates only"
                    raise InvalidInput("profiles", gpu_type, why)
        return chosen

    @property
    def total_gpus(self) -> int:
        """GPUs of all types (M)."""
        return self.cluster.gpus

    def rates(self, model: str, batch_size: int, gang_gpus: int) -> Floats:
        """Return steps per second on each type, shape (K,), read-only; 0 where the gang does not fit or has no rate."""
        key = (model, batch_size, gang_gpus)
        found = self._rates.get(key)
        if found is None:
            found = np.array(
                [
                    each.rates.get(key, 0.0) if gang_gpus <= count else 0.0
                    for each, count in zip(self.profiles, self.counts, strict=True)
                ]
            )
            found.setflags(write=False)
            self._rates[key] = found
        return found

    def fastest(self) -> Profiles:
        """Return profiles that hold, for each configuration, its rate on the fastest type that can run it."""
        return self._joined(max)

    def slowest(self) -> Profiles:
        """Return profiles that hold, for each configuration, its rate on the slowest type that can run it."""
        return self._joined(min)

    def _joined(self, choose: Callable[[list[float]], float]) -> Profiles:
        if len(self.types) == 1:
            return self.profiles[0]
        keys = sorted({key for each in self.profiles for key in each.rates})
        rates = {}
        for key in keys:
            found = [rate for rate in self.rates(*key).tolist() if rate > 0.0]
            if found:
                rates[key] = choose(found)
        return replace(self.profiles[0], name=" and ".join(dict.fromkeys(p.name for p in self.profiles)), rates=rates)
