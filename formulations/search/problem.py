"""SearchProblem: decisions that only a simulation scores, with one or several objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..arrays import Floats
from ..checks import as_reals, refuse
from ..errors import InvalidInput
from ..program.data import Residuals
from ..program.formulation import Apply, Formulation
from .front import ParetoFront
from .objective import Objective, Variable, as_objectives
from .pareto import hypervolume, nondominated

#: Score vectors of variables, shape (B, n), by objective, shape (B, m); nan where a vector is infeasible.
EvaluateMany = Callable[[Floats], Floats]


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchProblem(Formulation[ParetoFront]):
    """Find vectors within bounds whose scores no other vector's scores dominate; the scores come from a function.

    `solve` maximises the hypervolume: the share of the box from `ideal` to `reference` that the scores of the front
    dominate. Its bound is 1, the whole box, so that the gap is true, if loose.

    Parameters
    ----------
    variables : sequence of Variable, length n
    objectives : sequence of Objective, length m
        One or more quantities, of which less is better; also as pairs ("jct", "avg") or text "jct:avg".
    evaluate_many : callable
        Scores of vectors: takes an array of shape (B, n), returns one of shape (B, m), with a row of nan for an
        infeasible vector. It must be deterministic, row by row, and picklable for several workers.
    ideal, reference : array_like of float, shape (m,)
        Lower bounds of all scores, and the scores from which on a point is of no interest.
    decode_vector : callable, optional
        Turns a vector, shape (n,), into a configuration; by default a mapping of values by variable.
    starts : mapping of str to array_like of float, shape (n,)
        Named vectors that every search scores first.

    Raises
    ------
    InvalidInput
        If a field has the wrong type or shape, or is out of range.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.SearchProblem(
    ...     variables=[eq.Variable("x", -1.0, 3.0)],
    ...     objectives=["small", "near"],
    ...     evaluate_many=lambda x: np.hstack((x**2, (x - 2.0) ** 2)),
    ...     ideal=[0.0, 0.0],
    ...     reference=[4.0, 4.0],
    ... )
    >>> result = eq.solve(problem, "random", backend_options={"random": {"evaluations": 200}})
    >>> result.termination.reason.name, result.bound
    ('FEASIBLE', 1.0)
    >>> round(result.objective, 1)  # 5/6 with all points between 0 and 2
    0.8
    """

    sense = "max"
    trusts_reports: ClassVar[bool] = True
    claims_optimality: ClassVar[bool] = False

    variables: tuple[Variable, ...]
    objectives: tuple[Objective, ...]
    evaluate_many: EvaluateMany
    ideal: Floats
    reference: Floats
    decode_vector: Callable[[Floats], Any] | None = None
    starts: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "variables", _variables(self.variables))
        store(self, "objectives", as_objectives("objectives", self.objectives))
        if not callable(self.evaluate_many):
            raise InvalidInput("evaluate_many", type(self.evaluate_many).__name__, "must be callable")
        for name in ("ideal", "reference"):
            store(self, name, as_reals(name, getattr(self, name), shape=(len(self.objectives),)))
        refuse("reference", self.reference <= self.ideal, self.reference, "must be greater than the ideal")
        if self.decode_vector is not None and not callable(self.decode_vector):
            raise InvalidInput("decode_vector", type(self.decode_vector).__name__, "must be callable")
        if not isinstance(self.starts, Mapping):
            raise InvalidInput("starts", type(self.starts).__name__, "must map names to vectors")
        starts = {}
        for name, vector in self.starts.items():
            found = starts[name] = as_reals(f"starts[{name!r}]", vector, shape=(len(self.variables),))
            outside = (found < self.lower) | (found > self.upper)
            refuse(f"starts[{name!r}]", outside, found, "must lie within the bounds of its variable")
        store(self, "starts", starts)

    @property
    def kind(self) -> str:
        """The name under which backends list searches, those of subclasses as well."""
        return "SearchProblem"

    @property
    def lower(self) -> Floats:
        """Lower bounds of the variables, shape (n,)."""
        return np.array([float(each.lower) for each in self.variables])

    @property
    def upper(self) -> Floats:
        """Upper bounds of the variables, shape (n,)."""
        return np.array([float(each.upper) for each in self.variables])

    def configuration(self, vector: Floats) -> Any:
        """Return the configuration of a vector, shape (n,)."""
        if self.decode_vector is not None:
            return self.decode_vector(vector)
        return {each.name: float(value) for each, value in zip(self.variables, vector, strict=True)}

    def score(self, vectors: Floats) -> Floats:
        """Return the scores of vectors of shape (B, n), shape (B, m); rows that are not finite become nan.

        Raises
        ------
        InvalidInput
            If the evaluator returns anything but numbers of this shape.
        """
        found = self.evaluate_many(vectors)
        shape = (len(vectors), len(self.objectives))
        scores = np.array(found, dtype=np.float64) if _are_numbers(found) else None
        if scores is None or scores.shape != shape:
            what = type(found).__name__ if scores is None else f"shape {scores.shape}"
            raise InvalidInput("evaluate_many", what, f"must return numbers of shape {shape}")
        scores[~np.isfinite(scores).all(axis=1)] = np.nan
        return scores

    def hypervolume(self, scores: Floats) -> float:
        """Return the share of the box that scores of shape (P, m) dominate, within [0, 1]."""
        return hypervolume(scores, self.ideal, self.reference)

    def front(self, vectors: Floats, scores: Floats) -> ParetoFront:
        """Return the front of scored vectors, of shapes (P, n) and (P, m): those that no other one dominates.

        Rows of scores with nan are left out; InvalidInput if no row is left.
        """
        kept = np.flatnonzero(nondominated(scores))
        kept = kept[np.lexsort(scores[kept].T[::-1])]
        return ParetoFront(
            variables=tuple(each.name for each in self.variables),
            objectives=self.objectives,
            vectors=vectors[kept],
            scores=scores[kept],
            configurations=tuple(self.configuration(vector) for vector in vectors[kept]),
            ideal=self.ideal,
            reference=self.reference,
        )

    def check_plan(self, plan: ParetoFront, field: str = "plan") -> None:
        """Raise InvalidInput unless the plan is a front of these variables and objectives, within the bounds."""
        if not isinstance(plan, ParetoFront):
            raise InvalidInput(field, type(plan).__name__, "must be a ParetoFront")
        for name in ("variables", "objectives"):
            own = tuple(each.name if isinstance(each, Variable) else str(each) for each in getattr(self, name))
            given = tuple(str(each) for each in getattr(plan, name))
            if own != given:
                raise InvalidInput(f"{field}.{name}", ", ".join(given), f"the problem's are {', '.join(own)}")
        outside = (plan.vectors < self.lower) | (plan.vectors > self.upper)
        refuse(f"{field}.vectors", outside, plan.vectors, "must lie within the bounds of its variable")

    def evaluate(self, plan: ParetoFront) -> tuple[float, Residuals]:
        """Score every point anew; return the hypervolume of these scores and the worst violations.

        The residuals are the largest excess over a variable's bound and the largest difference between a score of the
        plan and the one computed here, as a share of the box.
        """
        return self.evaluate_scored(plan, self.score(plan.vectors))

    def evaluate_with(self, plan: ParetoFront, apply: Apply) -> tuple[float, Residuals]:
        """Return the same, with the points shared out among workers."""
        return self.evaluate_scored(plan, apply(self.score, plan.vectors, len(self.objectives)))

    def evaluate_scored(self, plan: ParetoFront, scores: Floats) -> tuple[float, Residuals]:
        """Return the same from the scores of the plan's vectors, shape (P, m), computed by `score`."""
        outside = np.maximum(self.lower - plan.vectors, plan.vectors - self.upper).max(initial=0.0)
        differences = np.abs(scores - plan.scores) / (self.reference - self.ideal)
        differences = np.where(np.isnan(differences), np.inf, differences)
        residuals = Residuals(bound=max(0.0, float(outside)), row=float(differences.max(initial=0.0)))
        return self.hypervolume(scores), residuals

    def gap_scale(self, objective: float) -> float:
        """Return 1: the gap is the share of the box that the front does not dominate."""
        return 1.0


def _variables(given: Any) -> tuple[Variable, ...]:
    if not isinstance(given, tuple | list) or not given:
        raise InvalidInput("variables", given, "must be a sequence of variables")
    seen: set[str] = set()
    for index, each in enumerate(given):
        if not isinstance(each, Variable):
            raise InvalidInput("variables", type(each).__name__, "must be a Variable", index=index)
        if each.name in seen:
            raise InvalidInput("variables", each.name, "the same name twice", index=index)
        seen.add(each.name)
    return tuple(given)


def _are_numbers(found: Any) -> bool:
    try:
        return np.asarray(found).dtype.kind in "iuf"
    except ValueError:
        return False
