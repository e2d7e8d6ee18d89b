"""Shortest schedules: open shops with preemption, and gangs of GPUs."""

from .gang import GangMakespan, GangSchedule
from .open_shop import OpenShop, ShopSchedule

__all__ = ["GangMakespan", "GangSchedule", "OpenShop", "ShopSchedule"]
