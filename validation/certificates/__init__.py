"""Certificates of allocations: fairness and efficiency properties with witnesses."""

import warnings
from typing import Any

from .certify import certify
from .check_result import Certificate, CheckResult, Witness

__all__ = ["Certificate", "CheckResult", "Witness", "certify"]


def __getattr__(name: str) -> Any:
    if name == "Finding":
        warnings.warn("Finding is now CheckResult", DeprecationWarning, stacklevel=2)
        return CheckResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
