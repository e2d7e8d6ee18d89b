"""The decision problems behind GPU-cluster scheduling: solver-agnostic models, certified answers.

>>> import equipoise as eq
>>> jobs = [eq.WindowJob(id="a", gpus=2, finished_epochs=0, total_epochs=4, regimes=[eq.Regime(4, 60.0)]),
...         eq.WindowJob(id="b", gpus=1, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 120.0)])]
>>> result = eq.solve(eq.ScheduleWindow(jobs, gpus=2, rounds=4))
>>> result.termination.reason.name, result.plan.rounds_granted.tolist()
('OPTIMAL', [2, 2])
"""

from .formulations.allox_matching import AlloxMatching
from .formulations.allox_plan import AlloxPlan
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
from .formulations.finish_time_fairness import FinishTimeFairness
from .formulations.fisher_market import FisherMarket
from .formulations.gang_makespan import GangMakespan
from .formulations.gang_schedule import GangSchedule
from .formulations.goodput_allocation import GoodputAllocation
from .formulations.goodput_plan import GoodputPlan
from .formulations.max_min_fairness import MaxMinFairness
from .formulations.max_sum_throughput import MaxSumThroughput
from .formulations.min_total_duration import MinTotalDuration
from .formulations.open_shop import OpenShop
from .formulations.program import ProblemClass, Program, Residuals
from .formulations.program_builder import ProgramBuilder
from .formulations.share_polytope import GpuShares
from .formulations.shop_schedule import ShopSchedule
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
    "AlloxMatching",
    "AlloxPlan",
    "BackendNotFound",
    "BackendRow",
    "BackendTable",
    "BackendUnavailable",
    "Candidate",
    "CandidateTable",
    "Equilibrium",
    "EquipoiseError",
    "FinishTimeFairness",
    "FisherMarket",
    "GangMakespan",
    "GangSchedule",
    "GoodputAllocation",
    "GoodputPlan",
    "GpuShares",
    "HistoryPoint",
    "InvalidInput",
    "Isolation",
    "JobChain",
    "LicenseLimit",
    "Limit",
    "MaxMinFairness",
    "MaxSumThroughput",
    "MinTotalDuration",
    "NoSolution",
    "OpenShop",
    "Options",
    "ProblemClass",
    "Program",
    "ProgramBuilder",
    "Reason",
    "Regime",
    "Residuals",
    "Result",
    "ScheduleWindow",
    "ShopSchedule",
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
