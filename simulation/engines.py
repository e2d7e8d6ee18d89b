"""Table of engines, and `simulate`, which runs a trace under a policy in the policy's engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

from ..formulations.errors import InvalidInput
from ..formulations.text import nearest_hint
from .cluster import Cluster
from .entry_points import LazyTable, with_installed
from .results.interrupt import OnStep
from .results.result import SimulationResult
from .traces.trace import Trace

#: Group of entry points by which other distributions add their `Engine`s.
ENTRY_POINTS = "equipoise.engines"


class Headline(NamedTuple):
    """One column of a comparison.

    Attributes
    ----------
    metric : str
        A key of `SimulationResult.metrics`.
    title, form : str
        Heading of the column, and format of a value.
    less_is_better : bool or None
        Direction of improvement; None if neither direction is better.
    relative : bool
        Whether the ratio to the value of the base policy is shown.
    zeros : bool
        Whether the column is shown where all its values are 0.
    """

    metric: str
    title: str
    form: str
    less_is_better: bool | None = True
    relative: bool = True
    zeros: bool = True


#: Columns that every engine provides.
HEADLINES = (
    Headline("makespan_s", "makespan s", "{:,.0f}"),
    Headline("avg_jct_s", "average JCT s", "{:,.0f}"),
    Headline("worst_ftf", "worst FTF", "{:.2f}"),
    Headline("unfair_pct", "unfair %", "{:.1f}"),
    Headline("utilisation", "utilisation", "{:.1%}", less_is_better=False, relative=False),
    Headline("solve_s", "deciding s", "{:.2f}", less_is_better=None, relative=False),
)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One row of the table of engines.

    Parameters
    ----------
    name, summary : str
        Name on the command line, and a short description of the model.
    module : str
        Module that defines `run` and `rules`, absolute or relative to `equipoise.simulation`; loaded when first used.
    run : str
        Name of its function ``run(trace, policy, *, cluster, speeds, rules, on_step, record)``, which returns a
        `SimulationResult`; see `simulate` for the arguments. `results.interrupt.play` plays an object step by step.
    rules : str
        Name of its frozen dataclass of rules; the fields are the keys of the option `--rules`, and all have defaults.
    sentence : str
        Template of the phrase by which a page states the rules, such as "in rounds of {rules.round_s:g} s".
    headlines : tuple of Headline
        Columns of a comparison; one whose metric no result has is left out.
    job_columns : tuple of (str, str)
        Columns of `SimulationResult.jobs` that only this engine has and a page shows, with their headings.
    job_fields : tuple of str
        Columns of `SimulationResult.jobs` that `--per-job` adds to those of all engines.
    options : tuple of str
        Options of the command line that not every engine takes, such as "--machines".
    """

    name: str
    summary: str
    module: str
    run: str
    rules: str
    sentence: str = ""
    headlines: tuple[Headline, ...] = HEADLINES
    job_columns: tuple[tuple[str, str], ...] = ()
    job_fields: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def load(self, name: str) -> Any:
        """Return the attribute of the engine's module with this name."""
        return getattr(import_module(self.module, __package__), name)

    @property
    def rules_type(self) -> type[Any]:
        """Dataclass of the engine's rules."""
        rules: type[Any] = self.load(self.rules)
        return rules


_OWN = (
    Engine(
        name="rounds",
        summary="jobs of fixed width share GPUs in rounds",
        module=".rounds.engine",
        run="run_rounds",
        rules="RoundRules",
        sentence="in rounds of {rules.round_s:g} s",
    ),
    Engine(
        name="placement",
        summary="jobs hold particular GPUs on machines, and may share them",
        module=".placement.engine",
        run="run_placement",
        rules="PlacementRules",
        sentence="with at most {rules.jobs_per_gpu} job(s) on a GPU and {rules.restart_s:g} s for a restart",
        headlines=(
            *HEADLINES,
            Headline("avg_waited_s", "waited s", "{:,.0f}"),
            Headline("avg_exposed_s", "exposed s", "{:,.0f}", zeros=False),  # most speeds know no communication
            Headline("preemptions", "preemptions", "{:,.0f}", less_is_better=None, relative=False),
        ),
        job_columns=(
            ("machines", "machines"),
            ("waited_s", "waited s"),
            ("exposed_s", "exposed s"),
            ("preemptions", "preemptions"),
            ("shared_gpu_s", "shared GPU s"),
        ),
        job_fields=("waited_s", "exposed_s"),
        options=(
            "--machines",
            "--gpus-per-machine",
            "--racks",
            "--speeds",
            "--models",
            "--slowdown",
            "--network",
            "--interference",
        ),
    ),
    Engine(
        name="fluid",
        summary="jobs hold fractions of GPUs, divided anew at each arrival and end",
        module=".fluid.engine",
        run="run_fluid",
        rules="FluidRules",
        sentence="with {rules.preemption_s:g} s for a preemption",
        headlines=(
            *(headline for headline in HEADLINES if headline.metric != "solve_s"),  # compiled loops decide
            Headline("avg_unfairness", "unfairness", "{:.2f}"),
            Headline("avg_error_pct", "error %", "{:.1f}", relative=False),
            Headline("preemptions", "preemptions", "{:,.0f}", less_is_better=None, relative=False),
        ),
        job_columns=(
            ("predicted_end_s", "predicted end s"),
            ("bound_s", "bound s"),
            ("error_pct", "error %"),
            ("preemptions", "preemptions"),
        ),
        job_fields=("predicted_end_s", "bound_s", "error_pct", "unfairness", "preemptions"),
        options=("--speedups", "--machines", "--gpus-per-machine"),
    ),
)

#: Every engine by name: the package's own, and those that other distributions add.
ENGINES: Mapping[str, Engine] = LazyTable(lambda: with_installed(_OWN, ENTRY_POINTS, Engine, attrgetter("name")))
#: The engine of a policy that names none.
DEFAULT_ENGINE = _OWN[0].name


def find_engine(name: str) -> Engine:
    """Return the engine of this name; InvalidInput, which names the nearest, if there is none."""
    if isinstance(name, str) and name in ENGINES:
        return ENGINES[name]
    raise InvalidInput("engine", name, f"{nearest_hint(name, ENGINES)}the engines are {', '.join(ENGINES)}")


def simulate(
    trace: Trace,
    policy: Any,
    *,
    cluster: Cluster | int | Mapping[str, int],
    speeds: Any,
    engine: str | Engine | None = None,
    rules: Any = None,
    on_step: OnStep | None = None,
    record: bool = True,
) -> SimulationResult:
    """Run a trace to its end under a policy; the result is usually of the engine's own subclass.

    Parameters
    ----------
    trace : Trace
    policy : object
        A policy of the engine.
    cluster : Cluster, int or mapping of str to int
        Cluster, number of GPUs, or GPUs of each type.
    speeds : object
        Source of the jobs' speeds; for the rounds engine `Profiles`, or a mapping of GPU type to `Profiles`.
    engine : str or Engine, optional
        Name in `ENGINES`, or an `Engine` outside the table. By default the policy's attribute `engine`; rounds if it
        has none.
    rules : object, optional
        Rules of the engine; its defaults if omitted.
    on_step : callable, optional
        Callback at the end of each step with (step, time_s, jobs ended, jobs in all).
    record : bool
        Whether to record which job held which GPUs when (`SimulationResult.stretches`).

    Raises
    ------
    InvalidInput
        If there is no such engine, or an argument has a wrong type or value; for a job of a trace read from a file, the
        message names line and column.
    SimulationInterrupted
        On Ctrl-C: a KeyboardInterrupt that carries the jobs that had ended.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.heuristics import make_policy
    >>> from equipoise.simulation import Profiles, generate_trace, simulate
    >>> trace = generate_trace(np.random.default_rng(0), num_jobs=5)
    >>> result = simulate(trace, make_policy("fifo"), cluster=8, speeds=Profiles.builtin())
    >>> result.engine, len(result.jobs)
    ('rounds', 5)
    """
    if not isinstance(trace, Trace):
        raise InvalidInput("trace", type(trace).__name__, "must be a Trace")
    if engine is None:
        engine = getattr(policy, "engine", DEFAULT_ENGINE)
    found = engine if isinstance(engine, Engine) else find_engine(engine)
    rules_type = found.rules_type
    rules = rules_type() if rules is None else rules
    if not isinstance(rules, rules_type):
        raise InvalidInput("rules", type(rules).__name__, f"must be {rules_type.__name__}")
    result: SimulationResult = found.load(found.run)(
        trace, policy, cluster=Cluster.of(cluster), speeds=speeds, rules=rules, on_step=on_step, record=record
    )
    return result
