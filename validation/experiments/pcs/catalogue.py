"""The experiments of the PCS paper: its figures, its searches compared, and its published front."""

from __future__ import annotations

from types import MappingProxyType

from ..experiment import Experiment, PaperExperiments
from .paper import PAPER_JOBS, cluster_gpus

# Name, label of the heading, title, module of this folder, function.
_LISTED = (
    ("1", "Figure 1", "four jobs on one GPU", "toy", "figure_1"),
    ("trade-off", "", "policies and weighted fair queues between JCT and error", "trade_off", "trade_off"),
    ("4", "Figures 4 to 6", "errors, JCT and unfairness on workload-1 (AutoML, 16 GPUs)", "testbed", "figures_4_to_6"),
    ("7", "Figure 7", "six Philly clusters at load 0.8", "clusters", "figure_7"),
    ("8", "Figure 8", "tail errors on workload-3 (continuous, 64 GPUs)", "tail_errors", "figure_8"),
    ("9a", "Figure 9a", "time of a simulation by jobs and GPUs", "search_time", "figure_9a"),
    ("9b", "Figure 9b", "time of a search by jobs and GPUs", "search_time", "figure_9b"),
    ("9c", "Figure 9c", "PCS's parameters against the unparameterised space", "spaces", "figure_9c"),
    ("10a", "Figures 10a and 10b", "errors in sizes", "sensitivity", "figures_10a_and_10b"),
    ("10c", "Figure 10c", "configurations tuned at another load", "sensitivity", "figure_10c"),
    ("search", "", "SPEA2, NSGA-II, random search, and SPEA2 in raw units", "searches", "compare_searches"),
    ("published", "", "the published front, re-simulated", "published_front", "published_front"),
)
_EXPERIMENTS = {
    name: Experiment(name=name, label=label, title=title, module=f"{__package__}.{module}", function=function)
    for name, label, title, module, function in _LISTED
}

#: Every experiment; figures that share their runs are one experiment. "3" is the trade-off (docs/experiments.md).
PCS = PaperExperiments(
    paper="PCS",
    experiments=MappingProxyType(_EXPERIMENTS),
    cluster_gpus=cluster_gpus,
    jobs=PAPER_JOBS,
    repeats=3,
    evaluations=350,
    threads=2,
    aliases=MappingProxyType({"3": "trade-off", "5": "4", "6": "4", "10b": "10a"}),
)
