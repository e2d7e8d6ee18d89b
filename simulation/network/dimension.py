"""Dimension of a network: nodes joined by a topology, and the times of messages and collectives between them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...formulations.checks import as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput

TOPOLOGIES = ("ring", "fully_connected", "switch")
ALGORITHMS = ("ring", "halving_doubling")
#: Bytes of a GB of bandwidth.
GB = 2**30
_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """Nodes of one dimension of a network.

    Parameters
    ----------
    topology : {"ring", "fully_connected", "switch"}
        Hops between two nodes: on a ring the shorter way round, 1 if all are connected, 2 through a switch.
    size : int
        Number of nodes (n), at least 1.
    bandwidth_gb_s : float
        Bandwidth of a node in each direction (B), in GB/s, 1 GB = 2^30 bytes; positive.
    latency_ns : float
        Latency of a hop (L) in nanoseconds, at least 0.
    algorithm : {"ring", "halving_doubling"}, optional
        Algorithm of all-reduces. By default "ring" on a ring, "halving_doubling" elsewhere.

    Raises
    ------
    InvalidInput
        If a value is out of range, or no such topology or algorithm exists.

    Notes
    -----
    The messages of one step do not slow each other: links that several of them share are not modelled.

    Examples
    --------
    >>> ring = Dimension(topology="ring", size=16, bandwidth_gb_s=50.0, latency_ns=500.0)
    >>> ring.point_to_point_ns(2**20, 1, 4)
    21031
    """

    topology: str
    size: int
    bandwidth_gb_s: float
    latency_ns: float
    algorithm: str | None = None

    def __post_init__(self) -> None:
        if self.topology not in TOPOLOGIES:
            raise InvalidInput("topology", self.topology, f"must be one of {', '.join(TOPOLOGIES)}")
        if self.algorithm is None:
            object.__setattr__(self, "algorithm", "ring" if self.topology == "ring" else "halving_doubling")
        if self.algorithm not in ALGORITHMS:
            raise InvalidInput("algorithm", self.algorithm, f"must be one of {', '.join(ALGORITHMS)}")
        store_checked(self, as_integer, "size", minimum=1)
        store_checked(self, as_real, "bandwidth_gb_s", above=0.0)
        store_checked(self, as_real, "latency_ns", minimum=0.0)

    def hops(self, source: int, target: int) -> int:
        """Return the number of hops between two nodes, which are numbered from 0; 0 from a node to itself."""
        ends = [as_integer(name, node, minimum=0, maximum=self.size - 1) for name, node in
                (("source", source), ("target", target))]  # fmt: skip
        return self._hops_over(abs(ends[0] - ends[1]))

    def _hops_over(self, distance: int) -> int:
        """Return the hops between nodes whose numbers differ by this distance."""
        if not distance:
            return 0
        return {"ring": min(distance, self.size - distance), "fully_connected": 1, "switch": 2}[self.topology]

    def point_to_point_ns(self, num_bytes: int, source: int, target: int) -> int:
        """Return the nanoseconds of a message, hops x L + bytes / B, truncated to a whole number; 0 to the same node.

        The arithmetic is exact.
        """
        hops = self.hops(source, target)
        if not hops:
            return 0
        sent = Fraction(as_integer("num_bytes", num_bytes, minimum=0) * _NS, GB) / Fraction(self.bandwidth_gb_s)
        return int(hops * Fraction(self.latency_ns) + sent)

    def all_reduce_s(self, num_bytes: float) -> float:
        """Return the seconds of an all-reduce of so many bytes on each node: a reduce-scatter and an all-gather.

        "ring" takes ``2 (n - 1) (h L + m / (n B))``. "halving_doubling" takes ``2 h L ceil(log2 n) + 2 (m / B) (1 - 1 /
        n)``, where h L is summed over the steps on a ring: their partners are ceil(n / 2), ceil(ceil(n / 2) / 2), ...,
        1 nodes away. One node takes 0.
        """
        as_real("num_bytes", num_bytes, minimum=0.0)
        if self.size == 1:
            return 0.0
        sent_s = num_bytes / (self.bandwidth_gb_s * GB) * (self.size - 1) / self.size
        return 2.0 * (self._step_hops() * self.latency_ns / _NS + sent_s)

    def _step_hops(self) -> int:
        """Return the sum of hops over the steps of a reduce-scatter."""
        if self.algorithm == "ring":
            return (self.size - 1) * self._hops_over(1)
        hops, blocks = 0, self.size
        while blocks > 1:  # each step halves the blocks that a node has still to reduce, rounded up
            blocks = -(-blocks // 2)
            hops += self._hops_over(blocks)
        return hops
