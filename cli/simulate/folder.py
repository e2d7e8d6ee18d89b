"""The folder of a run's results: tables as CSV, page and summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FAILED, CommandError
from ..files import write_text
from ..json_text import json_text
from .config import SimulationConfig
from .run import FinishedRun, document

if TYPE_CHECKING:
    import pandas as pd

    from ...simulation import SimulationInterrupted


def check_folder(folder: Path | None, size: int = 0) -> None:
    """Make the folder for results, before any work is done for it.

    CommandError if it cannot be made or written, or so many bytes do not fit there.
    """
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".equipoise.tmp"
        try:
            probe.write_bytes(bytes(size))
        finally:
            probe.unlink(missing_ok=True)
    except FileExistsError:
        raise CommandError(f"--out {folder}: is a file, not a folder", "name a folder.") from None
    except OSError as error:
        raise CommandError(
            f"--out {folder}: cannot be written ({error.strerror})", "choose another folder.", code=FAILED
        ) from None


def write_folder(folder: Path, config: SimulationConfig, run: FinishedRun) -> None:
    """Write the tables, the page and last the summary, so that a folder with a summary is complete."""
    from .page import render

    folder.mkdir(parents=True, exist_ok=True)
    tables = run.result.tables()
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", csv_text(table))
    write_text(folder / "page.html", render(config, run))
    write_text(folder / "summary.json", json_text(document(config, run)))
    for name in tables:  # an interrupted run may have left these here
        (folder / f"{name}.partial.csv").unlink(missing_ok=True)


def write_partial(folder: Path, interrupt: SimulationInterrupted) -> list[str]:
    """Write the tables of an interrupted run, and return the files' names.

    The names differ from those of a complete run, whose files stay as they are.
    """
    for name, table in interrupt.tables.items():
        write_text(folder / f"{name}.partial.csv", csv_text(table))
    return [f"{name}.partial.csv" for name in interrupt.tables]


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV without its index."""
    return table.to_csv(index=False, lineterminator="\n")
