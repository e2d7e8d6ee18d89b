"""Fisher markets by proportional response: bids that follow utility."""

from .array_api import proportional_response

__all__ = ["proportional_response"]
