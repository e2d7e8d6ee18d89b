"""Jobs, traces, profiles and workloads: what a cluster sees, without any decision."""

from .job_state import JobState
from .profiles import CriticalEpochs, Profiles
from .readers import read_gavel, read_shockwave, write_shockwave
from .snapshot import snapshot
from .stochastic_sample import SampledRuns, sample_runs
from .trace import Trace
from .trajectory import isolated_s, trajectory
from .workload import SIZE_CLASSES, SizeClass, generate_trace

__all__ = [
    "SIZE_CLASSES",
    "CriticalEpochs",
    "JobState",
    "Profiles",
    "SampledRuns",
    "SizeClass",
    "Trace",
    "generate_trace",
    "isolated_s",
    "read_gavel",
    "read_shockwave",
    "sample_runs",
    "snapshot",
    "trajectory",
    "write_shockwave",
]
