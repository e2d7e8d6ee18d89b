"""Speeds by static penalties: a factor on the run time for each network tier, the same for all models."""

from __future__ import annotations

from pathlib import Path

from ...formulations.checks import as_real
from ..cluster import Cluster
from ..placement.speeds import Running
from .communication_table import TIERS
from .json_files import members, read_object
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
        penalties = zip(TIERS, (machine, rack, network), strict=True)
        self.penalties = tuple(as_real(name, value, minimum=1.0) for name, value in penalties)

    @classmethod
    def read(cls, path: str | Path, *, cluster: Cluster | int) -> PenaltySpeeds:
        """Read a JSON file with the members "machine", "rack" and "network"; one that is left out has its default.

        Raises
        ------
        InvalidInput
            If the file cannot be read, has another member, or a penalty is out of range.
        """
        return cls(**members(read_object(path), Path(path).name, known=TIERS), cluster=cluster)

    def ratio(self, run: Running) -> float:
        """Return the penalty of the tier less 1; 0 for one GPU."""
        return self.penalties[run.tier] - 1.0 if run.gpus > 1 else 0.0
