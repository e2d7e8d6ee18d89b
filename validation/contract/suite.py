"""The contract of backends: a suite that any backend can run, ours or a third party's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ...formulations.errors import EquipoiseError, InvalidInput
from ...formulations.program.data import ProblemClass
from ...formulations.text import columns_text, nearest_name
from ...solvers.backend import Backend
from ...solvers.registry import find_backend
from ...solvers.selection import reads
from . import clusters, formulations, limits, markets, optima, options, outcomes, searches, sharing, windows
from .check import Check, Failure, Skip
from .formulations import FORMULATIONS
from .market_draws import MARKETS
from .options import Kind
from .programs import CONTINUOUS, EVERY, INTEGER
from .searches import SEARCH

Outcome = Literal["passed", "skipped", "failed"]

WINDOW = "ScheduleWindow"
# The most skipped cases of one reason that a printed report names; beyond, it gives their number.
MOST_NAMED = 3


class ContractBroken(EquipoiseError, AssertionError):  # noqa: N818
    """A backend failed cases of the contract; the message lists them."""


@dataclass(frozen=True)
class Case:
    """One case of the contract: its topic in a few words, and the kind of problem that a backend must read for it.

    `run`, given the check and the kind, raises Failure or Skip.
    """

    topic: str
    kind: Kind
    run: Callable[[Check, Any], None]

    @property
    def name(self) -> str:
        """The topic and the kind, as in "optimal-LP"."""
        return f"{self.topic}-{_label(self.kind)}"


@dataclass(frozen=True, kw_only=True)
class ContractRow:
    """The outcome of one case: `detail` is the reason why it was skipped or failed, or the number of solves."""

    case: str
    outcome: Outcome
    detail: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ContractReport:
    """What became of every case; prints as a table."""

    backend: str
    version: str
    rows: tuple[ContractRow, ...]

    @property
    def passed(self) -> bool:
        """Whether no case failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[ContractRow, ...]:
        """The cases that failed."""
        return tuple(row for row in self.rows if row.outcome == "failed")

    @property
    def summary(self) -> str:
        """One line: how many cases passed, were skipped, failed."""
        counts = [f"{sum(row.outcome == each for row in self.rows)} {each}" for each in ("passed", "skipped", "failed")]
        return f"{self.backend}: {', '.join(counts)}"

    def require(self) -> ContractReport:
        """Return the report if no case failed; raise ContractBroken otherwise, with every failure."""
        if self.failures:
            lines = [f"{row.case}: {row.detail}" for row in self.failures]
            raise ContractBroken(f"{self.backend} breaks its contract:\n" + "\n".join(lines))
        return self

    def __str__(self) -> str:
        parts_of = {case.name: (case.topic, _label(case.kind)) for case in CASES}
        of = {parts_of[row.case]: row.outcome for row in self.rows if row.case in parts_of}
        kinds = list(dict.fromkeys(kind for (_, kind), outcome in of.items() if outcome != "skipped"))
        topics = list(dict.fromkeys(topic for topic, kind in of if kind in kinds))
        lines = [(topic, *(of.get((topic, kind), "") for kind in kinds)) for topic in topics]
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.outcome == "skipped":
                reasons.setdefault(row.detail, []).append(row.case)
        parts = [columns_text([("case", *kinds), *lines])] if kinds else []
        parts += [f"failed: {row.case}: {row.detail}" for row in self.failures]
        for reason, cases in reasons.items():
            listed = ", ".join(cases) if len(cases) <= MOST_NAMED else f"{len(cases)} cases"
            parts.append(f"skipped: {listed}: {reason}")
        return "\n".join([*parts, self.summary])


def check_backend(
    backend: str | Backend,
    *,
    cases: Iterable[str] | None = None,
    seed: int = 0,
    time_limit: float = 20.0,
    on_case: Callable[[ContractRow], None] | None = None,
) -> ContractReport:
    """Run the contract on a backend.

    Parameters
    ----------
    backend : str or Backend
        A name from :func:`equipoise.backends`, or an object.
    cases : iterable of str, optional
        Names of cases ("optimal-LP") or of topics ("optimal"); all of them by default.
    seed : int
        Of the programs that are drawn.
    time_limit : float
        Seconds for each solve that has no limit of its own.
    on_case : callable, optional
        Called with each row as it is done.

    Returns
    -------
    ContractReport
        Cases that do not apply are skipped, with the reason; if the backend cannot run here, all are.

    Raises
    ------
    BackendNotFound
        If there is no backend of this name.
    InvalidInput
        If there is no such case.

    Examples
    --------
    >>> from equipoise.validation.contract.suite import check_backend
    >>> print(check_backend("highs", cases=["optimal-LP", "optimal-MILP"]).summary)
    highs: 2 passed, 0 skipped, 0 failed
    """
    tested = find_backend(backend) if isinstance(backend, str) else backend
    found = tested.probe()
    rows = []
    for case in chosen_cases(cases):
        obstacle = _reason_not_read(tested, case.kind)
        if not found.usable:
            obstacle = f"{tested.name} cannot run here: {found.reason}"
        check = Check(tested, case=case.name, seed=seed, time_limit=time_limit)
        row = _run(case, check) if not obstacle else _skipped(case.name, obstacle)
        rows.append(row)
        if on_case is not None:
            on_case(row)
    if cases is None:
        untested = tested.formulations - {case.kind for case in CASES if isinstance(case.kind, str)}
        rows += [_skipped(f"optimal-{name}", "no generator of such problems") for name in sorted(untested)]
    return ContractReport(backend=tested.name, version=found.version, rows=tuple(rows))


def chosen_cases(names: Iterable[str] | None = None) -> tuple[Case, ...]:
    """Return the cases of these names or topics, all by default; InvalidInput for one that does not exist."""
    if names is None:
        return CASES
    wanted = list(names)
    known = {each for case in CASES for each in (case.name, case.topic)}
    for name in wanted:
        if name not in known:
            near = nearest_name(name, known)
            raise InvalidInput("cases", name, "no such case" + (f": did you mean {near!r}?" if near else ""))
    return tuple(case for case in CASES if case.name in wanted or case.topic in wanted)


def _run(case: Case, check: Check) -> ContractRow:
    started = time.perf_counter()
    outcome: Outcome
    try:
        case.run(check, case.kind)
        outcome, detail = "passed", f"{check.solves} solve{'s' * (check.solves != 1)}"
    except Skip as skip:
        outcome, detail = "skipped", str(skip)
    except Failure as failure:
        outcome, detail = "failed", str(failure)
    except Exception as error:
        outcome, detail = "failed", f"{type(error).__name__}: {error}"
    return ContractRow(case=case.name, outcome=outcome, detail=detail, seconds=time.perf_counter() - started)


def _skipped(name: str, reason: str) -> ContractRow:
    return ContractRow(case=name, outcome="skipped", detail=reason, seconds=0.0)


def _reason_not_read(backend: Backend, kind: Kind) -> str:
    """Return why the backend does not read this kind of problem; empty if it does."""
    if isinstance(kind, str):
        return "" if kind in backend.formulations else f"it does not read {kind} directly"
    if reads(backend, kind):
        return ""
    if not backend.classes:
        return f"it reads {', '.join(sorted(backend.formulations))} only"
    return f"it cannot state {kind.value} programs"


def _label(kind: Kind) -> str:
    return kind if isinstance(kind, str) else kind.value


# What every backend is held to in its options.
DIRECTLY: tuple[Kind, ...] = (*EVERY, WINDOW, *MARKETS, *FORMULATIONS, SEARCH)
# Topic, case, and the kinds of problem it is run on.
_TABLE: tuple[tuple[str, Callable[[Check, Any], None], tuple[Kind, ...]], ...] = (
    ("optimal", outcomes.optimal, EVERY),
    ("infeasible", outcomes.infeasible, EVERY),
    ("infeasible-by-integrality", outcomes.infeasible_by_integrality, INTEGER),
    ("unbounded", outcomes.unbounded, EVERY),
    ("no-columns", outcomes.no_columns, (ProblemClass.LP,)),
    ("no-rows", outcomes.no_rows, EVERY),
    ("free-columns", outcomes.free_columns, EVERY),
    ("fixed-columns", outcomes.fixed_columns, EVERY),
    ("negative-integers", outcomes.negative_integers, INTEGER),
    ("row-ranges", outcomes.row_ranges, EVERY),
    ("empty-row", outcomes.empty_row, EVERY),
    ("degenerate", outcomes.degenerate, EVERY),
    ("no-time", outcomes.no_time_at_all, EVERY),
    ("no-time-equality", outcomes.equality_knapsack_without_time, INTEGER),
    ("planted", optima.planted_optima, EVERY),
    ("planted-endless", optima.endless_columns, EVERY),
    ("enumerated", optima.enumerated_optima, INTEGER),
    ("badly-scaled", optima.badly_scaled, EVERY),
    ("bounds", optima.bounds, EVERY),
    ("duals", optima.duals, CONTINUOUS),
    ("dual-signs", optima.dual_signs, CONTINUOUS),
    ("closed-forms", optima.closed_forms, (ProblemClass.LOG,)),
    ("markets", optima.markets, (ProblemClass.LOG,)),
    ("whole-markets", optima.whole_markets, (ProblemClass.MILOG,)),
    ("job-pairs", sharing.pairs, (ProblemClass.MILP,)),
    ("job-groups", sharing.groups, (ProblemClass.MILP,)),
    ("job-clusters", clusters.clusters, (ProblemClass.MILP,)),
    ("time-limit", limits.time_limit, INTEGER),
    ("no-time-hard", limits.no_time_when_hard, INTEGER),
    ("bound-in-time", limits.bound_within_the_limit, INTEGER),
    ("gaps", limits.gaps, INTEGER),
    ("zero-optimum", limits.zero_optimum, (ProblemClass.LP, ProblemClass.MILP)),
    ("feasibility", options.feasibility, EVERY),
    ("warm-start", limits.warm_start, INTEGER),
    ("warm-start", limits.continuous_warm_start, CONTINUOUS),
    ("warm-start-used", limits.warm_start_is_used, INTEGER),
    ("same-seed", limits.same_seed, EVERY),
    ("progress", limits.progress, INTEGER),
    ("optional-options", options.optional_options, DIRECTLY),
    ("own-options", options.own_options, DIRECTLY),
    ("said-twice", options.said_twice, DIRECTLY),
    ("isolated", options.isolated, DIRECTLY),
    ("threads", options.threads, DIRECTLY),
    ("log", options.log, DIRECTLY),
    ("optimal", windows.optimal, (WINDOW,)),
    ("bounds", windows.bounds, (WINDOW,)),
    ("no-time", windows.no_time_at_all, (WINDOW,)),
    ("warm-start", windows.warm_start, (WINDOW,)),
    ("same-seed", windows.same_seed, (WINDOW,)),
    ("optimal", formulations.optimal, FORMULATIONS),
    ("gaps", formulations.gaps, FORMULATIONS),
    ("no-time", formulations.no_time_at_all, FORMULATIONS),
    ("same-seed", formulations.same_seed, FORMULATIONS),
    ("optimal", markets.optimal, MARKETS),
    ("closed-forms", markets.closed_forms, MARKETS),
    ("gaps", markets.gaps, MARKETS),
    ("bounds", markets.bounds, MARKETS),
    ("edges", markets.edges, MARKETS),
    ("wide-budgets", markets.wide_budgets, MARKETS),
    ("no-time", markets.no_time_at_all, MARKETS),
    ("time-limit", markets.time_limit, MARKETS),
    ("warm-start", markets.warm_start, MARKETS),
    ("same-seed", markets.same_seed, MARKETS),
    ("progress", markets.progress, MARKETS),
    ("easy-fronts", searches.easy, (SEARCH,)),
    ("hard-fronts", searches.hard, (SEARCH,)),
    ("same-seed", searches.same_seed, (SEARCH,)),
    ("same-workers", searches.same_workers, (SEARCH,)),
    ("warm-start", searches.warm_start, (SEARCH,)),
    ("no-time", searches.no_time_at_all, (SEARCH,)),
    ("time-limit", searches.time_limit, (SEARCH,)),
    ("evaluations", searches.evaluations, (SEARCH,)),
    ("progress", searches.progress, (SEARCH,)),
    ("never-optimal", searches.never_optimal, (SEARCH,)),
    ("infeasible", searches.infeasible, (SEARCH,)),
    ("failing", searches.failing, (SEARCH,)),
    ("lost-worker", searches.lost_worker, (SEARCH,)),
)

#: Every case of the contract, in the order in which they run.
CASES: tuple[Case, ...] = tuple(Case(topic, kind, run) for topic, run, kinds in _TABLE for kind in kinds)
