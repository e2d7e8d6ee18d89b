"""Profiles from a folder of four CSV files: throughputs, models, and the rules of Accordion and GNS."""

from __future__ import annotations

from pathlib import Path

from ...formulations.errors import InvalidInput
from ..delimited_files import Row, read_rows
from .rules import CriticalEpochs, ProfileColumns

_USES = ("profile", "runtime")


def profile_columns(folder: str | Path, cluster: str = "tacc") -> ProfileColumns:
    """Read the columns of one cluster's profiles from four files of a folder.

    They are throughputs.csv (cluster, model, batch_size, scale_factor, steps_per_s; a rate of 0 means that the
    configuration was not measured), models.csv (model, dataset_size, max_batch_size, scales: yes or no),
    accordion_rules.csv (model, initial_batch_size or empty for all, use: profile or runtime, period or empty,
    first_epoch, last_epoch inclusive) and gns_rules.csv (model, initial_batch_size, scale_factor,
    first_epoch_of_segment, batch_size).

    Raises
    ------
    InvalidInput
        If a cell is malformed (the message names column, value, file and line) or the cluster is unknown.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput("folder", str(folder), "is not a folder")
    sizes, largest = _models(folder / "models.csv")
    return ProfileColumns(
        name=cluster,
        rates=_rates(folder / "throughputs.csv", cluster),
        dataset_sizes=sizes,
        max_batch_sizes=largest,
        accordion=_accordion(folder / "accordion_rules.csv"),
        gns=_gns(folder / "gns_rules.csv"),
        gns_last_epoch_returns=True,
    )


def _rates(path: Path, cluster: str) -> dict[tuple[str, int, int], float]:
    rates: dict[tuple[str, int, int], float] = {}
    clusters = set()
    for row in read_rows(path, ("cluster", "model", "batch_size", "scale_factor", "steps_per_s")):
        clusters.add(row.text("cluster"))
        key = (row.text("model"), row.integer("batch_size", 1), row.integer("scale_factor", 1))
        rate = row.real("steps_per_s", minimum=0.0)
        if row.cells["cluster"] != cluster or rate == 0.0:
            continue
        if key in rates:
            raise InvalidInput("steps_per_s", rate, f"a second rate for {key} ({row.location})")
        rates[key] = rate
    if cluster not in clusters:
        raise InvalidInput("cluster", cluster, f"{path.name} holds {', '.join(sorted(clusters)) or 'no cluster'}")
    return rates


def _models(path: Path) -> tuple[dict[str, int], dict[str, int]]:
    sizes: dict[str, int] = {}
    largest: dict[str, int] = {}
    for row in read_rows(path, ("model", "dataset_size", "max_batch_size", "scales")):
        model = row.text("model")
        if model in sizes:
            raise InvalidInput("model", model, f"given twice ({row.location})")
        sizes[model] = row.integer("dataset_size", 1)
        if row.cells["scales"] not in ("yes", "no"):
            raise InvalidInput("scales", row.cells["scales"], f"must be yes or no ({row.location})")
        if row.cells["scales"] == "yes":
            largest[model] = row.integer("max_batch_size", 1)
    return sizes, largest


def _accordion(path: Path) -> dict[tuple[str, int | None, str], tuple[CriticalEpochs, ...]]:
    rules: dict[tuple[str, int | None, str], tuple[CriticalEpochs, ...]] = {}
    for row in read_rows(path, ("model", "initial_batch_size", "use", "period", "first_epoch", "last_epoch")):
        if row.cells["use"] not in _USES:
            raise InvalidInput("use", row.cells["use"], f"must be profile or runtime ({row.location})")
        key = (row.text("model"), _optional(row, "initial_batch_size"), row.cells["use"])
        first = row.integer("first_epoch", 0)
        stretch = CriticalEpochs(first, row.integer("last_epoch", first), _optional(row, "period"))
        rules[key] = (*rules.get(key, ()), stretch)
    return rules


def _gns(path: Path) -> dict[tuple[str, int, int], tuple[tuple[int, int], ...]]:
    rules: dict[tuple[str, int, int], tuple[tuple[int, int], ...]] = {}
    columns = ("model", "initial_batch_size", "scale_factor", "first_epoch_of_segment", "batch_size")
    for row in read_rows(path, columns):
        key = (row.text("model"), row.integer("initial_batch_size", 1), row.integer("scale_factor", 1))
        segment = (row.integer("first_epoch_of_segment", 0), row.integer("batch_size", 1))
        rules[key] = tuple(sorted((*rules.get(key, ()), segment)))
    return rules


def _optional(row: Row, column: str) -> int | None:
    return row.integer(column, 1) if row.cells[column] else None
