"""The matrix form that every general solver reads, and what can be proved about it."""

from .bounds import proved_bound, proves_infeasible
from .builder import ProgramBuilder
from .model import ProblemClass, Program, Residuals

__all__ = ["ProblemClass", "Program", "ProgramBuilder", "Residuals", "proved_bound", "proves_infeasible"]
