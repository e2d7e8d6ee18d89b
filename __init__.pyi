from .formulations.assignment.allox import AlloxMatching, AlloxPlan
from .formulations.assignment.goodput import GoodputAllocation, GoodputPlan
from .formulations.errors import (
    BackendNotFound,
    BackendUnavailable,
    EquipoiseError,
    InvalidInput,
    LicenseLimit,
    NoSolution,
    UnknownOption,
    UnsupportedProblem,
)
from .formulations.gpu_sharing.cluster import GpuSharing
from .formulations.gpu_sharing.group import GroupSharing
from .formulations.gpu_sharing.pair import PairSharing
from .formulations.gpu_sharing.plan import PairPlan, SharingPlan
from .formulations.gpu_sharing.slot_schedule import SlotSchedule
from .formulations.makespan.gang.problem import GangMakespan
from .formulations.makespan.gang.schedule import GangSchedule
from .formulations.makespan.open_shop.problem import OpenShop
from .formulations.makespan.open_shop.schedule import ShopSchedule
from .formulations.markets.equilibrium import Equilibrium
from .formulations.markets.fisher import FisherMarket
from .formulations.markets.stochastic.chain import JobChain
from .formulations.markets.stochastic.market import StochasticMarket
from .formulations.markets.stochastic.plan import StochasticPlan
from .formulations.markets.volatile import VolatileFisherMarket
from .formulations.program.builder import ProgramBuilder
from .formulations.program.certificate import SolveCertificate
from .formulations.program.data import ProblemClass, Residuals
from .formulations.program.model import Program
from .formulations.search.delay_timers import DelayTimers
from .formulations.search.front import ParetoFront
from .formulations.search.front_point import FrontPoint
from .formulations.search.objective import Objective, Variable
from .formulations.search.problem import SearchProblem
from .formulations.search.wfq_config import WfqConfig
from .formulations.shares.finish_time.problem import FinishTimeFairness
from .formulations.shares.hierarchical_fairness import HierarchicalFairness
from .formulations.shares.max_min_fairness import MaxMinFairness
from .formulations.shares.max_sum_throughput import MaxSumThroughput
from .formulations.shares.min_total_duration import MinTotalDuration
from .formulations.shares.polytope import GpuShares
from .formulations.window.plan import WindowPlan
from .formulations.window.problem import Regime, ScheduleWindow, WindowJob
from .solvers.backend_table import BackendRow, BackendTable, backends
from .solvers.isolation.run import Isolation
from .solvers.options import Options
from .solvers.result import HistoryPoint, Limit, Reason, Result, Termination, TerminationReason
from .solvers.selection import Candidate, CandidateTable, candidates
from .solvers.solve import solve

__version__: str

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
    "FrontPoint",
    "GangMakespan",
    "GangSchedule",
    "GoodputAllocation",
    "GoodputPlan",
    "GpuShares",
    "GpuSharing",
    "GroupSharing",
    "HierarchicalFairness",
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
    "Objective",
    "OpenShop",
    "Options",
    "PairPlan",
    "PairSharing",
    "ParetoFront",
    "ProblemClass",
    "Program",
    "ProgramBuilder",
    "Reason",
    "Regime",
    "Residuals",
    "Result",
    "ScheduleWindow",
    "SearchProblem",
    "SharingPlan",
    "ShopSchedule",
    "SlotSchedule",
    "SolveCertificate",
    "StochasticMarket",
    "StochasticPlan",
    "Termination",
    "TerminationReason",
    "UnknownOption",
    "UnsupportedProblem",
    "Variable",
    "VolatileFisherMarket",
    "WfqConfig",
    "WindowJob",
    "WindowPlan",
    "backends",
    "candidates",
    "solve",
]
