"""Speeds by the measured table of communication."""

from __future__ import annotations

from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from ..placement.speeds import Running
from .communication_table import CommunicationTable
from .ratio_speeds import RatioSpeeds


class TableSpeeds(RatioSpeeds):
    """Speeds by the measured ratios of communication to computation.

    Parameters
    ----------
    table : CommunicationTable, optional
        Measurements; the built-in ones by default. A model that they lack is an error.
    cluster : Cluster or int
        Cluster of the simulation.

    Raises
    ------
    InvalidInput
        If an argument is of another type.
    """

    by_tier_alone = True

    def __init__(self, table: CommunicationTable | None = None, *, cluster: Cluster | int) -> None:
        super().__init__(cluster)
        self.table = CommunicationTable.builtin() if table is None else table
        if not isinstance(self.table, CommunicationTable):
            raise InvalidInput("table", type(table).__name__, "must be a CommunicationTable")

    def ratio(self, run: Running) -> float:
        """Return the measured ratio at the tier of the placement."""
        return self.table.ratio(run.model, run.gpus, run.tier)
