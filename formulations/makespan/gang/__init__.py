"""The shortest schedule of jobs that each need a gang of GPUs."""

from .problem import GangMakespan
from .schedule import GangSchedule

__all__ = ["GangMakespan", "GangSchedule"]
