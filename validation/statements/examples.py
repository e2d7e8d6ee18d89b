"""Random problems on which statements are checked: drawn by seed, and shrunk to the smallest that fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.window.problem import ScheduleWindow
from ..theorems.symbols import TheoryMissing
from .checks import CheckedStatement, check_market, check_stochastic, check_window

if TYPE_CHECKING:
    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

# The most problems that the search for a smaller failing one may try.
MOST_TRIED = 500


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of random problem: its name in the plural, such as "ces markets", and its hypothesis strategy.

    `check` yields the statements checked on a problem.
    """

    subject: str
    name: str
    strategy: Callable[[], SearchStrategy[Any]]
    check: Callable[[Any], Iterator[CheckedStatement]]

    def draw(self, examples: int, seed: int) -> list[Any]:
        """Return `examples` problems, or all there are if that is less."""
        import hypothesis

        drawn: list[Any] = []

        @hypothesis.seed(seed)
        @_settings(examples)
        @hypothesis.given(self.strategy())
        def collect(problem: Any) -> None:
            drawn.append(problem)

        with _temporary_hypothesis_home():
            collect()
        return drawn[:examples]


def kinds_of(subject: str) -> list[Kind]:
    """Return the kinds of problems of a subject; TheoryMissing if hypothesis is not installed.

    Theorems and gpu-sharing have none: no hypothesis strategy draws their examples.
    """
    if subject in ("theorems", "gpu-sharing"):
        return []
    try:
        from .. import strategies
    except ImportError as error:
        if (error.name or "").split(".")[0] != "hypothesis":
            raise
        missing = "random examples need hypothesis, which is not installed: pip install 'equipoise[theory]'"
        raise TheoryMissing(missing) from None
    from ...formulations.markets.volatile import FAMILIES

    check: Callable[[Any], Iterator[CheckedStatement]] = check_market
    found: dict[str, Callable[[], SearchStrategy[Any]]] = {"static linear markets": strategies.fisher_markets} | {
        f"{family} markets over rounds": partial(strategies.volatile_markets, family) for family in FAMILIES
    }
    if subject == "window":
        check, found = check_window, {"windows": strategies.windows}
    elif subject == "stochastic":
        check, found = check_stochastic, {"markets of chains": strategies.stochastic_markets}
    return [Kind(subject=subject, name=name, strategy=strategy, check=check) for name, strategy in found.items()]


@dataclass(frozen=True)
class Failure:
    """A problem on which a statement does not hold, None where none was checked; the violation gives size and place."""

    kind: Kind
    problem: Any
    violation: str

    @property
    def code(self) -> str:
        """The problem as code that makes it again, "" if there is none."""
        return "" if self.problem is None else text_of(self.problem)


def smallest_failure(failure: Failure, statement: str, seed: int) -> Failure:
    """Return the smallest failure of a statement that can be found; at worst the given one."""
    import hypothesis

    kind = failure.kind

    def violation_of(candidate: Any) -> str | None:
        for checked in kind.check(candidate):
            if checked.result.statement == statement and not checked.skipped and not checked.result.holds:
                return checked.violation
        return None

    try:
        with _temporary_hypothesis_home():
            smaller = hypothesis.find(
                kind.strategy(),
                lambda candidate: violation_of(candidate) is not None,
                settings=_settings(MOST_TRIED, shrink=True),
                random=random.Random(seed),
            )
    except hypothesis.errors.NoSuchExample:
        return failure
    violation = violation_of(smaller)
    return failure if violation is None else Failure(kind, smaller, violation)


@contextmanager
def _temporary_hypothesis_home() -> Iterator[None]:
    """Redirect the cache of hypothesis to a temporary folder, away from the working directory."""
    from hypothesis import configuration

    before = getattr(configuration, "__hypothesis_home_directory", None)
    with TemporaryDirectory() as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)


def _settings(examples: int, *, shrink: bool = False) -> settings:
    from hypothesis import HealthCheck, Phase, Verbosity, settings

    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    return settings(
        max_examples=examples, database=None, deadline=None, derandomize=False, phases=phases,
        verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def text_of(problem: Any) -> str:
    """Return a problem as code that makes it again, short where arguments have their defaults."""
    if isinstance(problem, ScheduleWindow):
        return _window_text(problem)
    if is_dataclass(problem):
        given = [(field, getattr(problem, field.name)) for field in fields(problem)]
        inside = ", ".join(f"{field.name}={text_of(value)}" for field, value in given if not _is_default(field, value))
        return f"{type(problem).__name__}({inside})"
    if isinstance(problem, tuple | list):
        return f"[{', '.join(text_of(each) for each in problem)}]"
    if isinstance(problem, np.ndarray):
        return str(problem.tolist()).replace(".0,", ",").replace(".0]", "]")
    if hasattr(problem, "toarray"):
        return f"csr_array({text_of(problem.toarray())})"
    return repr(problem)


def _is_default(field: Field[Any], value: Any) -> bool:
    """Whether an argument can be left out: None, or what a market puts there instead."""
    if field.default is MISSING or field.name not in ("capacities", "productivity"):
        return field.default is None and value is None
    return value is None or bool((value == 1).all())


def _window_text(window: ScheduleWindow) -> str:
    from ...formulations.window.problem import Regime, WindowJob

    starts = window.regime_starts
    jobs = [
        WindowJob(
            id=window.ids[j], gpus=int(window.gang_gpus[j]),
            finished_epochs=float(window.finished_epochs[j]), total_epochs=float(window.total_epochs[j]),
            regimes=[
                Regime(epochs=float(window.regime_epochs[k]), epoch_s=float(window.regime_epoch_s[k]))
                for k in range(int(starts[j]), int(starts[j + 1]))
            ],
            ftf=float(window.ftf[j]), weight=float(window.weight[j]),
        )
        for j in range(len(window.ids))
    ]  # fmt: skip
    names = ("gpus", "rounds", "round_s", "ftf_power", "makespan_weight", "makespan_scale", "gang_weighted")
    values = [f"{name}={getattr(window, name)!r}" for name in (*names, "utility_floor", "restart_penalty")]
    running = [identity for identity, on in zip(window.ids, window.is_running, strict=True) if on]
    return f"ScheduleWindow({jobs}, {', '.join(values)}, running={running})"
