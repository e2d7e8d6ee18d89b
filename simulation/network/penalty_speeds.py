"""Speeds by static penalties: a factor on the run time for each network tier, the same for all models."""

from __future__ import annotations

from ...formulations.checks import as_real
from ..cluster import Cluster
from ..placement.speeds import Running
from .ratio_speeds import RatioSpeeds


class PenaltySpeeds(RatioSpeeds):
    """Speeds by one factor on the run time for each network tier, whatever the model.

    A job of one GPU has no penalty. The defaults for racks and network are the medians, over the six models of the
    measured table, of the run time relative to that in one machine.

    Parameters
    ----------
    machine, rack, network : float
        Run time over time of computation on several GPUs of a machine, on several machines of a rack, and on several
        racks, at least 1.
    cluster : Cluster or int
        Cluster of the simulation.

    Raises
    ------
    InvalidInput
        If a penalty is below 1, or not finite.
    """

    by_tier_alone = True

    def __init__(
        self, machine: float = 1.0, rack: float = 1.12, network: float = 4.75, *, cluster: Cluster | int
    ) -> None:
        super().__init__(cluster)
        penalties = {"machine": machine, "rack": rack, "network": network}
        self.penalties = tuple(as_real(name, value, minimum=1.0) for name, value in penalties.items())

    def ratio(self, run: Running) -> float:
        """Return the penalty of the tier less 1; 0 for one GPU."""
        return self.penalties[run.tier] - 1.0 if run.gpus > 1 else 0.0
