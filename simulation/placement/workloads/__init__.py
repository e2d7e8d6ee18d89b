"""Workloads for the placement engine: jobs drawn by formula, samples of busy periods of traces, and models for them."""
