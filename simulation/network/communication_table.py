"""Table of measured communication: time of communication over time of computation, by model and network tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path

from ...formulations.checks import as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.text import nearest_hint
from ..delimited_files import Row, read_rows

#: Names of the network tiers, in the order of their numbers; see `Cluster.tier`.
TIERS = ("machine", "rack", "network")
#: Number of GPUs on which the ratios were measured.
MEASURED_GPUS = 8

_COLUMNS = ("model", *TIERS, "gradient_mb", "layers", "skew")


@dataclass(frozen=True, kw_only=True)
class CommunicationRow:
    """Measured communication of one model on 8 GPUs, and its gradients.

    Parameters
    ----------
    model : str
        Name of the model in traces.
    machine, rack, network : float
        Exposed time of communication over time of computation (t_comm / t_comp) of an iteration on 8 GPUs of one
        machine, of several machines of a rack, and of several racks, at least 0.
    gradient_mb : float
        Size of the gradients of an iteration, in 10^6 bytes, positive.
    layers : int
        Number of layers over which the gradients are divided, at least 1.
    skew : float
        Share of the largest layer in the gradients, from 1 / layers to 1.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    """

    model: str
    machine: float
    rack: float
    network: float
    gradient_mb: float
    layers: int
    skew: float

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise InvalidInput("model", self.model, "must be text, not empty")
        store_checked(self, as_real, *TIERS, minimum=0.0)
        store_checked(self, as_real, "gradient_mb", above=0.0)
        store_checked(self, as_integer, "layers", minimum=1)
        store_checked(self, as_real, "skew", above=0.0, maximum=1.0)
        if self.skew * self.layers < 1.0 - 1e-9:
            raise InvalidInput("skew", self.skew, f"the largest of {self.layers} layers has at least 1/{self.layers}")

    @property
    def ratios(self) -> tuple[float, float, float]:
        """Ratios at the tiers machine, rack and network."""
        return self.machine, self.rack, self.network


@dataclass(frozen=True)
class CommunicationTable:
    """Measured communication by model.

    Parameters
    ----------
    rows : iterable of CommunicationRow
        One row a model, at least one.

    Raises
    ------
    InvalidInput
        If there is no row, or a model has two.
    """

    rows: tuple[CommunicationRow, ...]
    _by_name: Mapping[str, CommunicationRow] = field(init=False, repr=False, compare=False)

    def __init__(self, rows: Iterable[CommunicationRow]) -> None:
        object.__setattr__(self, "rows", tuple(rows))
        by_name: dict[str, CommunicationRow] = {}
        for index, row in enumerate(self.rows):
            if not isinstance(row, CommunicationRow):
                raise InvalidInput("rows", type(row).__name__, "must be a CommunicationRow", index=index)
            if row.model in by_name:
                raise InvalidInput("model", row.model, "a second row of the same model", index=index)
            by_name[row.model] = row
        if not by_name:
            raise InvalidInput("rows", "()", "must not be empty: a table has at least one model")
        object.__setattr__(self, "_by_name", by_name)

    @staticmethod
    def builtin() -> CommunicationTable:
        """Return the six models that Dally's paper measured on 8 GPUs (Table I and Figure 1)."""
        with as_file(files(__package__) / "data" / "six_models.csv") as path:
            return CommunicationTable.read(path)

    @staticmethod
    def read(path: str | Path) -> CommunicationTable:
        """Read a CSV file with a header and the fields of `CommunicationRow` as columns; other columns are not read.

        Raises
        ------
        InvalidInput
            If the file is malformed; the message names column, value, file and line.
        """
        path = Path(path)
        found: dict[str, CommunicationRow] = {}
        for row in read_rows(path, _COLUMNS):
            each = _communication_row(row)
            if each.model in found:
                raise InvalidInput("model", each.model, f"a second row of the same model ({row.location})")
            found[each.model] = each
        if not found:
            raise InvalidInput("path", str(path), "the file holds no model")
        return CommunicationTable(found.values())

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the order of the rows."""
        return tuple(self._by_name)

    @property
    def skews(self) -> Mapping[str, float]:
        """Skew of each model."""
        return {row.model: row.skew for row in self.rows}

    def row(self, model: str) -> CommunicationRow:
        """Return the row of a model, or raise InvalidInput with the names of those that the table has."""
        found = self._by_name.get(model)
        if found is None:
            why = f"{nearest_hint(model, self.models)}the table of communication has {', '.join(self.models)}"
            raise InvalidInput("model", model, why)
        return found

    def ratio(self, model: str, gpus: int, tier: int) -> float:
        """Return the exposed time of communication over the time of computation; 0 for one GPU.

        Parameters
        ----------
        model : str
        gpus : int
            Number of GPUs, at least 1. Off the measured 8, the ratio is scaled by the data that a ring sends,
            ``2 (gpus - 1) / gpus`` over 1.75.
        tier : int
            0 machine, 1 rack, 2 network.

        Raises
        ------
        InvalidInput
            If the table does not have the model, or an argument is out of range.
        """
        row = self.row(model)
        tier = as_integer("tier", tier, minimum=0, maximum=len(TIERS) - 1)
        return row.ratios[tier] * data_sent(as_integer("gpus", gpus, minimum=1)) / data_sent(MEASURED_GPUS)


def data_sent(gpus: int) -> float:
    """Return the data that each GPU sends in an all-reduce over so many GPUs, relative to the size of the gradients."""
    return 2.0 * (gpus - 1) / gpus


def _communication_row(row: Row) -> CommunicationRow:
    try:
        return CommunicationRow(
            model=row.text("model"),
            **{name: row.real(name) for name in (*TIERS, "gradient_mb", "skew")},
            layers=row.integer("layers", 1),
        )
    except InvalidInput as error:
        why = error.why if row.location in error.why else f"{error.why} ({row.location})"
        raise InvalidInput(error.field, error.value, why) from None
