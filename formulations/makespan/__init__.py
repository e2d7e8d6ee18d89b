"""Shortest schedules: open shops with preemption, and gangs of GPUs."""

from .gang.problem import GangMakespan
from .gang.schedule import GangSchedule
from .open_shop.problem import OpenShop
from .open_shop.schedule import ShopSchedule

__all__ = ["GangMakespan", "GangSchedule", "OpenShop", "ShopSchedule"]
