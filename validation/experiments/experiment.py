"""The frame of every paper's experiments: settings, claims, outcomes, their page, and the catalogue that lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ...formulations.plotting import html

# Called with the number of steps of the experiment that are done, and with their total.
OnStep = Callable[[int, int], None]


class Plot(Protocol):
    """A picture of an experiment."""

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExperimentSettings:
    """The size of an experiment and the seeds of its workloads.

    There are at least 4 jobs in a generated workload, and at least 8 GPUs; by default as many per job as in the paper.
    The workloads have the seeds `seed`, `seed + 1`, ..., and figures are means over these `repeats`. `data` is the
    folder of the shared data sets, for the experiments that need one. Each search scores so many configurations
    (`evaluations`). Searches and simulations run on so many workers (`threads`), which change no result. A cluster has
    so many `racks`; None: all numbers of the paper. `on_step` is called with the progress of the experiment. `shared`
    holds the results of simulations that later experiments with the same mapping need again.
    """

    jobs: int = 120
    gpus: int | None = None
    seed: int = 0
    repeats: int = 3
    data: Path | None = None
    evaluations: int = 700
    threads: int = 1
    racks: int | None = None
    on_step: OnStep | None = field(default=None, repr=False)
    shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        as_integer("jobs", self.jobs, minimum=4)
        as_integer("seed", self.seed, minimum=0)
        as_integer("repeats", self.repeats, minimum=1)
        as_integer("evaluations", self.evaluations, minimum=1)
        as_integer("threads", self.threads, minimum=1)
        if self.racks is not None:
            as_integer("racks", self.racks, minimum=1)
        if self.gpus is not None:
            as_integer("gpus", self.gpus, minimum=8)

    @property
    def seeds(self) -> range:
        """The seeds of the workloads."""
        return range(self.seed, self.seed + self.repeats)


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """A claim of the paper in our own formulation, whether it holds here, and the measured numbers."""

    statement: str
    holds: bool
    numbers: str


@dataclass(frozen=True, kw_only=True)
class ExperimentOutcome:
    """The rows of one table, the claims and the plots of one experiment; none if it was `skipped`, for that reason."""

    rows: Sequence[Mapping[str, Any]]
    claims: tuple[PaperClaim, ...] = ()
    plots: tuple[Plot, ...] = ()
    skipped: str = ""

    @property
    def in_shape(self) -> bool | None:
        """Whether all claims hold; None if it was skipped."""
        return None if self.skipped else all(claim.holds for claim in self.claims)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment of a paper, by the name under which the command finds it.

    The function, from settings to an outcome, is of the module of this full name, which is imported when it runs. The
    label is the beginning of its heading, such as "Figure 9"; empty if the title is the heading.
    """

    name: str
    title: str
    module: str
    function: str
    label: str = ""

    @property
    def heading(self) -> str:
        """The label, if there is one, and the title."""
        return f"{self.label}: {self.title}" if self.label else self.title

    def run(self, settings: ExperimentSettings) -> ExperimentOutcome:
        """Run the experiment."""
        outcome: ExperimentOutcome = getattr(import_module(self.module), self.function)(settings)
        return outcome


@dataclass(frozen=True, kw_only=True)
class PaperExperiments:
    """The experiments of one paper by name, with further names as aliases; `paper` is the name as it is printed.

    `cluster_gpus` maps settings to the number of GPUs of the cluster. Without other settings, workloads have so many
    `jobs`, figures are means over so many `repeats`, and each search has so many `evaluations`; None: there are no
    searches.
    """

    paper: str
    experiments: Mapping[str, Experiment]
    cluster_gpus: Callable[[ExperimentSettings], int]
    jobs: int = ExperimentSettings.jobs
    repeats: int = ExperimentSettings.repeats
    evaluations: int | None = None
    threads: int | None = None
    racks: tuple[int, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Experiment:
        """Return an experiment by its name or alias; InvalidInput if there is none."""
        chosen = self.aliases.get(name, name)
        if chosen not in self.experiments:
            raise InvalidInput("figure", name, f"must be one of {', '.join(self.experiments)}, or all")
        return self.experiments[chosen]


def outcome_page(
    catalogue: PaperExperiments, outcomes: Mapping[str, ExperimentOutcome], settings: ExperimentSettings
) -> str:
    """Return a page with the claims, plots and table of every outcome."""
    return html.render(
        "validation/experiments/page.html",
        title=f"{catalogue.paper}'s experiments",
        lead=f"{settings.jobs} jobs, {catalogue.cluster_gpus(settings)} GPUs, seed {settings.seed}, "
        f"{settings.repeats} workload(s), where an experiment does not say otherwise.",
        outcomes=[
            {
                "heading": catalogue.experiments[name].heading,
                "skipped": outcome.skipped,
                "claims": outcome.claims,
                "plots": [html.picture(plot.svg()) for plot in outcome.plots],
                "table": _table(outcome),
            }
            for name, outcome in outcomes.items()
        ],
    )


def _table(outcome: ExperimentOutcome) -> dict[str, Any]:
    columns = dict.fromkeys(key for row in outcome.rows for key in row)
    return html.table({str(name): [row.get(name) for row in outcome.rows] for name in columns})
