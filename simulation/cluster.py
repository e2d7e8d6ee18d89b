"""The cluster: GPU types and counts and, where an engine places jobs, machines and racks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from ..formulations.checks import as_integer, as_integers, store_checked
from ..formulations.errors import InvalidInput

# Name of the GPU type where the caller gives only a number of GPUs.
ONLY_TYPE = "gpu"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """GPUs by type and, if stated, the machines and racks that hold them.

    GPUs are numbered from 0, starting with the first type; machines and racks take them in this order.

    Parameters
    ----------
    gpus_by_type : mapping of str to int
        GPUs of each type, at least 1.
    machines : int, optional
        Machines of equal size, each with GPUs of one type. None: the cluster counts as one machine.
    gpus_per_machine : int, optional
        GPUs of each machine. Derived from `machines` and the number of GPUs, or `machines` from it.
    racks : int, optional
        Racks of equally many machines. None: one rack.

    Raises
    ------
    InvalidInput
        If a count is not positive, or machines or racks would differ in size or mix GPU types.
    """

    gpus_by_type: Mapping[str, int]
    machines: int | None = None
    gpus_per_machine: int | None = None
    racks: int | None = None

    def __post_init__(self) -> None:
        counts = _checked_counts("gpus_by_type", self.gpus_by_type)
        object.__setattr__(self, "gpus_by_type", MappingProxyType(counts))
        for name in ("machines", "gpus_per_machine", "racks"):
            if getattr(self, name) is not None:
                store_checked(self, as_integer, name, minimum=1)
        self._divide_into_machines()
        if self.racks is not None:
            if self.machines is None:
                raise InvalidInput("racks", self.racks, "needs machines or gpus_per_machine")
            if self.machines % self.racks:
                raise InvalidInput("racks", self.racks, f"{self.machines} machines do not divide into so many racks")

    def _divide_into_machines(self) -> None:
        for name, other in (("machines", "gpus_per_machine"), ("gpus_per_machine", "machines")):
            given = getattr(self, name)
            if given is None:
                continue
            if self.gpus % given:
                raise InvalidInput(name, given, f"does not divide the {self.gpus} GPUs")
            if getattr(self, other) not in (None, self.gpus // given):
                why = f"{name} = {given} and {self.gpus} GPUs make it {self.gpus // given}"
                raise InvalidInput(other, getattr(self, other), why)
            object.__setattr__(self, other, self.gpus // given)
        if self.gpus_per_machine is not None:
            for gpu_type, count in self.gpus_by_type.items():
                if count % self.gpus_per_machine:
                    why = f"machines of {self.gpus_per_machine} GPUs would mix types"
                    raise InvalidInput(f"gpus_by_type[{gpu_type}]", count, why)

    def __reduce__(self) -> tuple[object, ...]:
        fields = {name: getattr(self, name) for name in ("machines", "gpus_per_machine", "racks")}
        # A mapping proxy cannot be pickled.
        return partial(Cluster, gpus_by_type=dict(self.gpus_by_type), **fields), ()

    @classmethod
    def of(cls, gpus: Cluster | int | Mapping[str, int]) -> Cluster:
        """Return a given cluster unchanged, or make one from a number of GPUs or from GPUs by type.

        Errors name the field `gpus`.
        """
        if isinstance(gpus, Cluster):
            return gpus
        if isinstance(gpus, Mapping):
            return cls(gpus_by_type=_checked_counts("gpus", gpus))
        return cls(gpus_by_type={ONLY_TYPE: as_integer("gpus", gpus, minimum=1)})

    @property
    def types(self) -> tuple[str, ...]:
        """GPU types, in the order in which their GPUs are numbered."""
        return tuple(self.gpus_by_type)

    @property
    def gpus(self) -> int:
        """GPUs of all types (M)."""
        return sum(self.gpus_by_type.values())

    def tier(self, gpu_ids: ArrayLike) -> int:
        """Return the network tier that these GPUs span: 0 within a machine, 1 within a rack, 2 across racks.

        Raises
        ------
        InvalidInput
            If `gpu_ids` is empty or holds a number that is no GPU of the cluster.
        """
        ids = as_integers("gpu_ids", gpu_ids, minimum=0, maximum=self.gpus - 1)
        if self.machines is None or self.gpus_per_machine is None:
            return 0
        machines = np.unique(ids // self.gpus_per_machine)
        if len(machines) == 1:
            return 0
        machines_per_rack = self.machines // (self.racks or 1)
        return 1 if len(np.unique(machines // machines_per_rack)) == 1 else 2


def _checked_counts(field: str, counts: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(counts, Mapping):
        raise InvalidInput(field, type(counts).__name__, "must be a mapping of GPU type to number")
    if not counts:
        raise InvalidInput(field, "{}", "must name at least one GPU type")
    for gpu_type in counts:
        if not isinstance(gpu_type, str) or not gpu_type:
            raise InvalidInput(field, gpu_type, "a GPU type must have a name")
    return {gpu_type: as_integer(f"{field}[{gpu_type}]", count, minimum=1) for gpu_type, count in counts.items()}
