"""Modes of batch-size adaptation, and the regimes of a job as (batch size, epochs) stretches."""

from __future__ import annotations

MODES = ("static", "accordion", "gns")

# Successive (batch size, epochs) stretches of one job.
Runs = tuple[tuple[int, int], ...]
