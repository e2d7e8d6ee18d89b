"""Speeds by the analytical all-reduce model, calibrated to the measurement of each model in one machine."""

from __future__ import annotations

from pathlib import Path

from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from ..placement.speeds import Running
from .calibration import calibrate
from .communication_table import CommunicationTable
from .interconnect import Network, as_network
from .json_files import read_object
from .ratio_speeds import RatioSpeeds


class AllReduceSpeeds(RatioSpeeds):
    """Speeds by the all-reduce model.

    A model's computation is calibrated to its measured ratio on 8 GPUs of one machine; all other ratios, at all tiers,
    are predictions. A gang counts as one of equally many GPUs on each of its machines, and equally many machines in
    each of its racks, both rounded up.

    Parameters
    ----------
    network : Network, optional
        Network of the cluster, with its sizes; `Network.builtin` by default.
    table : CommunicationTable, optional
        Gradients of the models, and the measurements in one machine; the built-in ones by default.
    cluster : Cluster or int
        Cluster of the simulation.

    Attributes
    ----------
    models : dict of str to CalibratedModel

    Raises
    ------
    InvalidInput
        If an argument is of another type, the network has other sizes than the cluster, or a model cannot be
        calibrated.
    """

    by_tier_alone = False

    def __init__(
        self, network: Network | None = None, table: CommunicationTable | None = None, *, cluster: Cluster | int
    ) -> None:
        super().__init__(cluster)
        self.network = as_network(network, self.cluster)
        self.table = CommunicationTable.builtin() if table is None else table
        if not isinstance(self.table, CommunicationTable):
            raise InvalidInput("table", type(table).__name__, "must be a CommunicationTable")
        self.models = {row.model: calibrate(row, self.network) for row in self.table.rows}
        self._ratios: dict[tuple[str, int, int, int], float] = {}

    @classmethod
    def read(cls, path: str | Path, *, cluster: Cluster | int) -> AllReduceSpeeds:
        """Read the JSON file of `Network.read`, with one more optional member, "table".

        It is the path, seen from the folder of the file, of a CSV for `CommunicationTable.read`.

        Raises
        ------
        InvalidInput
            If a file cannot be read, is malformed, or states a model that cannot be calibrated.
        """
        content = read_object(path)
        table = content.pop("table", None)
        if table is not None and not isinstance(table, str):
            raise InvalidInput("table", table, "must be the path of a CSV file")
        measured = None if table is None else CommunicationTable.read(Path(path).parent / table)
        return cls(Network.from_members(content, Path(path).name, cluster=cluster), measured, cluster=cluster)

    def ratio(self, run: Running) -> float:
        """Return the modelled ratio on the GPUs, machines and racks of the placement."""
        self.table.row(run.model)
        key = run.model, run.gpus, run.machines, run.racks
        if key not in self._ratios:
            machines_of_rack = -(-run.machines // run.racks)
            sizes = (-(-run.gpus // run.machines), machines_of_rack, run.racks)
            self._ratios[key] = self.models[run.model].ratio(sizes) if run.gpus > 1 else 0.0
        return self._ratios[key]
