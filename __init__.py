"""The decision problems behind GPU-cluster scheduling: solver-agnostic models, certified answers.

>>> import equipoise as eq
>>> jobs = [eq.WindowJob(id="a", gpus=2, finished_epochs=0, total_epochs=4, regimes=[eq.Regime(4, 60.0)]),
...         eq.WindowJob(id="b", gpus=1, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 120.0)])]
>>> result = eq.solve(eq.ScheduleWindow(jobs, gpus=2, rounds=4))
>>> result.termination.reason.name, result.plan.rounds_granted.tolist()
('OPTIMAL', [2, 2])
"""

from .formulations.equilibrium import Equilibrium
from .formulations.errors import (
    BackendNotFound,
    BackendUnavailable,
    EquipoiseError,
    InvalidInput,
    LicenseLimit,
    NoSolution,
    UnsupportedProblem,
)
from .formulations.fisher_market import FisherMarket
from .formulations.program import ProblemClass, Program, Residuals
from .formulations.program_builder import ProgramBuilder
from .formulations.stochastic_chain import JobChain
from .formulations.stochastic_market import StochasticMarket
from .formulations.stochastic_plan import StochasticPlan
from .formulations.volatile_market import VolatileFisherMarket
from .formulations.window import Regime, ScheduleWindow, WindowJob
from .formulations.window_plan import WindowPlan
from .solvers.choice import Candidate, CandidateTable, candidates
from .solvers.isolation import Isolation
from .solvers.options import Options
from .solvers.registry import BackendRow, BackendTable, backends
from .solvers.result import HistoryPoint, Limit, Reason, Result, Termination
from .solvers.solve import solve

__version__ = "0.1.0"

__all__ = [
    "BackendNotFound",
    "BackendRow",
    "BackendTable",
    "BackendUnavailable",
    "Candidate",
    "CandidateTable",
    "Equilibrium",
    "EquipoiseError",
    "FisherMarket",
    "HistoryPoint",
    "InvalidInput",
    "Isolation",
    "JobChain",
    "LicenseLimit",
    "Limit",
    "NoSolution",
    "Options",
    "ProblemClass",
    "Program",
    "ProgramBuilder",
    "Reason",
    "Regime",
    "Residuals",
    "Result",
    "ScheduleWindow",
    "StochasticMarket",
    "StochasticPlan",
    "Termination",
    "UnsupportedProblem",
    "VolatileFisherMarket",
    "WindowJob",
    "WindowPlan",
    "backends",
    "candidates",
    "solve",
]
