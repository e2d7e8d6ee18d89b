"""Random jobs that share GPUs, and the ratios of measured pairs."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput
from ...formulations.gpu_sharing.delay_problem import OBJECTIVES
from ...formulations.gpu_sharing.group import GroupSharing
from ...formulations.gpu_sharing.pair import PairSharing

MOST_RUNNING = 4


def random_pair(rng: np.random.Generator, objective: str | None = None) -> PairSharing:
    """Draw a pair with ratios from 1 to 11, equal for one pair in four.

    Times are whole numbers up to 60, so that ties occur, or spread over four orders of magnitude. A third of the pairs
    has ratios up to 2 only, where sharing is often right.
    """
    times = rng.integers(1, 61, 2).astype(np.float64) if rng.random() < 0.5 else 10.0 ** rng.uniform(0, 4, 2)
    ratios = rng.uniform(1.0, 2.0 if rng.random() < 1 / 3 else 11.0, 2)
    if rng.random() < 0.5:
        ratios = np.maximum(1.0, np.round(ratios * 4) / 4)
    if rng.random() < 0.25:
        ratios[1] = ratios[0]
    return PairSharing(
        running_s=float(times[0]),
        waiting_s=float(times[1]),
        running_ratio=float(ratios[0]),
        waiting_ratio=float(ratios[1]),
        **_objective(rng, objective, 1),
    )


def random_group(rng: np.random.Generator, objective: str | None = None) -> GroupSharing:
    """Draw a new job over up to four running ones; times and ratios as in `random_pair`."""
    jobs = int(rng.integers(1, MOST_RUNNING + 1))
    whole = rng.random() < 0.5
    times = rng.integers(1, 61, jobs + 1).astype(np.float64) if whole else 10.0 ** rng.uniform(0, 3, jobs + 1)
    ratios = rng.uniform(1.0, float(rng.choice([2.0, 4.0, 11.0])), (2, jobs))
    ratios = np.maximum(1.0, np.round(ratios * 4) / 4) if whole else ratios
    if rng.random() < 0.25:
        ratios[1] = ratios[0]
    return GroupSharing(
        running_s=times[:-1],
        waiting_s=float(times[-1]),
        running_ratios=ratios[0],
        waiting_ratios=ratios[1],
        **_objective(rng, objective, jobs),
    )


def _objective(rng: np.random.Generator, objective: str | None, jobs: int) -> dict[str, Any]:
    chosen = str(rng.choice(OBJECTIVES)) if objective is None else objective
    weights = rng.integers(1, 6, jobs + 1).astype(np.float64) if chosen == "weighted_jct" else None
    return {"objective": chosen, "weights": weights}


def measured_ratios(path: Path, gpu: str = "v100") -> Floats:
    """Return the ratios of all complete pairs of one type of GPU, shape (P, 2).

    The file has the columns gpu, xi_a and xi_b (ratios of both jobs); a pair with an empty ratio is incomplete.
    InvalidInput names file and line of a ratio that is no number of at least 1, and a file without such pairs.
    """
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        for column in ("gpu", "xi_a", "xi_b"):
            if column not in (table.fieldnames or ()):
                raise InvalidInput("interference", str(path), f"has no column {column}")
        for row in table:
            cells = [(row[column] or "").strip() for column in ("xi_a", "xi_b")]
            if row["gpu"] != gpu or not all(cells):
                continue
            try:
                ratios = [float(cell) for cell in cells]
            except ValueError:
                ratios = [math.nan]
            if not all(ratio >= 1.0 and math.isfinite(ratio) for ratio in ratios):
                why = f"line {table.line_num}: ratios must be numbers of at least 1"
                raise InvalidInput("interference", str(path), f"{why}, not {', '.join(cells)}")
            found.append(ratios)
    if not found:
        raise InvalidInput("interference", str(path), f"has no complete pair of {gpu}")
    return np.array(found)
