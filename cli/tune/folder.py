"""The folder of a search: what it searches, its checkpoint, and its results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.search.front import ParetoFront
from ..errors import CommandError
from ..files import write_text
from ..json_text import json_text
from ..simulate.folder import check_folder
from .summary import evidence

if TYPE_CHECKING:
    from ...simulation import Trace

#: Files of the folder; `SETTINGS` is there from the start, and `SUMMARY` comes last.
SETTINGS, CHECKPOINT, FRONT, PAGE, SUMMARY = "tuning.json", "search.json", "front.json", "front.html", "summary.json"
#: The named picks' configurations.
CONFIGS = "configs"
# The results of a search fit in so many bytes.
_RESULTS_SIZE = 8_000_000
_OTHER = "name another folder, or give the options of that search."


def open_folder(folder: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
    """Make the folder and write the settings of the search, before it starts; settings without a search are replaced.

    CommandError if the folder cannot be written, the results do not fit on the disk, or it has a search already; with
    `resume`, if that is a search of other settings.
    """
    present = next((name for name in (CHECKPOINT, FRONT, SUMMARY) if (folder / name).exists()), None)
    if present is not None and not resume:
        raise CommandError(f"--out {folder}: has a search already ({present})", "--resume continues it.")
    if present is not None:
        _check_settings(folder, settings)
    check_folder(folder, _RESULTS_SIZE)
    check_folder(folder / CONFIGS)
    write_text(folder / SETTINGS, json_text(settings))


def _check_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    try:
        found = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        former = {name: found[name] for name in settings}
    except (OSError, ValueError, TypeError, KeyError):
        raise CommandError(f"--resume: {folder / SETTINGS} cannot be read", "name another folder.") from None
    own = json.loads(json_text(settings))
    for name, value in own.items():
        if former[name] != value and name != "workloads":
            raise CommandError(f"--resume: the search in {folder} has {name} {former[name]}, not {value}", _OTHER)
    if former != own:
        raise CommandError(f"--resume: the search in {folder} has other jobs or speeds", _OTHER)


def write_results(folder: Path, front: ParetoFront, document: Mapping[str, Any]) -> None:
    """Write configurations, front and page, and last the summary, so that a folder with a summary is complete."""
    for name, point in front.named_picks.items():
        write_text(folder / CONFIGS / f"{name}.json", point.to_json())
    write_text(folder / FRONT, front.save())
    write_text(folder / PAGE, front.to_html(evidence=evidence(document)))
    write_text(folder / SUMMARY, json_text(document))


def digest(traces: Iterable[Trace], files: Iterable[str | None]) -> str:
    """Return a digest of the jobs of traces and of files, None for those that were not given."""
    found = hashlib.sha256()
    for trace in traces:
        for column in fields(trace):
            if column.name != "source":
                value = getattr(trace, column.name)
                found.update(json.dumps([column.name, np.asarray(value).tolist()], default=str).encode())
    for file in files:
        found.update(b"" if file is None else Path(file).read_bytes())
    return found.hexdigest()
