"""Workloads for the fluid engine: generated from distributions at a load, or recorded jobs with drawn models."""
