"""The experiments of the Dally paper, the best fixed timers, and what the order of the makespans depends on."""

from __future__ import annotations

from types import MappingProxyType

from ..experiment import Experiment, PaperExperiments
from .paper import PAPER_JOBS, PAPER_RACKS, cluster_gpus

# Name, label of the heading, title, module of this folder, function.
_LISTED = (
    ("1", "Figure 1 and Table I", "communication by tier, and skew", "tiers", "figure_1"),
    ("4", "Figure 4", "delay timers and the history limit by size of the cluster", "timers", "figure_4"),
    ("6", "Figure 6", "penalties against the all-reduce model", "network_models", "figure_6"),
    ("7", "Figure 7", "makespans", "makespans", "figure_7"),
    ("8", "Figure 8", "queueing and communication of the slowest jobs", "tails", "figure_8"),
    ("9", "Figures 9 and 10", "distributions of JCT", "distributions", "figures_9_and_10"),
    ("11", "Figures 11 and 12", "GPUs in use and jobs left over time", "distributions", "figures_11_and_12"),
    ("13", "Figure 13, Tables II and III", "average, median and percentiles of JCT", "tails", "figure_13"),
    ("online", "", "the auto-tuner beside the best fixed timers", "online_offline", "online_offline"),
    ("drivers", "", "what the order of the makespans depends on", "drivers", "drivers"),
)
_EXPERIMENTS = {
    name: Experiment(name=name, label=label, title=title, module=f"{__package__}.{module}", function=function)
    for name, label, title, module, function in _LISTED
}

#: Every experiment; figures that show the same quantities are one experiment.
DALLY = PaperExperiments(
    paper="Dally",
    experiments=MappingProxyType(_EXPERIMENTS),
    cluster_gpus=cluster_gpus,
    jobs=PAPER_JOBS,
    repeats=3,
    evaluations=300,
    threads=2,
    racks=PAPER_RACKS,
    aliases=MappingProxyType({"table1": "1", "10": "9", "12": "11", "table2": "13", "table3": "13"}),
)
