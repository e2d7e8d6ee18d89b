"""Instances of the window as JSON, read into a checked ScheduleWindow and written from one."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Any

from ...formulations.errors import InvalidInput
from ...formulations.window.problem import ScheduleWindow
from ..files import STANDARD_INPUT, read_text
from .schema import check_document, parse_json

INSTANCE_FORMAT = "equipoise.window/1"

_SCALARS = (
    "gpus", "rounds", "round_s", "ftf_power", "makespan_weight", "makespan_scale", "gang_weighted", "utility_floor",
    "restart_penalty",
)  # fmt: skip
# The keys in the document of the columns of ScheduleWindow.
_JOB_KEYS = {"ids": "id", "gang_gpus": "gpus"} | {
    name: name for name in ("finished_epochs", "total_epochs", "ftf", "weight")
}
_REGIME_KEYS = {"regime_epochs": "epochs", "regime_epoch_s": "epoch_s"}


def read_window(source: str, *, skip_wide: bool = False) -> ScheduleWindow:
    """Return the window described by a file, or by standard input for "-".

    With `skip_wide`, jobs wider than the cluster are skipped with a warning, even if the instance does not ask for it.
    CommandError if there is no readable JSON; InvalidInput for a missing, unknown or wrong value names its path.
    """
    name = "standard input" if source == STANDARD_INPUT else source
    return window_of(parse_json(read_text(source), name), skip_wide=skip_wide)


def window_of(document: Any, *, skip_wide: bool = False) -> ScheduleWindow:
    """Return the window that a decoded instance describes; see `read_window`."""
    check_document("instance", document)
    jobs = document["jobs"]
    regimes = [regime for job in jobs for regime in job["regimes"]]
    columns: dict[str, Any] = {name: [regime[key] for regime in regimes] for name, key in _REGIME_KEYS.items()}
    columns |= {name: [job.get(key, 1.0) for job in jobs] for name, key in _JOB_KEYS.items()}  # 1.0: ftf, weight
    columns["ids"] = [_identity(job["id"]) for job in jobs]
    scalars = {name: document[name] for name in _SCALARS if name in document}
    starts = list(accumulate((len(job["regimes"]) for job in jobs), initial=0))
    try:
        return ScheduleWindow.from_columns(
            regime_starts=starts,
            **columns,
            running=tuple(_identity(each) for each in document.get("running", ())),
            skip_wide=skip_wide or document.get("skip_wide", False),
            **scalars,
        )
    except InvalidInput as error:
        raise InvalidInput(_place(error, starts), error.value, error.why) from None


def _place(error: InvalidInput, starts: list[int]) -> str:
    """Return the path in the document of the offending entry of a column."""
    if error.index is None:
        return error.field
    index = error.index[0]
    if error.field in _JOB_KEYS:
        return f"jobs[{index}].{_JOB_KEYS[error.field]}"
    if error.field in _REGIME_KEYS:
        job = bisect_right(starts, index) - 1
        return f"jobs[{job}].regimes[{index - starts[job]}].{_REGIME_KEYS[error.field]}"
    return f"{error.field}[{index}]"


def _identity(value: str | int | float) -> str | int:
    # JSON and the "integer" of JSON Schema make no difference between 7 and 7.0.
    return int(value) if isinstance(value, float) else value


def instance_of(window: ScheduleWindow) -> dict[str, Any]:
    """Return the instance document of a window; `window_of` gives the same window back."""
    pairs = zip(window.regime_epochs.tolist(), window.regime_epoch_s.tolist(), strict=True)
    regimes = [{"epochs": epochs, "epoch_s": epoch_s} for epochs, epoch_s in pairs]
    columns = [window.ids, *(getattr(window, name).tolist() for name in list(_JOB_KEYS)[1:])]
    jobs: list[dict[str, Any]] = [dict(zip(_JOB_KEYS.values(), row, strict=True)) for row in zip(*columns, strict=True)]
    for job, (first, last) in zip(jobs, pairwise(window.regime_starts.tolist()), strict=True):
        job["regimes"] = regimes[first:last]
    running = [identity for identity, held in zip(window.ids, window.is_running.tolist(), strict=True) if held]
    scalars = {name: getattr(window, name) for name in _SCALARS}
    return {"format": INSTANCE_FORMAT, **scalars, "running": running, "jobs": jobs}
