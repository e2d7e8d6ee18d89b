"""Registry of the policies of all engines, and `make_policy`, which creates a policy for one run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

from ..formulations.errors import InvalidInput
from ..formulations.text import nearest_hint
from ..simulation.engines import find_engine
from ..simulation.entry_points import LazyTable, with_installed

#: Group of entry points by which other distributions add their `PolicyEntry`s.
ENTRY_POINTS = "equipoise.policies"


@dataclass(frozen=True, kw_only=True)
class PolicyEntry:
    """One row of the registry; the pair of name and engine is unique.

    Attributes
    ----------
    name : str
        Name on the command line.
    engine : str
        Engine of the policy.
    description : str
        Short description of the objective.
    module, maker : str
        Module, absolute or relative to `equipoise.heuristics`, loaded on first use, and the name of its class or
        function that creates the policy.
    """

    name: str
    engine: str
    description: str
    module: str
    maker: str

    def load(self) -> Any:
        """Return the class or function that creates the policy from its options."""
        return getattr(import_module(self.module, __package__), self.maker)

    @property
    def options(self) -> dict[str, Any]:
        """Options of the policy, with their defaults."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Options of the policy, with their defaults and annotations."""
        return inspect.signature(self.load()).parameters


# Policies of the rounds engine: name, description, module, maker. One row adds a policy.
_ROUNDS = (
    ("shockwave", "window program: long-run fairness and a short makespan", ".shockwave.policy", "ShockwavePolicy"),
    ("shockwave-artifact", "variant of Shockwave in its released code", ".shockwave.artifact", "ArtifactPolicy"),
    ("ossp", "least time until the last job ends", ".rounds.solved_shares", "MinTotalDurationPolicy"),
    (
        "themis",
        "least worst finish-time fairness, as Gavel codes it",
        ".rounds.finish_time",
        "FinishTimeFairnessPolicy",
    ),
    ("themis-filter", "Themis's filter and partial allocation auction", ".rounds.themis_filter", "ThemisFilterPolicy"),
    ("gavel", "the largest least normalised throughput", ".rounds.solved_shares", "MaxMinFairnessPolicy"),
    ("wfq", "weighted fair queues by size", ".rounds.wfq", "WfqPolicy"),
    ("mst", "the largest sum of throughputs", ".rounds.solved_shares", "MaxSumThroughputPolicy"),
    ("allox", "least average completion time by matching jobs to GPUs", ".rounds.allox", "AlloxPolicy"),
    ("gandiva-fair", "equal tickets for every job", ".rounds.equal_share", "GandivaFairPolicy"),
    ("isolated", "isolated shares: every job on 1/m of the cluster", ".rounds.equal_share", "IsolatedPolicy"),
    (
        "proportional",
        "every GPU type in proportion to its part of the cluster",
        ".rounds.equal_share",
        "ProportionalPolicy",
    ),
    ("fifo", "first come, first served", ".rounds.queue", "FifoPolicy"),
    ("las", "least attained service first", ".rounds.queue", "LasPolicy"),
)

# Policies of the placement engine.
_PLACEMENT = (
    ("fifo", "first come, first served", ".placement.queue", "FifoPolicy"),
    ("sjf", "shortest job first", ".placement.queue", "SjfPolicy"),
    ("srtf", "shortest remaining time first, with preemption", ".placement.queue", "SrtfPolicy"),
    ("lucid", "short jobs first; light jobs share GPUs in pairs", ".placement.lucid", "LucidPolicy"),
    ("sjf-ffs", "shortest job first; a job shares the first GPUs that fit", ".placement.sjf_sharing", "SjfFfsPolicy"),
    (
        "sjf-bsbf",
        "shortest job first; pairs share GPUs where they gain",
        ".placement.sjf_sharing",
        "SjfBsbfPolicy",
    ),
    ("tiresias", "least attained service in queues, with preemption", ".placement.tiresias", "TiresiasPolicy"),
    (
        "tiresias-gittins",
        "Tiresias with the largest Gittins index first in each queue",
        ".placement.tiresias",
        "TiresiasGittinsPolicy",
    ),
    (
        "gandiva",
        "affinity, turns on short GPUs, packing, migration and growth",
        ".placement.gandiva",
        "GandivaPolicy",
    ),
    ("dally", "delay scheduling by network sensitivity, with tuned timers", ".dally.policy", "DallyPolicy"),
    ("dally-manual", "Dally with fixed timers of 12 h and 24 h", ".dally.policy", "DallyManualPolicy"),
    ("dally-nowait", "Dally with timers of 0", ".dally.policy", "DallyNoWaitPolicy"),
    ("dally-consolidated", "Dally with infinite timers", ".dally.policy", "DallyConsolidatedPolicy"),
    ("pollux", "largest power mean of the speedups of elastic jobs", ".placement.elastic", "PolluxPolicy"),
    ("sia", "Sia's integer program over elastic jobs", ".placement.elastic", "SiaPolicy"),
)

# Policies of the fluid engine.
_FLUID = (
    ("fifo", "first come, first served", ".fluid.queue", "FifoPolicy"),
    ("srsf", "shortest remaining service first", ".fluid.queue", "SrsfPolicy"),
    ("srtf", "shortest remaining time first", ".fluid.queue", "SrtfPolicy"),
    ("las", "least attained service first", ".fluid.queue", "LasPolicy"),
    ("fs", "max-min fair fractions of GPUs", ".fluid.fair", "FairSharePolicy"),
    ("afs", "AFS as PCS runs it: GPUs where they gain most", ".fluid.afs", "AfsPolicy"),
    ("afs-l", "AFS-L: GPUs where they gain most", ".fluid.afs", "AfsLPolicy"),
    ("themis", "worst finish-time fairness first, as PCS runs it", ".fluid.fair", "ThemisPolicy"),
    ("wfq", "weighted fair queues by size (PCS)", ".fluid.wfq", "WfqPolicy"),
    ("wfq-operator", "weighted fair queues, searched for as jobs arrive", ".search.wfq_operator", "WfqOperator"),
)

_OWN = [
    PolicyEntry(name=name, engine=engine, description=description, module=module, maker=maker)
    for engine, rows in (("rounds", _ROUNDS), ("placement", _PLACEMENT), ("fluid", _FLUID))
    for name, description, module, maker in rows
]

#: Every policy by (name, engine): the package's own, and those that other distributions add.
ENTRIES: Mapping[tuple[str, str], PolicyEntry] = LazyTable(
    lambda: with_installed(_OWN, ENTRY_POINTS, PolicyEntry, attrgetter("name", "engine"))
)

#: Every policy by name; if several engines have a policy of one name, that of the first engine.
POLICIES: Mapping[str, PolicyEntry] = LazyTable(
    lambda: {name: ENTRIES[name, engines_of(name)[0]] for name in dict.fromkeys(name for name, _ in ENTRIES)}
)


def engines_of(name: str) -> tuple[str, ...]:
    """Return the engines that have a policy of this name."""
    return tuple(engine for policy, engine in ENTRIES if policy == name)


def policies_of(engine: str) -> tuple[str, ...]:
    """Return the names of an engine's policies."""
    return tuple(policy for policy, each in ENTRIES if each == engine)


def find_policy(name: str, engine: str | None = None) -> PolicyEntry:
    """Return the entry of a policy; arguments and errors are those of `make_policy`."""
    if engine is not None:
        known = policies_of(find_engine(engine).name)
        if name in known:
            return ENTRIES[name, engine]
        if name in POLICIES:
            names = ", ".join(known) or "none"
            why = f"it is a policy of {', '.join(engines_of(name))}; the policies of {engine} are {names}"
            raise InvalidInput("name", name, why)
    if not isinstance(name, str) or name not in POLICIES:
        raise InvalidInput("name", name, _nearest(name, POLICIES, "policies"))
    return POLICIES[name]


def make_policy(name: str, engine: str | None = None, **options: Any) -> Any:
    """Create a new policy for one run; a policy may keep state, so each run needs its own.

    Parameters
    ----------
    name : str
        Name in `POLICIES`.
    engine : str, optional
        Engine of the policy; by default the first that has a policy of this name.
    **options
        Options of the policy; see `find_policy(name, engine).options`.

    Raises
    ------
    InvalidInput
        If there is no such policy (the message names the nearest), engine or option, or an option is out of range.

    Examples
    --------
    >>> from equipoise.heuristics import make_policy
    >>> make_policy("gavel", interval_s=600.0).name
    'gavel'
    """
    entry = find_policy(name, engine)
    known = entry.options
    for option, value in options.items():
        if option not in known:
            raise InvalidInput(option, value, f"no option of {name}: " + _nearest(option, known, "options"))
    return entry.load()(**options)


def _nearest(name: Any, known: Mapping[str, Any], what: str) -> str:
    return f"{nearest_hint(name, known)}the {what} are {', '.join(known)}"
