"""Network of several dimensions, such as GPUs in machines, machines in racks, and racks; its all-reduces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...formulations.checks import as_real
from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from .communication_table import TIERS
from .dimension import Dimension
from .json_files import members, read_object

SCHEMES = ("hierarchical", "flat")

_OPTIONAL = ("algorithm",)
_REQUIRED = ("topology", "bandwidth_gb_s", "latency_ns")


@dataclass(frozen=True)
class Network:
    """Network of several dimensions.

    Parameters
    ----------
    dimensions : sequence of Dimension
        From the innermost to the outermost one: each node of a dimension is a whole network of those before it.
    scheme : {"hierarchical", "flat"}
        "flat": an all-reduce of all bytes over each dimension, one after another. "hierarchical": reduce-scatters from
        the innermost dimension outwards, an all-reduce over the outermost one, and all-gathers back; a dimension
        carries the bytes divided by the sizes of the dimensions within it.

    Raises
    ------
    InvalidInput
        If there is no dimension, or no such scheme.
    """

    dimensions: tuple[Dimension, ...]
    scheme: str = "hierarchical"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        if not self.dimensions:
            raise InvalidInput("dimensions", "()", "must not be empty: a network has at least one dimension")
        for index, dimension in enumerate(self.dimensions):
            if not isinstance(dimension, Dimension):
                raise InvalidInput("dimensions", type(dimension).__name__, "must be a Dimension", index=index)
        if self.scheme not in SCHEMES:
            raise InvalidInput("scheme", self.scheme, f"must be one of {', '.join(SCHEMES)}")

    @staticmethod
    def builtin(cluster: Cluster | int) -> Network:
        """Return the switches of Dally's paper, with the sizes of a cluster.

        NVSwitch with 112.5 GB/s and 0.5 us in a machine, Quantum with 50 GB/s and 0.5 us in a rack, Spectrum with 100
        GB/s and 2 us between racks, at advertised bandwidths.
        """
        switches = zip(cluster_sizes(cluster), (112.5, 50.0, 100.0), (500.0, 500.0, 2000.0), strict=True)
        return Network(
            tuple(
                Dimension(topology="switch", size=size, bandwidth_gb_s=bandwidth, latency_ns=latency)
                for size, bandwidth, latency in switches
            )
        )

    @staticmethod
    def read(path: str | Path, *, cluster: Cluster | int) -> Network:
        """Read the dimensions of a cluster from a JSON file; their sizes are those of the cluster.

        The members "machine", "rack" and "network" are objects with "topology", "bandwidth_gb_s" and "latency_ns" and,
        optionally, "algorithm"; "scheme" is optional.

        Raises
        ------
        InvalidInput
            If the file cannot be read, a member is missing or unknown, or a value is out of range.
        """
        return Network.from_members(read_object(path), Path(path).name, cluster=cluster)

    @staticmethod
    def from_members(content: Mapping[str, Any], name: str, *, cluster: Cluster | int) -> Network:
        """Return the network of the members of a file of this name, as `read` does."""
        members(content, name, required=TIERS, known=(*TIERS, "scheme"))
        dimensions = []
        for tier, size in zip(TIERS, cluster_sizes(cluster), strict=True):
            given = members(content[tier], tier, required=_REQUIRED, known=(*_REQUIRED, *_OPTIONAL))
            try:
                dimensions.append(Dimension(size=size, **given))
            except InvalidInput as error:
                raise InvalidInput(f"{tier}.{error.field}", error.value, error.why) from None
        return Network(tuple(dimensions), content.get("scheme", "hierarchical"))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of each dimension."""
        return tuple(dimension.size for dimension in self.dimensions)

    def resized(self, sizes: Sequence[int]) -> Network:
        """Return the same dimensions with other numbers of nodes."""
        if len(sizes) != len(self.dimensions):
            raise InvalidInput("sizes", f"{len(sizes)} sizes", f"the network has {len(self.dimensions)} dimensions")
        resized = (replace(each, size=size) for each, size in zip(self.dimensions, sizes, strict=True))
        return replace(self, dimensions=tuple(resized))

    def all_reduce_s(self, num_bytes: float) -> float:
        """Return the seconds of an all-reduce of so many bytes on each node of the innermost dimension."""
        as_real("num_bytes", num_bytes, minimum=0.0)
        total, carried = 0.0, float(num_bytes)
        for dimension in self.dimensions:
            # A reduce-scatter and the all-gather on the way back take as long as an all-reduce of the same bytes.
            total += dimension.all_reduce_s(carried)
            carried /= dimension.size if self.scheme == "hierarchical" else 1
        return total


def cluster_sizes(cluster: Cluster | int) -> tuple[int, int, int]:
    """Return GPUs of a machine, machines of a rack, and racks; without machines, the cluster is one machine."""
    found = Cluster.of(cluster)
    machines, racks = found.machines or 1, found.racks or 1
    return found.gpus // machines, machines // racks, racks


def as_network(value: Any, cluster: Cluster) -> Network:
    """Return a network of the three dimensions of a cluster, the built-in one for None; InvalidInput otherwise."""
    if value is None:
        return Network.builtin(cluster)
    if not isinstance(value, Network):
        raise InvalidInput("network", type(value).__name__, "must be a Network")
    if value.sizes != cluster_sizes(cluster):
        sizes = " x ".join(map(str, cluster_sizes(cluster)))
        why = f"the cluster has {sizes} (GPUs of a machine, machines of a rack, racks)"
        raise InvalidInput("network", " x ".join(map(str, value.sizes)), why)
    return value
