"""What the backends of searches share: batches of vectors are scored until a limit, and the front is reported."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Generator
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import UnsupportedProblem
from ...formulations.search.front import ParetoFront
from ...formulations.search.problem import SearchProblem
from ..backend import Answer, Backend, Progress, Task
from ..deadline import Deadline
from ..options import Options
from ..result import Limit
from ..workers import Workers
from .archive import Archive
from .checkpoint import Checkpoint, description
from .settings import LIMITS, POPULATION, SearchSettings

#: Proposed vectors, shape (B, n), which are answered by their scores, shape (B, m), nan where infeasible.
Batches = Generator[Floats, Floats, None]

# A method that proposes nothing new in so many batches has nothing left to propose.
MOST_IDLE_BATCHES = 100


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search: a KeyboardInterrupt with the front so far.

    Attributes
    ----------
    front : ParetoFront or None
        The best front, whose scores have not been checked; None if nothing feasible was found.
    evaluations : int
        Number of vectors that were scored.
    """

    def __init__(self, front: ParetoFront | None, evaluations: int) -> None:
        super().__init__(f"{evaluations} vectors were scored")
        self.front, self.evaluations = front, evaluations


class SearchBackend(Backend):
    """A search: a method proposes vectors, batch by batch; the rest is here.

    The same seed gives the same front, whatever the number of workers. No vector is scored twice; every point of the
    final front is scored once more by the check of the answer.

    Attributes
    ----------
    most_objectives : int or None
        Most objectives of a search that it accepts; None: any number.
    population : int
        Size of its population, or of a batch, by default.
    """

    licence = "Apache-2.0"
    version = "1"
    formulations = frozenset({"SearchProblem"})
    supported_options = frozenset({"threads", "seed", "warm_start"})
    known_options = LIMITS
    most_objectives: int | None = None
    population: int = POPULATION

    @abstractmethod
    def batches(self, problem: SearchProblem, first: Floats, settings: SearchSettings, seed: int) -> Batches:
        """Yield batches of vectors, shape (B, n), and take their scores; the search ends when it returns.

        Parameters
        ----------
        first : ndarray of float, shape (S, n)
            Vectors that are scored before: the problem's starts and the points of the warm start.
        """

    def identity(self, settings: SearchSettings) -> dict[str, Any]:
        """Return the own options on which the proposed vectors depend, for the checkpoint."""
        return {}

    def skip_reason(self, problem: Any, options: Options) -> str:
        """Return why "auto" should leave this problem to a later backend: it has too many objectives."""
        if self.most_objectives is None or not isinstance(problem, SearchProblem):
            return ""
        count = len(problem.objectives)
        return f"it is for {self.most_objectives} objective, here {count}" if count > self.most_objectives else ""

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Search until a limit; the answer is the front of all vectors that were scored.

        Raises
        ------
        UnsupportedProblem
            If the search has too many objectives.
        SearchInterrupted
            After Ctrl-C.
        """
        problem: SearchProblem = task.problem
        if reason := self.skip_reason(problem, options):
            names = ", ".join(map(str, problem.objectives))
            raise UnsupportedProblem(f"{self.name} cannot search for {names}: {reason}; use backend='spea2'")
        own = {"population": self.population, **self.backend_options(options)}
        settings = SearchSettings.of(self.name, own, options.time_limit)
        warm = np.empty((0, len(problem.variables)))
        if options.warm_start is not None:
            problem.check_plan(options.warm_start, "warm_start")
            warm = options.warm_start.vectors
        first = np.vstack((*problem.starts.values(), warm))
        search = Search(self, problem, first, options, settings, on_progress)
        batches = self.batches(problem, first, settings, options.seed)
        try:
            with search.workers:
                limit = search.score_first(first, warm) or search.run(batches)
        except KeyboardInterrupt:
            raise SearchInterrupted(search.incumbent, len(search.archive)) from None
        notes = (f"the {len(warm)} vectors of the warm start were scored first",) if len(warm) else ()
        return Answer.ended(limit, plan=search.incumbent, bound=1.0, notes=(*notes, *search.notes))


class Search:
    """One run of a search.

    Attributes
    ----------
    archive : Archive
        All vectors scored so far.
    workers : Workers
        To be used in a `with` statement around the run.
    incumbent : ParetoFront or None
        The front of the greatest hypervolume after any batch, of at most `front_size` points.
    """

    def __init__(
        self,
        backend: SearchBackend,
        problem: SearchProblem,
        first: Floats,
        options: Options,
        settings: SearchSettings,
        on_progress: Progress,
    ) -> None:
        self.archive = Archive(problem)
        self.incumbent: ParetoFront | None = None
        self._problem, self._options, self._settings, self._on_progress = problem, options, settings, on_progress
        self._deadline = Deadline.of(options)
        self.workers = Workers(problem.score, len(problem.objectives), options.threads)
        self._checkpoint: Checkpoint | None = None
        if settings.checkpoint is not None:
            search = description(
                problem,
                backend=backend.name,
                version=backend.probe().version,
                seed=options.seed,
                first=first.tolist(),
                **backend.identity(settings),
            )
            field = f"backend_options[{backend.name!r}]['checkpoint']"
            self._checkpoint = Checkpoint(field, settings.checkpoint, search, len(problem.objectives))
        self._simulated, self._seconds = 0, 0.0
        self._hypervolume, self._improved_at = -math.inf, 0

    @property
    def notes(self) -> list[str]:
        """Facts for the reader of the result."""
        return [*self.workers.notes, *(self._checkpoint.notes if self._checkpoint else [])]

    def score_first(self, first: Floats, warm: Floats) -> Limit | None:
        """Score the first vectors, and take the front of the warm start as an incumbent; return the limit, if any."""
        if not len(first):
            return None
        limit = self._step(first)
        scored = [vector for vector in warm if Archive.key(vector) in self.archive.scores]
        scores = np.array([self.archive.scores[Archive.key(vector)] for vector in scored])
        if 0 < len(scored) <= self._settings.front_size and not np.isnan(scores).all():
            self._adopt(self._problem.front(np.array(scored), scores))
        return limit

    def run(self, batches: Batches) -> Limit:
        """Score batch after batch; return the limit that ended the search."""
        idle = 0
        scores: Floats | None = None
        while idle < MOST_IDLE_BATCHES:
            try:
                batch = next(batches) if scores is None else batches.send(scores)
            except StopIteration:
                break
            before = len(self.archive)
            limit = self._step(batch)
            if limit is not None:
                return limit
            idle = 0 if len(self.archive) > before else idle + 1
            scores = np.array([self.archive.scores[Archive.key(vector)] for vector in batch])
        return Limit.METHOD

    def _step(self, batch: Floats) -> Limit | None:
        """Score a batch and report; return the limit that ends the search, None if it goes on."""
        before = len(self.archive)
        try:
            complete = self._score(batch)
        finally:  # what is scored is kept, also if the evaluator fails
            if len(self.archive) > before:
                self._report()
        return self._limit(complete)

    def _score(self, batch: Floats) -> bool:
        """Score the vectors of a batch that are new, unless a limit ends it; return whether all are scored."""
        new = {Archive.key(vector): vector for vector in batch}
        new = {key: vector for key, vector in new.items() if key not in self.archive.scores}
        if self._settings.evaluations is not None:
            new = dict(list(new.items())[: self._settings.evaluations - len(self.archive)])
        known = {} if self._checkpoint is None else self._checkpoint.known
        start = len(self.archive)
        missing = []
        for place, (key, vector) in enumerate(new.items(), start):
            if key in known:
                self.archive.add(place, vector, known[key])
            else:
                missing.append((place, vector))
        if missing:
            vectors = np.array([vector for _, vector in missing])
            for row, scores, seconds in self.workers.scored(vectors, self._time_is_up):
                self.archive.add(*missing[row], scores)
                if seconds == seconds:
                    self._simulated, self._seconds = self._simulated + 1, self._seconds + seconds
        return all(Archive.key(vector) in self.archive.scores for vector in batch)

    def _time_is_up(self) -> bool:
        """Whether the time left is what the final check of the front takes."""
        left = self._deadline.left()
        if left is None:
            return False
        checked = min(len(self.archive.points), self._settings.front_size)
        rounds = math.ceil(checked / self._options.threads)
        return left <= rounds * self._seconds / max(self._simulated, 1)

    def _report(self) -> None:
        """Save the evaluations, and report the front as the incumbent."""
        if self._checkpoint is not None:
            self._checkpoint.save(self.archive)
        points = self.archive.points
        measures = {"evaluations": float(len(self.archive))}
        if not len(points):
            self._on_progress(None, 1.0, None, measures)
            return
        self._adopt(self.archive.front(self._settings.front_size))
        best = points.min(axis=0).tolist()
        measures |= {str(each): score for each, score in zip(self._problem.objectives, best, strict=True)}
        self._on_progress(self._hypervolume, 1.0, self.incumbent, measures)

    def _adopt(self, front: ParetoFront) -> None:
        """Take a front as the incumbent if its hypervolume is greater."""
        hypervolume = front.hypervolume
        if hypervolume > self._hypervolume:
            self.incumbent, self._hypervolume = front, hypervolume
            self._improved_at = len(self.archive)

    def _limit(self, complete: bool) -> Limit | None:
        """Return the limit that ends the search after a batch; None if it goes on."""
        settings, count = self._settings, len(self.archive)
        gap = max(self._options.rel_gap, self._options.abs_gap)
        if self._hypervolume >= min(settings.hypervolume, 1.0 - gap):
            return Limit.METHOD
        if settings.evaluations is not None and count >= settings.evaluations:
            return Limit.ITERATIONS
        if not complete or self._time_is_up():
            return Limit.TIME
        return Limit.METHOD if count - self._improved_at >= settings.stall else None
