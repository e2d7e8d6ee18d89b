"""The window program: which jobs run in which of the next rounds."""

from .jobs import Regime, WindowJob
from .plan import WindowPlan
from .problem import ScheduleWindow

__all__ = ["Regime", "ScheduleWindow", "WindowJob", "WindowPlan"]
