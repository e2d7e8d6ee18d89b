"""Simulation of GPU clusters: traces, throughput profiles, workloads, engines and their results."""

from .cluster import Cluster
from .decision import CallLog, CallRecord, Evidence
from .engines import ENGINES, Engine, Headline, simulate
from .job_state import JobState
from .profiles.rules import CriticalEpochs
from .profiles.table import Profiles
from .results.interrupt import SimulationInterrupted
from .results.metrics import envy, finish_time_fairness, unfair_pct
from .results.result import SimulationResult
from .rounds.engine import simulate_rounds
from .rounds.policy import RoundJob, RoundPolicy, RoundState, Schedule, Shares, due_on_events
from .rounds.replay import ReplayedSchedule
from .rounds.result import RoundResult
from .rounds.rules import RoundRules
from .snapshot import snapshot
from .stochastic_runs import SampledRuns, sample_runs
from .traces.generator import SIZE_CLASSES, SizeClass, generate_trace
from .traces.readers import (
    read_durations,
    read_gavel,
    read_helios,
    read_pcs,
    read_shockwave,
    read_trace,
    write_shockwave,
)
from .traces.trace import Trace
from .traces.trajectory import exclusive_s, isolated_s, trajectory

__all__ = [
    "ENGINES",
    "SIZE_CLASSES",
    "CallLog",
    "CallRecord",
    "Cluster",
    "CriticalEpochs",
    "Engine",
    "Evidence",
    "Headline",
    "JobState",
    "Profiles",
    "ReplayedSchedule",
    "RoundJob",
    "RoundPolicy",
    "RoundResult",
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
    "exclusive_s",
    "finish_time_fairness",
    "generate_trace",
    "isolated_s",
    "read_durations",
    "read_gavel",
    "read_helios",
    "read_pcs",
    "read_shockwave",
    "read_trace",
    "sample_runs",
    "simulate",
    "simulate_rounds",
    "snapshot",
    "trajectory",
    "unfair_pct",
    "write_shockwave",
]
