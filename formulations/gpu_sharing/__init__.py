"""Jobs that share their GPUs: when to start a waiting job beside running ones, and where to place all jobs."""

from .cluster import GpuSharing
from .group import GroupSharing
from .pair import PairSharing
from .plan import PairPlan, SharingPlan
from .slot_schedule import SlotSchedule

__all__ = ["GpuSharing", "GroupSharing", "PairPlan", "PairSharing", "SharingPlan", "SlotSchedule"]
