"""The experiments of the SJF-BSBF paper: its tables and figures, and the benefit test."""

from __future__ import annotations

from types import MappingProxyType

from ..experiment import Experiment, PaperExperiments
from .paper import PAPER_JOBS, cluster_gpus

# Name, label of the heading, title, module of this folder, function.
_LISTED = (
    ("table2", "Table II", "30 jobs on a testbed of 16 GPUs", "tables", "table_2"),
    ("table3", "Table III", "240 generated jobs on 64 GPUs", "tables", "table_3"),
    ("table3-pollux", "Table III", "Pollux's workload of 240 jobs", "tables", "table_3_given"),
    ("table4", "Table IV", "480 generated jobs on 64 GPUs", "tables", "table_4"),
    ("table4-philly", "Table IV", "480 jobs of the busiest period of the Philly trace", "tables", "table_4_philly"),
    ("4", "Figures 4 and 5", "distributions of JCT, and queueing by model", "distributions", "figures_4_and_5"),
    ("6a", "Figure 6a", "load", "sweeps", "figure_6a"),
    ("6b", "Figure 6b", "injected ratios", "sweeps", "figure_6b"),
    ("rules", "", "Benefit tests of SJF-BSBF", "sweeps", "benefit_rules"),
    ("equal-jobs", "", "Equal jobs on one GPU", "sweeps", "equal_jobs"),
)
_EXPERIMENTS = {
    name: Experiment(name=name, label=label, title=title, module=f"{__package__}.{module}", function=function)
    for name, label, title, module, function in _LISTED
}

#: Every experiment; "5" runs Figure 4's, which shows both.
GPU_SHARING = PaperExperiments(
    paper="SJF-BSBF",
    experiments=MappingProxyType(_EXPERIMENTS),
    cluster_gpus=cluster_gpus,
    jobs=PAPER_JOBS,
    repeats=5,
    aliases=MappingProxyType({"5": "4"}),
)
