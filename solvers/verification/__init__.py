"""Verification of a backend's answer by the library's own arithmetic."""
