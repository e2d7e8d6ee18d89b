"""Certificates of allocations: fairness and efficiency properties with witnesses."""

from .certify import certify
from .finding import Certificate, Finding, Witness

__all__ = ["Certificate", "Finding", "Witness", "certify"]
