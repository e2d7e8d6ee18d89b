"""Proofs of the theory by computer algebra."""

from .catalogue import prove

__all__ = ["prove"]
