"""The matrix form that every general solver reads, its bounds, and the contract of a formulation."""

from .bounds import proved_bound, proves_infeasible
from .builder import ProgramBuilder
from .certificate import SolveCertificate
from .data import ProblemClass, ProgramData, Residuals
from .formulation import Formulation
from .model import Program

__all__ = [
    "Formulation",
    "ProblemClass",
    "Program",
    "ProgramBuilder",
    "ProgramData",
    "Residuals",
    "SolveCertificate",
    "proved_bound",
    "proves_infeasible",
]
