"""Workloads of Dally: jobs of the published mix, and models of the mix for jobs of traces that name none."""

from .published_mix import DALLY_DEMANDS, DALLY_MODELS, assign_models, draw_dally_jobs

__all__ = ["DALLY_DEMANDS", "DALLY_MODELS", "assign_models", "draw_dally_jobs"]
