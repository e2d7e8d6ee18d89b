"""Certificates of linear markets in rational arithmetic."""

from .certificate import exact_certificate

__all__ = ["exact_certificate"]
