"""Figure 9c: PCS's four parameters against thresholds and weights searched directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.search.pareto import hypervolume, nondominated
from ..claims import below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import FIGURE_9C, cluster_gpus
from .run import Steps, rows_of, searched, spread_columns, tuning_of
from .workloads import generated_case

SPACES = ("parameters", "direct")
# A point of the reference front counts as found if a search has one that is at most this share worse in each score.
_NEAR = 0.01


def figure_9c(settings: ExperimentSettings) -> ExperimentOutcome:
    """Search both spaces with each number of evaluations; compare with the front of all these searches."""
    gpus, jobs = cluster_gpus(settings), max(10, settings.jobs // 2)
    steps = Steps(settings.on_step, settings.repeats * len(SPACES) * len(FIGURE_9C))
    shares: dict[tuple[int, str], list[float]] = {(count, space): [] for count in FIGURE_9C for space in SPACES}
    volumes: dict[tuple[int, str], list[float]] = {key: [] for key in shares}
    for seed in settings.seeds:
        case = generated_case(settings, "automl", gpus=gpus, seed=seed, jobs=jobs)
        problems = {space: tuning_of(case, space=space) for space in SPACES}
        fronts: dict[tuple[int, str], Floats] = {}
        for count, space in shares:
            found = searched(problems[space], settings, seed=seed, evaluations=count).plan
            assert found is not None  # the corners are feasible
            fronts[count, space] = found.scores
            steps.add()
        union = np.vstack(list(fronts.values()))
        best = union[nondominated(union)]
        ideal, reference = problems["parameters"].ideal, problems["parameters"].reference
        whole = hypervolume(best, ideal, reference)
        for key, scores in fronts.items():
            shares[key].append(100.0 * found_share(best, scores))
            volumes[key].append(100.0 * hypervolume(scores, ideal, reference) / whole)
    rows: list[dict[str, Any]] = []
    for count, printed in FIGURE_9C.items():
        row: dict[str, Any] = {"evaluations": count}
        for space, number in zip(SPACES, printed, strict=True):
            row |= spread_columns(f"{space}: points %", shares[count, space]) | {f"{space}: printed %": number}
            row |= spread_columns(f"{space}: hypervolume %", volumes[count, space])
        rows.append(row)
    counts = list(FIGURE_9C)
    curves = {space: (counts, [float(np.mean(shares[count, space])) for count in counts]) for space in SPACES}
    plot = Curves(
        title="Figure 9c", x_axis="evaluations", y_axis="points of the front that are found, in percent",
        curves=curves, log_x=True,
    )  # fmt: skip
    return ExperimentOutcome(rows=rows_of(case, rows), claims=space_claims(rows), plots=(plot,))


def found_share(best: Floats, scores: Floats) -> float:
    """Return the share of the points of a front that scores reach, up to 1% in each score; shapes (P, m), (Q, m)."""
    reached = np.all(scores[None, :, :] <= (1.0 + _NEAR) * best[:, None, :], axis=2)
    return float(np.mean(np.any(reached, axis=1)))


def space_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Check that the parameterised space gives more with the same number of evaluations."""

    def pairs(column: str) -> dict[str, tuple[float, float]]:
        return {
            f"{row['evaluations']} evaluations": (row[f"direct: {column}"], row[f"parameters: {column}"])
            for row in rows
        }

    printed = ", ".join(f"{direct:g} against {parameters:g}" for parameters, direct in FIGURE_9C.values())
    return (
        below("the direct space finds fewer points of the front", pairs("points %"), unit="%", printed=printed),
        below("the direct space dominates less", pairs("hypervolume %"), unit="%"),
    )
