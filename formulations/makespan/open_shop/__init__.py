"""The shortest schedule of an open shop, with or without preemption."""

from .problem import OpenShop
from .schedule import ShopSchedule

__all__ = ["OpenShop", "ShopSchedule"]
