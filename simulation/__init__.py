"""Jobs, traces, profiles and workloads: what a cluster sees, without any decision."""

from .duration_traces import read_durations
from .job_state import JobState
from .metrics import envy, finish_time_fairness, unfair_pct
from .profiles import CriticalEpochs, Profiles
from .readers import read_gavel, read_shockwave, write_shockwave
from .round_engine import simulate_rounds
from .round_interrupt import SimulationInterrupted
from .round_policy import Evidence, RoundJob, RoundPolicy, RoundState, Schedule, Shares, due_on_events
from .round_replay import ReplayedSchedule
from .round_rules import RoundRules
from .simulation_result import SimulationResult
from .snapshot import snapshot
from .stochastic_sample import SampledRuns, sample_runs
from .trace import Trace
from .trajectory import isolated_s, trajectory
from .workload import SIZE_CLASSES, SizeClass, generate_trace

__all__ = [
    "SIZE_CLASSES",
    "CriticalEpochs",
    "Evidence",
    "JobState",
    "Profiles",
    "ReplayedSchedule",
    "RoundJob",
    "RoundPolicy",
    "RoundRules",
    "RoundState",
    "SampledRuns",
    "Schedule",
    "Shares",
    "SimulationInterrupted",
    "SimulationResult",
    "SizeClass",
    "Trace",
    "due_on_events",
    "envy",
    "finish_time_fairness",
    "generate_trace",
    "isolated_s",
    "read_durations",
    "read_gavel",
    "read_shockwave",
    "sample_runs",
    "simulate_rounds",
    "snapshot",
    "trajectory",
    "unfair_pct",
    "write_shockwave",
]
