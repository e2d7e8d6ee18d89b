"""Options of searches, checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput

#: Names of searches.
BACKENDS = ("auto", "spea2", "nsga2", "differential_evolution", "random", "grid")
_NO_POPULATION = ("random", "grid")
_TIME_LIMIT_S = 60.0

Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for front, page, configurations and checkpoint.")]
BackendName = Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(BACKENDS)}.")]
TimeLimit = Annotated[
    float | None, typer.Option(metavar="S", help="Seconds of the search [60, unless --evaluations is given].")
]
Evaluations = Annotated[int | None, typer.Option(metavar="N", help="Configurations to score at most.")]
Population = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Configurations of a generation of spea2 and nsga2 [70], and of differential_evolution [20]."
    ),
]
Samples = Annotated[int, typer.Option(metavar="N", help="Workloads on which configurations are scored.")]
HeldOut = Annotated[int, typer.Option(metavar="N", help="Further workloads, on which the front is scored.")]
SampleJobs = Annotated[int, typer.Option(metavar="N", help="Jobs of each workload, drawn from those of TRACE.")]
Load = Annotated[
    float | None,
    typer.Option(metavar="L", help="Work on one GPU that arrives per second, over the GPUs [that of TRACE]."),
]
Threads = Annotated[int, typer.Option(metavar="N", help="Processes that score; more than 1 need joblib.")]
SearchSeed = Annotated[int, typer.Option(metavar="N", help="Seed of the workloads and the search.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the search in DIR, if there is one.")]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search, checked.

    InvalidInput names the option that is out of range.
    """

    backend: str
    spaces: tuple[str, ...]
    space: str
    time_limit: float | None
    evaluations: int | None
    population: int | None
    samples: int
    held_out: int
    jobs: int
    load: float | None
    threads: int
    seed: int

    def __post_init__(self) -> None:
        least = {"evaluations": 1, "population": 4, "samples": 1, "held_out": 0, "jobs": 1, "threads": 1}
        for name, choices in (("backend", BACKENDS), ("space", self.spaces)):
            if getattr(self, name) not in choices:
                raise InvalidInput(f"--{name}", getattr(self, name), f"must be one of {', '.join(choices)}")
        for each in fields(self):
            value, option = getattr(self, each.name), f"--{each.name.replace('_', '-')}"
            if value is not None and each.name in least:
                as_integer(option, value, minimum=least[each.name])
            elif value is not None and each.name in ("time_limit", "load"):
                as_real(option, value, above=0.0)
        if self.population is not None and self.backend in _NO_POPULATION:
            raise InvalidInput("--population", self.population, f"{self.backend} has no population")

    @property
    def limit_s(self) -> float | None:
        """The time limit: 60 s if neither it nor a number of evaluations is given."""
        return _TIME_LIMIT_S if self.time_limit is None and self.evaluations is None else self.time_limit
