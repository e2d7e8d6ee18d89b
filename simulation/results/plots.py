"""Results as pictures: completion times and fairness as distributions, GPUs in use over time, policies side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import InvalidInput
from ...formulations.plotting.svg import Frame, bar, document, legend, rule, short, text, ticks, time_unit
from .schedule_plot import schedule_picture

if TYPE_CHECKING:
    from .result import SimulationResult

__all__ = ["ftf_cdf", "jct_cdf", "jobs_left_picture", "relative_bars", "schedule_picture", "utilisation_picture"]

#: What bars compare: the metric, what it is called, and what it is called where it is not relative.
MEASURES = (
    ("makespan_s", "makespan", "makespan, s"),
    ("avg_jct_s", "average JCT", "average JCT, s"),
    ("worst_ftf", "worst FTF", "worst FTF as it is"),
    ("unfair_pct", "unfair jobs", "unfair jobs, %"),
)
# A distribution of more jobs is drawn through so many of its steps, the first and the last among them.
_MOST_STEPS = 600
_BINS = 240


def jct_cdf(results: SimulationResult | Mapping[str, SimulationResult]) -> str:
    """Return an SVG document: the share of jobs that completed within each time from arrival, one line by result."""
    values = {name: result.jct_s for name, result in _named(results).items()}
    unit, seconds = time_unit(_limit(values))
    labels = [f"{name}, mean {each.mean() / seconds:.2f} {unit}" for name, each in values.items()]
    return _cdf(values, labels, "Job completion time", f"{unit} from arrival to completion", seconds)


def ftf_cdf(results: SimulationResult | Mapping[str, SimulationResult]) -> str:
    """Return an SVG document: the share of jobs of at most each finish-time fairness, by result; 1.05 is marked."""
    values = {name: result.ftf for name, result in _named(results).items()}
    labels = [f"{name}, worst {each.max():.2f}" for name, each in values.items()]
    return _cdf(values, labels, "Finish-time fairness", "JCT by what an equal share would give", 1.0, mark=1.05)


def utilisation_picture(
    results: SimulationResult | Mapping[str, SimulationResult], *, until_s: float | None = None, width: int = 540
) -> str:
    """Return an SVG document: the share of the cluster's GPUs that jobs held over time, a line for each result.

    The time axis ends at `until_s`, by default the longest makespan; `width` is that of the whole picture, in pixels.
    """
    results = _named(results)
    limit = _last_end(results) if until_s is None else until_s
    many = len(results) > 1
    height = 130 + 18 * len(results) * many
    frame = Frame(left=46, top=26, width=width - 56, height=62, x_limit=limit)
    unit, seconds = time_unit(limit)
    parts = [text(46, 15, "GPUs in use"), *frame.x_axis(unit, unit=seconds), *frame.y_axis("{:.0%}")]
    for series, (name, result) in enumerate(results.items()):
        edges, share = gpu_shares(result, limit)
        tip = f"{name}: {float(result.metrics['utilisation']):.1%} on average over its makespan"
        parts.append(frame.steps(edges, np.append(share, share[-1]), series, tip))
    if many:
        parts += legend(46, 132, list(results))
    return document(width, height, "GPUs in use over time", parts)


def jobs_left_picture(
    results: SimulationResult | Mapping[str, SimulationResult], *, until_s: float | None = None, width: int = 540
) -> str:
    """Return an SVG document: the number of jobs that had arrived and not ended over time, a line for each result.

    The numbers are means over equal stretches of time; parameters as of `utilisation_picture`.
    """
    results = _named(results)
    limit = _last_end(results) if until_s is None else until_s
    left = {name: jobs_left(result, limit) for name, result in results.items()}
    many = len(results) > 1
    high = 150 if many else 62
    most = max([1.0, *(float(number.max()) for _, number in left.values())])
    frame = Frame(left=46, top=26, width=width - 56, height=high, x_limit=limit, y_limit=most)
    unit, seconds = time_unit(limit)
    parts = [text(46, 15, "Jobs left"), *frame.x_axis(unit, unit=seconds), *frame.y_axis("{:,.6g}")]
    for series, (name, (edges, number)) in enumerate(left.items()):
        tip = f"{name}: {number.mean():,.1f} jobs on average, at most {number.max():,.1f}"
        parts.append(frame.steps(edges, np.append(number, number[-1]), series, tip))
    if many:
        parts += legend(46, frame.bottom + 44, list(results))
    return document(width, frame.bottom + (42 + 18 * len(results) * many), "Jobs left over time", parts)


def gpu_shares(result: SimulationResult, until_s: float, bins: int = _BINS) -> tuple[Floats, Floats]:
    """Return edges of equal stretches of time, shape (n + 1,), and the mean share of GPUs held in each, shape (n,)."""
    edges, busy = _level_means(result, result.levels.gpus_busy, until_s, bins)
    return edges, busy / result.gpus


def jobs_left(result: SimulationResult, until_s: float, bins: int = _BINS) -> tuple[Floats, Floats]:
    """Return edges as of `gpu_shares`, and the mean number of jobs in each stretch that had arrived and not ended."""
    return _level_means(result, result.levels.running + result.levels.waiting, until_s, bins)


def _level_means(
    result: SimulationResult, amounts: Floats | Indices, until_s: float, bins: int
) -> tuple[Floats, Floats]:
    """Return edges of equal stretches of time, and the mean in each of an amount that is constant over each step."""
    edges = np.linspace(0.0, until_s, bins + 1)
    if not len(result.levels):
        return edges, np.zeros(bins)
    starts, ends = result.levels.start_s, result.levels.end_s
    # Integral up to each moment: constant between steps, straight within one.
    times = np.column_stack([starts, ends]).ravel()
    held = np.concatenate([[0.0], np.cumsum(amounts * (ends - starts))])
    sums = np.column_stack([held[:-1], held[1:]]).ravel()
    spent = np.diff(np.interp(edges, times, sums))
    return edges, spent / np.diff(edges)


def _last_end(results: Mapping[str, SimulationResult]) -> float:
    """Return the end of the last step of any result; 1 without steps."""
    ends = [float(result.levels.end_s.max()) for result in results.values() if len(result.levels)]
    return max(ends, default=1.0)


def relative_bars(results: Mapping[str, SimulationResult], base: str) -> str:
    """Return an SVG document: makespan, average JCT, worst FTF and unfair jobs of each result, relative to one.

    The figures of the result named `base` are 1; where one of them is 0, that panel shows the figures themselves.
    Raises InvalidInput if `base` is not among the names. Source: Shockwave (NSDI 2023), Fig. 7.
    """
    if base not in results:
        raise InvalidInput("base", base, f"must be one of {', '.join(results)}")
    left, each, gap, row = 24.0 + 7.0 * max(len(short(name)) for name in results), 200.0, 40.0, 22
    height = 38 + row * len(results) + 8
    parts: list[str] = []
    for series, name in enumerate(results):
        parts.append(text(left - 10, 49 + row * series, short(name), "", "end"))
    for k, (key, title, absolute) in enumerate(MEASURES):
        values = np.array([float(result.metrics[key]) for result in results.values()])
        whole = values[list(results).index(base)]
        relative = bool(whole > 0)
        shown = values / whole if relative else values
        limit = max(1.0, float(np.nanmax(shown, initial=0.0)))
        frame = Frame(left=left + k * (each + gap), top=30, width=each - 30, height=height - 38, x_limit=limit)
        parts.append(text(frame.left, 18, title if relative else absolute))
        parts += _bars(frame, shown, list(results), row, key, values)
        if relative:
            x = float(frame.x(1.0))
            parts.append(rule(x, frame.top, x, frame.bottom, "base"))
    return document(left + len(MEASURES) * (each + gap), height, f"Figures relative to {base}", parts)


def _bars(frame: Frame, shown: Floats, names: list[str], row: int, key: str, values: Floats) -> Iterator[str]:
    for series, (name, share, value) in enumerate(zip(names, shown.tolist(), values.tolist(), strict=True)):
        if not math.isfinite(share):
            continue
        y, right = frame.top + 6 + row * series, float(frame.x(share))
        yield bar(frame.left, y, right - frame.left, row - 8, series, f"{name}: {key} {value:.6g}")
        yield text(right + 5, y + 11, f"{share:.2f}" if share < 100 else f"{share:.0f}", "quiet")


def _named(results: SimulationResult | Mapping[str, SimulationResult]) -> Mapping[str, SimulationResult]:
    return results if isinstance(results, Mapping) else {results.policy: results}


def _limit(values: Mapping[str, Floats]) -> float:
    highest = max((float(each.max()) for each in values.values() if len(each)), default=0.0)
    return highest if highest > 0 and math.isfinite(highest) else 1.0


def _cdf(
    values: Mapping[str, Floats], labels: list[str], title: str, axis: str, unit: float, mark: float | None = None
) -> str:
    limit = _limit(values)
    end = ticks(limit / unit, 7)[-1] * unit
    frame = Frame(left=46, top=26, width=484, height=190, x_limit=max(limit, end, mark or 0.0) * 1.02)
    parts = [text(46, 15, f"{title}: share of jobs"), *frame.x_axis(axis, unit=unit), *frame.y_axis("{:.0%}")]
    if mark is not None:
        at = float(frame.x(mark))
        parts.append(rule(at, frame.top, at, frame.bottom, "base"))
        parts.append(text(at - 4, frame.bottom - 6, f"{mark:g}", "quiet", "end"))
    for series, (label, given) in enumerate(zip(labels, values.values(), strict=True)):
        if len(given):
            x, share = cdf_steps(given)
            parts.append(frame.steps(np.append(x, frame.x_limit), np.append(share, 1.0), series, label))
    parts += legend(46, frame.bottom + 52, [short(label, 60) for label in labels])
    return document(540, frame.bottom + 46 + 18 * len(labels), title, parts)


def cdf_steps(values: Floats) -> tuple[Floats, Floats]:
    """Return the steps of a distribution from (0, 0): values ascending, and the share of jobs at or below each."""
    ordered = np.sort(values)
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) > _MOST_STEPS:
        kept = np.unique(np.linspace(0, len(ordered) - 1, _MOST_STEPS).round().astype(np.intp))
        ordered, share = ordered[kept], share[kept]
    return np.append(0.0, ordered), np.append(0.0, share)
