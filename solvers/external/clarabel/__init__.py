"""Conic programs by Clarabel."""
