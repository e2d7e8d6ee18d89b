"""Verification of a backend's answer from the problem's own data."""
