"""Worker processes that score vectors, one task for each vector, by joblib."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..formulations.arrays import Floats
from ..formulations.errors import InvalidInput

#: Turns vectors of shape (B, n) into scores of shape (B, m), row by row.
Score = Callable[[Floats], Floats]
#: The row of a vector, its scores of shape (m,), and the seconds that they took.
Scored = tuple[int, Floats, float]

# Seconds of an evaluation below which tasks may wait in a queue.
SHORT_S = 0.1
# Types of errors where a worker ended in the middle of a task: of loky's processes, of dask, and of ray. They are known
# by name, as importing them loads multiprocessing.
LOST_WORKER = frozenset(
    {
        "BrokenProcessPool",
        "KilledWorker",
        "ActorDiedError",
        "ActorUnavailableError",
        "RayActorError",
        "WorkerCrashedError",
    }
)


class Workers:
    """Workers that score vectors: processes here, or those of the joblib context in which they are used.

    One worker is this process. Several need joblib; without a context they are loky's processes, and inside
    ``joblib.parallel_config(backend="ray")`` or ``"dask"`` those of the cluster. A worker uses one BLAS thread, so that
    scores do not depend on the number of workers. Use it in a `with` statement, which ends what it began.

    Parameters
    ----------
    score : callable
        Pickled for several workers; a lambda or a function of a script will do.
    width : int
        Number of scores of a vector (m).
    count : int
        Number of workers.

    Attributes
    ----------
    notes : list of str
        Lost workers, for the reader of the result.

    Raises
    ------
    InvalidInput
        If several workers are asked for and joblib is missing, or the function cannot be pickled.
    """

    def __init__(self, score: Score, width: int, count: int) -> None:
        self.notes: list[str] = []
        self._score, self._width, self._count = score, width, count
        if count > 1 and find_spec("joblib") is None:
            raise InvalidInput("threads", count, "several workers need joblib: pip install 'equipoise[distributed]'")
        self._pickled = _pickled(score) if count > 1 else b""
        self._parallel: Any = None
        self._seconds: list[float] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._parallel is not None:
            self._parallel.__exit__(None, None, None)
            self._parallel = None

    def scored(self, vectors: Floats, stop: Callable[[], bool] = lambda: False) -> Iterator[Scored]:
        """Yield the scores of vectors, shape (B, n), in the order in which they are done.

        A worker that ends in the middle of a task loses that task only. Tasks that were under way are then run one by
        one: a vector whose worker ends again has scores of nan, and a note says so.

        Parameters
        ----------
        stop : callable
            Whether no further task may begin; asked before each.
        """
        if self._count == 1:
            with one_blas_thread():
                for row, vector in enumerate(vectors):
                    if stop():
                        return
                    yield row, *_timed(self._score, vector)
            return
        left = list(range(len(vectors)))
        while left and not stop():
            begun: list[int] = []
            done: set[int] = set()
            try:
                for scored in self._run(vectors, left, stop, begun):
                    done.add(scored[0])
                    self._seconds.append(scored[2])
                    yield scored
            except Exception as error:
                if not _is_lost_worker(error):
                    raise
                for row in [row for row in begun if row not in done]:
                    if stop():
                        return
                    done.add(row)
                    yield self._alone(vectors, row)
            left = [row for row in left if row not in done]

    def all_scores(self, vectors: Floats) -> Floats:
        """Return the scores of all vectors, shape (B, m)."""
        scores = np.full((len(vectors), self._width), np.nan)
        for row, found, _ in self.scored(vectors):
            scores[row] = found
        return scores

    def _run(
        self, vectors: Floats, rows: Sequence[int], stop: Callable[[], bool], begun: list[int]
    ) -> Iterator[Scored]:
        """Yield the scores of these rows; `begun` receives each row as its task is handed over."""
        from joblib import delayed

        def tasks() -> Iterator[Any]:
            for row in rows:
                if stop():
                    return
                begun.append(row)
                yield delayed(_task)(self._pickled, row, vectors[row])

        self._parallel = self._parallel or _entered_parallel(self._count)
        # Short tasks wait in a queue, which hides the time of handing them over; of others none waits, so that a limit
        # ends the run within one evaluation.
        short = bool(self._seconds) and float(np.mean(self._seconds)) < SHORT_S
        self._parallel.pre_dispatch = "2*n_jobs" if short else "n_jobs"
        try:
            yield from self._parallel(tasks())
        except Exception:
            self.__exit__()  # its workers are gone; the next tasks start others
            raise

    def _alone(self, vectors: Floats, row: int) -> Scored:
        """Return the scores of one row, run while nothing else is; nan if its worker ends."""
        try:
            return next(iter(self._run(vectors, [row], lambda: False, [])))
        except Exception as error:
            if not _is_lost_worker(error):
                raise
        shown = ", ".join(f"{value:.6g}" for value in vectors[row])
        self.notes.append(f"the vector ({shown}) ended its worker process twice and counts as infeasible")
        return row, np.full(self._width, np.nan), math.nan


def _entered_parallel(count: int) -> Any:
    """Return joblib's workers, which stay until their context is left."""
    from joblib import Parallel

    settings: dict[str, Any] = {"n_jobs": count, "batch_size": 1}
    try:
        return Parallel(**settings, return_as="generator_unordered").__enter__()
    except ValueError:  # a context that returns lists only
        return Parallel(**settings).__enter__()


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread in this process."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _timed(score: Score, vector: Floats) -> tuple[Floats, float]:
    began = time.perf_counter()
    scores = score(vector[None, :])[0]
    return scores, time.perf_counter() - began


def _task(pickled: bytes, row: int, vector: Floats) -> Scored:
    """Score one vector in a worker."""
    scores, seconds = _timed(_loaded(pickled), vector)
    return row, scores, seconds


@lru_cache(maxsize=1)
def _loaded(pickled: bytes) -> Score:
    """Return the function, unpickled once in each worker, which from then on uses one BLAS thread."""
    one_blas_thread()
    score: Score = pickle.loads(pickled)
    return score


def _pickled(score: Score) -> bytes:
    from joblib import wrap_non_picklable_objects

    try:
        return pickle.dumps(wrap_non_picklable_objects(score, keep_wrapper=False))
    except Exception as error:
        why = f"cannot be sent to worker processes ({type(error).__name__}: {error}); use threads=1"
        raise InvalidInput("evaluate_many", type(score).__name__, why) from None


def _is_lost_worker(error: Exception) -> bool:
    return any(each.__name__ in LOST_WORKER for each in type(error).__mro__)
