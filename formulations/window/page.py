"""One self-contained HTML page that shows a window plan: a Gantt chart of jobs by rounds, and the GPUs in use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..plotting import html
from ..plotting.svg import LIGHT, short
from ..program.certificate import SolveCertificate
from ..program.page import proof_tiles
from ..text import distinguishing_digits, figure_text
from .grants import GrantedRounds

# Beyond these a browser becomes slow; the page then shows the jobs of highest priority and the number it omits.
MAX_ROWS = 2_000
MAX_BARS = 40_000
# Regimes from the last colour on share it.
COLOURS = len(LIGHT)
_LONGEST_ID = 120
_LONGEST_NOTE = 2_000
_FIELDS = ("id", "gang", "before", "after", "epochs", "ftf", "weight", "held", "left", "regimes", "runs")


def render(plan: GrantedRounds, certificate: SolveCertificate | None = None) -> str:
    """Return the page of a plan as text; the same plan and certificate give the same text to the last character.

    The page needs neither a network nor a library; everything outside its template is ASCII. It holds at most 2,000
    jobs and 40,000 bars; of a larger plan it shows the jobs of highest priority (weight x ftf ** ftf_power) and states
    how many are omitted, while the headline figures and the chart of GPUs in use always cover every job.
    """
    window = plan.window
    runs = _runs(plan.regime_of)
    shown = _shown(plan, runs)
    notes = () if certificate is None else certificate.notes
    return html.render(
        "formulations/window/page.html",
        title=f"Window plan: {_count(len(window.ids), 'job')} on {_count(window.gpus, 'GPU')}",
        lead=_lead(plan),
        tiles=[*_tiles(plan), *_proof_tiles(float(plan.objective), certificate)],
        omitted=_omitted(plan, len(shown)),
        skipped=_skipped(plan),
        notes=[short(str(note), _LONGEST_NOTE) for note in notes],
        data=_data(plan, runs, shown),
    )


def _runs(regime_of: NDArray[Any]) -> list[list[list[int]]]:
    """Return, per job, its stretches of rounds in one regime as [first round, rounds, regime]."""
    jobs, rounds = regime_of.shape
    runs: list[list[list[int]]] = [[] for _ in range(jobs)]
    breaks = np.ones((jobs, rounds + 1), dtype=bool)
    breaks[:, 1:-1] = regime_of[:, 1:] != regime_of[:, :-1]
    rows, starts = np.nonzero(breaks[:, :-1])
    ends = np.nonzero(breaks[:, 1:])[1] + 1
    regimes = regime_of[rows, starts]
    for row, start, end, regime in zip(rows.tolist(), starts.tolist(), ends.tolist(), regimes.tolist(), strict=True):
        if regime >= 0:
            runs[row].append([start, end - start, regime])
    return runs


def _shown(plan: GrantedRounds, runs: list[list[list[int]]]) -> list[int]:
    """Return the indices of the jobs that get a row, in the given order."""
    window = plan.window
    priority = np.log(window.weight) + window.ftf_power * np.log(window.ftf)
    order = np.argsort(-priority, kind="stable")[:MAX_ROWS]
    bars = np.cumsum([len(runs[job]) for job in order])
    return sorted(order[: max(1, int(np.searchsorted(bars, MAX_BARS, side="right")))].tolist())


def _data(plan: GrantedRounds, runs: list[list[list[int]]], shown: list[int]) -> dict[str, Any]:
    """Return what the page's script reads: the jobs as rows of `fields`, and totals per round over all jobs."""
    window = plan.window
    starts = window.regime_starts
    colours = np.where(plan.regime_of >= 0, np.minimum(plan.regime_of, COLOURS - 1), -1)
    in_use = [window.gang_gpus @ (colours == k) for k in range(int(colours.max(initial=-1)) + 1)]
    before = window.finished_epochs / window.total_epochs
    left = _left(plan)
    jobs = [
        [
            _job_id(window.ids[job]),
            int(window.gang_gpus[job]),
            _rounded(before[job]),
            _rounded(min(1.0, max(before[job], plan.utilities[job]))),
            _rounded(window.total_epochs[job]),
            _rounded(window.ftf[job]),
            _rounded(window.weight[job]),
            int(window.is_running[job]),
            _rounded(left[job]),
            [
                [_rounded(window.regime_epochs[k]), _rounded(window.regime_epoch_s[k])]
                for k in range(int(starts[job]), int(starts[job + 1]))
            ],
            runs[job],
        ]
        for job in shown
    ]
    return {
        "gpus": int(window.gpus),
        "rounds": int(window.rounds),
        "round_s": _rounded(window.round_s),
        "all_jobs": len(window.ids),
        "colours": COLOURS,
        "in_use": [line.tolist() for line in in_use],
        "running": plan.grants.sum(axis=0).tolist(),
        "fields": _FIELDS,
        "jobs": jobs,
    }


def _left(plan: GrantedRounds) -> NDArray[np.float64]:
    """Return the run time left after the window in seconds, without the rounding error of a job that completes."""
    return np.where(plan.utilities >= 1 - 1e-9, 0.0, plan.remaining_s)


def _lead(plan: GrantedRounds) -> str:
    window = plan.window
    span = _duration(window.rounds * window.round_s)
    granted = int(np.count_nonzero(plan.rounds_granted))
    return (
        f"{granted:,} of {_count(len(window.ids), 'job')} run in the next {span}"
        f" ({_count(window.rounds, 'round')} of {_duration(window.round_s)}),"
        f" which keeps {_utilisation(plan)} of {_count(window.gpus, 'GPU')} in use."
    )


def _tiles(plan: GrantedRounds) -> list[tuple[str, str, str]]:
    """Return the headline figures as (name, figure, explanation)."""
    window = plan.window
    jobs = len(window.ids)
    granted = int(np.count_nonzero(plan.rounds_granted))
    ended = int(np.count_nonzero((_left(plan) == 0) & (plan.rounds_granted > 0)))
    unfair = int(np.count_nonzero(window.ftf > 1.05))
    used, offered = int(plan.gpus_in_use.sum()), int(window.gpus) * int(window.rounds)
    return [
        ("Jobs with rounds", f"{granted:,} / {jobs:,}", f"{jobs - granted:,} without, {ended:,} complete"),
        (
            "Window",
            _duration(window.rounds * window.round_s),
            f"{_count(window.rounds, 'round')} \N{MULTIPLICATION SIGN} {_duration(window.round_s)}",
        ),
        ("GPUs in use", _utilisation(plan), f"{used:,} of {offered:,} GPU-rounds"),
        ("Makespan, at least", _duration(plan.makespan_bound_s), "run time left after the window"),
        ("Starts", f"{int(plan.restarts):,}", f"{_count(int(window.is_running.sum()), 'job')} ran just before"),
        ("Worst fairness", figure_text(float(window.ftf.max()), 3), f"{_count(unfair, 'job')} above 1.05"),
    ]


def _proof_tiles(objective: float, certificate: SolveCertificate | None) -> list[tuple[str, str, str]]:
    """Return the tiles of the objective and the gap: what the solve proved, if there is a certificate."""
    if certificate is None:
        figure = figure_text(objective, distinguishing_digits(objective, None))
        return [("Objective", figure, "no bound given"), ("Gap", "\N{EN DASH}", "no certificate given")]
    return proof_tiles(certificate)


def _omitted(plan: GrantedRounds, shown: int) -> str:
    """Return what the chart leaves out; empty if it shows every job."""
    omitted = len(plan.window.ids) - shown
    if not omitted:
        return ""
    return (
        f"The chart shows the {_count(shown, 'job')} of highest priority (weight times fairness to the power of"
        f" {plan.window.ftf_power:g}); {_count(omitted, 'job')} omitted. All figures and the chart of GPUs in use"
        " cover every job."
    )


def _skipped(plan: GrantedRounds) -> str:
    """Return which jobs are not planned; empty if all are."""
    skipped = tuple(plan.window.skipped)
    if not skipped:
        return ""
    names = ", ".join(short(str(name), _LONGEST_ID) for name in skipped[:10])
    more = f" and {len(skipped) - 10:,} more" if len(skipped) > 10 else ""
    return f"Wider than the cluster and therefore not planned: {_count(len(skipped), 'job')} ({names}{more})."


def _utilisation(plan: GrantedRounds) -> str:
    used, offered = int(plan.gpus_in_use.sum()), int(plan.window.gpus) * int(plan.window.rounds)
    # Rounding must not turn one idle GPU into a full cluster.
    return "100%" if used == offered else f"{math.floor(1000 * used / offered) / 10:g}%"


def _duration(seconds: float) -> str:
    """Return a duration with its two largest units: 45 s, 12 min, 3 h 5 min, 2 d 4 h."""
    if not math.isfinite(seconds):
        return "∞"
    if seconds < 120:
        return f"{seconds:.4g} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{seconds / 60:.3g} min"
    if minutes < 2880:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    hours = round(seconds / 3600)
    return f"{hours // 24:,} d {hours % 24} h" if hours % 24 else f"{hours // 24:,} d"


def _rounded(value: float) -> float | int | None:
    """Return the number with nine digits, whole ones as integers: short in JSON; None if it is not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.9g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _count(number: int, noun: str) -> str:
    return f"{int(number):,} {noun}{'' if number == 1 else 's'}"


def _job_id(name: object) -> str:
    # Lone surrogates are no characters: files cannot hold them, and tools that read the page fail on them.
    text = str(name)
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text
    return short(text, _LONGEST_ID)
