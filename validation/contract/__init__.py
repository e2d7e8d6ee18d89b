"""The contract that every backend keeps, as a suite of cases."""

from .suite import check_backend

__all__ = ["check_backend"]
