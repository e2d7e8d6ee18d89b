"""SampledSearch: a search whose configurations are scored by simulations of samples of a workload."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput
from ...formulations.search.front import ParetoFront
from ...formulations.search.objective import Variable, as_objectives
from ...formulations.search.problem import EvaluateMany, SearchProblem
from ...simulation.traces.trace import Trace

# The reference lies beyond the worst start by this factor.
_BEYOND = 1.1


class Space(Protocol):
    """Variables of a search, and the configurations that they state."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables."""
        ...

    @property
    def corners(self) -> Mapping[str, Floats]:
        """Named vectors, the corners of the space among them, that every search scores first."""
        ...

    def decode(self, vector: Floats) -> Any:
        """Return the configuration of a vector; InvalidInput for an infeasible one."""
        ...


class Scores(Protocol):
    """Scores of configurations on some traces."""

    @property
    def ideal(self) -> Floats:
        """Scores that no configuration falls below, shape (m,)."""
        ...

    def of(self, configuration: Any) -> Floats:
        """Return the scores of a configuration, shape (m,)."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledSearch(SearchProblem):
    """A search on training samples, with held-out samples apart; a subclass states its space and its scores.

    Parameters
    ----------
    train : tuple of Trace
        Samples on which configurations are scored, each by a simulation; a score is the mean over them.
    test : tuple of Trace
        Samples for held-out scores alone.
    objectives : sequence of one to four objectives
        Of the `metrics` of the class.
    reference : array_like of float, shape (m,), optional
        By default 1.1 times the worst scores of the starts, computed on construction.
    """

    metrics: ClassVar[tuple[str, ...]]
    single_metrics: ClassVar[tuple[str, ...]] = ()

    train: tuple[Trace, ...]
    test: tuple[Trace, ...] = ()
    reference: Any = None
    variables: tuple[Variable, ...] = field(init=False)
    evaluate_many: EvaluateMany = field(init=False, repr=False)
    ideal: Floats = field(init=False)
    decode_vector: Callable[[Floats], Any] = field(init=False, repr=False)
    starts: Mapping[str, Floats] = field(init=False)
    _trained: Any = field(init=False, repr=False)
    _tested: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "objectives", as_objectives("objectives", self.objectives, self.metrics, self.single_metrics))
        if len(self.objectives) > 4:
            raise InvalidInput("objectives", f"{len(self.objectives)} objectives", "must be at most four")
        for name in ("train", "test"):
            store(self, name, _traces(name, getattr(self, name)))
        if not self.train:
            raise InvalidInput("train", "()", "must have at least one trace")
        for name, traces in (("_trained", self.train), ("_tested", self.test)):
            store(self, name, self._scores(traces))
        store(self, "variables", self._space.variables)
        store(self, "decode_vector", self._space.decode)
        store(self, "evaluate_many", self._evaluate)
        store(self, "starts", dict(self._space.corners))
        store(self, "ideal", self._trained.ideal)
        if self.reference is None:
            store(self, "reference", self._reference())
        super().__post_init__()

    @property
    @abstractmethod
    def _space(self) -> Space: ...

    @abstractmethod
    def _scores(self, traces: tuple[Trace, ...]) -> Scores: ...

    def _evaluate(self, vectors: Floats) -> Floats:
        """Return the scores of vectors of shape (B, n), shape (B, m); nan where one is infeasible."""
        found = np.full((len(vectors), len(self.objectives)), np.nan)
        for row, vector in enumerate(vectors):
            try:
                config = self._space.decode(vector)
            except InvalidInput:
                continue
            found[row] = self._trained.of(config)
        return found

    def _reference(self) -> Floats:
        """Return the worst scores of the starts, and a tenth more."""
        scores = self._evaluate(np.array(list(self.starts.values())))
        worst = np.nanmax(np.where(np.isfinite(scores), scores, np.nan), axis=0)
        # Where all are perfect any positive number will do.
        return np.where(worst > 0.0, _BEYOND * worst, 1.0)

    def scores_of(self, configurations: Sequence[Any], *, held_out: bool = False) -> Floats:
        """Return the scores of any configurations on the training samples, or on the held-out ones, shape (P, m).

        Raises
        ------
        InvalidInput
            If held-out scores are asked for and there are no test samples.
        """
        scores = self._scores_on(held_out)
        return np.array([scores.of(each) for each in configurations]).reshape(-1, len(self.objectives))

    def _scores_on(self, held_out: bool) -> Any:
        if held_out and not self.test:
            raise InvalidInput("test", "()", "there are no samples for held-out scores")
        return self._tested if held_out else self._trained

    def held_out_scores(self, front: ParetoFront) -> Floats:
        """Return the scores of a front's configurations on the test samples, shape (P, m)."""
        return self.scores_of(front.configurations, held_out=True)

    def __reduce__(self) -> tuple[object, ...]:
        # What follows from the fields is not pickled; and a process that receives the same fields again, as workers do
        # with each task, keeps what it has derived from them.
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return _restored, (type(self), pickle.dumps(values))


@lru_cache(maxsize=4)
def _restored(kind: type[SampledSearch], values: bytes) -> SampledSearch:
    return kind(**pickle.loads(values))


def _traces(name: str, given: Any) -> tuple[Trace, ...]:
    if isinstance(given, Trace) or not isinstance(given, Sequence):
        raise InvalidInput(name, type(given).__name__, "must be a tuple of traces")
    for index, trace in enumerate(given):
        if not isinstance(trace, Trace):
            raise InvalidInput(name, type(trace).__name__, "must be a Trace", index=index)
    return tuple(given)
