"""ParetoFront: the configurations of a search that no other one dominates, and the choice among them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats
from ..checks import as_real, as_reals
from ..errors import InvalidInput
from ..files import written
from .delay_timers import DelayTimers
from .front_page import front_page
from .front_picture import front_picture
from .front_point import FrontPoint
from .objective import Objective, as_objectives
from .pareto import hypervolume, nondominated
from .wfq_config import WfqConfig

if TYPE_CHECKING:
    import pandas as pd

#: Names of picks, and the metrics that they make small.
NAMED_PICKS = {
    "jct": "jct",
    "pred": "pred_error",
    "waited": "waited",
    "communication": "communication",
    "makespan": "makespan",
    "balanced": "",
}


#: Readers of configurations in files, by type; a mapping is kept as it is.
CONFIGURATIONS = {"WfqConfig": WfqConfig.from_json, "DelayTimers": DelayTimers.from_json}


@dataclass(frozen=True, kw_only=True, eq=False)
class ParetoFront:
    """Mutually non-dominated points of a search, by ascending first score.

    Attributes
    ----------
    variables : tuple of str, length n
    objectives : tuple of Objective, length m
        Less is better.
    vectors : ndarray of float, shape (P, n)
    scores : ndarray of float, shape (P, m)
    configurations : tuple, length P
        Decoded vectors.
    ideal, reference : ndarray of float, shape (m,)
        Corners of the box in which the hypervolume is measured.
    held_out : ndarray of float, shape (P, m), or None
        Scores on workloads that the search has not seen.

    Raises
    ------
    InvalidInput
        If shapes differ, a number is not finite, or a point is dominated by another one.
    """

    variables: tuple[str, ...]
    objectives: tuple[Objective, ...]
    vectors: Floats
    scores: Floats
    configurations: tuple[Any, ...]
    ideal: Floats
    reference: Floats
    held_out: Floats | None = None

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "objectives", as_objectives("objectives", self.objectives))
        store(self, "scores", as_reals("scores", self.scores, ndim=2))
        shape = (len(self.scores), len(self.objectives))
        if self.scores.shape != shape:
            raise InvalidInput("scores", f"shape {self.scores.shape}", f"must have shape {shape}")
        store(self, "vectors", as_reals("vectors", self.vectors, shape=(shape[0], len(self.variables)), ndim=2))
        for name in ("ideal", "reference"):
            store(self, name, as_reals(name, getattr(self, name), shape=shape[1:]))
        if self.held_out is not None:
            store(self, "held_out", as_reals("held_out", self.held_out, shape=shape, ndim=2))
        if len(self.configurations) != shape[0]:
            raise InvalidInput("configurations", f"{len(self.configurations)} values", f"there are {shape[0]} points")
        dominated = np.flatnonzero(~nondominated(self.scores))
        if len(dominated):
            row = int(dominated[0])
            raise InvalidInput("scores", self.scores[row], "another point dominates or equals it", index=row)

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: int) -> FrontPoint:
        index = range(len(self))[index]

        def by_objective(values: Floats) -> dict[str, float]:
            return dict(zip(map(str, self.objectives), values.tolist(), strict=True))

        return FrontPoint(
            index=index,
            vector=dict(zip(self.variables, self.vectors[index].tolist(), strict=True)),
            scores=by_objective(self.scores[index]),
            held_out={} if self.held_out is None else by_objective(self.held_out[index]),
            configuration=self.configurations[index],
        )

    @property
    def hypervolume(self) -> float:
        """Share of the box from `ideal` to `reference` that the points dominate."""
        return hypervolume(self.scores, self.ideal, self.reference)

    def with_held_out(self, scores: ArrayLike) -> ParetoFront:
        """Return the front with scores on other workloads, shape (P, m)."""
        return replace(self, held_out=np.asarray(scores))

    def pick(
        self,
        name: str | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> FrontPoint:
        """Return one point: by name, by the weights of objectives, within limits.

        Parameters
        ----------
        name : {"jct", "pred", "waited", "communication", "makespan", "balanced"}, optional
            The least score of the first objective of this metric ("pred" is pred_error); or the point nearest to the
            best of all objectives, which is also the default.
        weights : mapping of str to float, optional
            Weights by objective ("jct:avg"), at least 0 and not all 0: the least weighted sum. Scores are counted from
            the best to the worst of the front.
        limits : mapping of str to float, optional
            Largest scores by objective: the choice is among the points within all limits. With limits alone it is the
            best by the first objective that has none.

        Raises
        ------
        InvalidInput
            If a name does not exist, name and weights are both given, or no point is within the limits.
        """
        allowed = np.ones(len(self), dtype=bool)
        for objective, limit in (limits or {}).items():
            column = self._column("limits", objective)
            allowed &= self.scores[:, column] <= as_real(f"limits[{objective!r}]", limit)
            if not allowed.any():
                least = self.scores[:, column].min()
                raise InvalidInput("limits", limits, f"no point is within them; the least {objective} is {least:g}")
        if name is not None and weights is not None:
            raise InvalidInput("weights", weights, "leave them out with a name")
        if weights is not None:
            merit = self._unit_scores() @ self._weights(weights)
        elif name is None and limits:
            free = [i for i, each in enumerate(self.objectives) if str(each) not in limits]
            merit = self.scores[:, (free or [0])[0]]
        else:
            merit = self._merit("balanced" if name is None else name)
        return self[int(np.where(allowed, merit, np.inf).argmin())]

    def _merit(self, name: str) -> Floats:
        """Return the quantity by point that the pick of this name makes small, shape (P,)."""
        if name not in NAMED_PICKS:
            raise InvalidInput("name", name, f"the picks are {', '.join(NAMED_PICKS)}")
        if name == "balanced":
            return np.asarray(np.linalg.norm(self._unit_scores(), axis=1))
        metrics = [each.metric for each in self.objectives]
        if NAMED_PICKS[name] not in metrics:
            raise InvalidInput("name", name, f"no objective of the front is of {NAMED_PICKS[name]}")
        return self.scores[:, metrics.index(NAMED_PICKS[name])]

    def _unit_scores(self) -> Floats:
        """Return the scores counted from the best (0) to the worst (1) of the front, shape (P, m)."""
        best, worst = self.scores.min(axis=0), self.scores.max(axis=0)
        return np.asarray((self.scores - best) / np.where(worst > best, worst - best, 1.0))

    def _weights(self, weights: Mapping[str, float]) -> Floats:
        found = np.zeros(len(self.objectives))
        for objective, weight in weights.items():
            found[self._column("weights", objective)] = as_real(f"weights[{objective!r}]", weight, minimum=0.0)
        if not found.any():
            raise InvalidInput("weights", weights, "must not all be 0")
        return found

    def _column(self, field: str, objective: str) -> int:
        names = [str(each) for each in self.objectives]
        if objective not in names:
            raise InvalidInput(field, objective, f"the objectives are {', '.join(names)}")
        return names.index(objective)

    @property
    def named_picks(self) -> dict[str, FrontPoint]:
        """The picks by name that exist: those whose metric is an objective."""
        metrics = {"", *(each.metric for each in self.objectives)}
        return {name: self.pick(name) for name, metric in NAMED_PICKS.items() if metric in metrics}

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each point: scores, held-out scores and variables."""
        import pandas as pd

        columns = {str(each): self.scores[:, i] for i, each in enumerate(self.objectives)}
        if self.held_out is not None:
            columns |= {f"{each} held out": self.held_out[:, i] for i, each in enumerate(self.objectives)}
        columns |= {name: self.vectors[:, i] for i, name in enumerate(self.variables)}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self), name="point"))

    def to_svg(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the picture of the first two objectives, and write it to `path` if given.

        Raises
        ------
        InvalidInput
            If there is only one objective.
        """
        return written(front_picture(self), path)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Pareto front",
        evidence: Mapping[str, object] | None = None,
    ) -> str:
        """Return the page on which an operator chooses a point, and write it to `path` if given.

        It needs no network. `evidence` has facts of the search that the front does not hold, such as backend and seed.
        """
        return written(front_page(self, title=title, evidence=evidence), path)

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the front as JSON, and write it to `path` if given; the file appears whole or not at all."""
        points = []
        for index in range(len(self)):
            point = self[index]
            points.append({
                "vector": list(point.vector.values()),
                "scores": list(point.scores.values()),
                **({"held_out": list(point.held_out.values())} if point.held_out else {}),
                "configuration": json.loads(point.to_json()),
            })  # fmt: skip
        kind = type(self.configurations[0])
        content = {
            "variables": list(self.variables),
            "objectives": [str(each) for each in self.objectives],
            "ideal": self.ideal.tolist(),
            "reference": self.reference.tolist(),
            "configurations": kind.__name__ if kind.__name__ in CONFIGURATIONS else "mapping",
            "points": points,
        }
        return written(json.dumps(content, indent=1) + "\n", path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ParetoFront:
        """Read what `save` writes.

        Raises
        ------
        InvalidInput
            If the file cannot be read, is no JSON of a front, or a value is out of range.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise InvalidInput("path", str(path), f"is no front ({error})") from None
        try:
            points = content["points"]
            read = CONFIGURATIONS.get(content["configurations"], json.loads)
            held_out = [point["held_out"] for point in points if "held_out" in point]
            fields: dict[str, Sequence[Any]] = {
                "variables": tuple(map(str, content["variables"])),
                "objectives": content["objectives"],
                "vectors": [point["vector"] for point in points],
                "scores": [point["scores"] for point in points],
                "configurations": tuple(read(json.dumps(point["configuration"])) for point in points),
                "ideal": content["ideal"],
                "reference": content["reference"],
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput("path", str(path), f"is no front: {type(error).__name__} {error}") from None
        return cls(**fields, held_out=held_out or None)  # type: ignore[arg-type]  # checked on construction

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.objectives))
        return f"<ParetoFront of {len(self)} points by {names}, hypervolume {self.hypervolume:.4f}>"
