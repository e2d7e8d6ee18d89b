"""The experiments of the Shockwave paper: its tables and figures, and sweeps of the planner's parameters."""

from __future__ import annotations

from types import MappingProxyType

from ..experiment import Experiment, PaperExperiments
from .paper import cluster_gpus

# Name, label of the heading, title, module of this folder, function.
_LISTED = (
    ("table1", "", "Table 1, Figures 1 and 15: three jobs under Themis's filter", "themis", "table_1"),
    ("2", "Figure 2", "jobs that change are re-prioritised late", "foresight", "figure_2"),
    ("3", "Figure 3", "statistical efficiency of Pollux's batch sizes for one job", "efficiency", "figure_3"),
    ("4", "Figure 4", "agnostic, reactive and proactive planning", "planner", "figure_4"),
    ("5", "Figure 5", "the predictor's errors over the course of a job", "foresight", "figure_5"),
    ("7", "Figure 7", "all policies relative to Shockwave", "policies", "figure_7"),
    ("8", "Figure 8", "schedules, completion times and fairness of fewer jobs", "policies", "figure_8"),
    ("9", "Figure 9", "scale", "policies", "figure_9"),
    ("10", "Figure 10", "mix of static and dynamic jobs", "policies", "figure_10"),
    ("11", "Figure 11", "Pollux, and its batch sizes under Shockwave", "against_pollux", "figure_11"),
    ("12", "Figure 12", "solver overhead", "planner", "figure_12"),
    ("13", "Figure 13", "noise on predicted regimes", "noise", "figure_13"),
    ("14", "Figure 14", "statistical efficiency of Pollux's batch sizes on its traces", "efficiency", "figure_14"),
    ("16", "Figure 16", "contention", "policies", "figure_16"),
    ("17", "Figure 17", "Pollux's traces", "policies", "figure_17"),
    ("f", "Sweep of f", "fraction that Themis's filter keeps", "themis", "sweep_fraction"),
    ("k", "Sweep of k", "power of unfairness in the objective", "planner", "sweep_power"),
    ("lambda", "Sweep of lambda", "weight of the makespan in the objective", "planner", "sweep_weight"),
    ("T", "Sweep of T", "rounds of a window", "planner", "sweep_window"),
)
_EXPERIMENTS = {
    name: Experiment(name=name, label=label, title=title, module=f"{__package__}.{module}", function=function)
    for name, label, title, module, function in _LISTED
}

#: Every experiment; "1" and "15" run Table 1's, which shows all three.
SHOCKWAVE = PaperExperiments(
    paper="Shockwave",
    experiments=MappingProxyType(_EXPERIMENTS),
    cluster_gpus=cluster_gpus,
    aliases=MappingProxyType({"1": "table1", "15": "table1"}),
)
