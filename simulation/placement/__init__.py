"""Placement engine: jobs hold particular GPUs on machines and racks, share them, and move between them."""
