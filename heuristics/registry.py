"""The policies of all engines by name, and `make_policy`, which makes one ready to run."""

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

#: The group of entry points by which another distribution adds its `PolicyEntry`s.
ENTRY_POINTS = "equipoise.policies"


@dataclass(frozen=True, kw_only=True)
class PolicyEntry:
    """One row of the registry. Name and engine together are unique.

    Attributes
    ----------
    name : str
        On the command line.
    engine : str
        The engine that it is for.
    description : str
        What it optimises, in a few words.
    module, maker : str
        The module, absolute or relative to `equipoise.heuristics`, loaded when first asked for, and what in it makes
        the policy.
    """

    name: str
    engine: str
    description: str
    module: str
    maker: str

    def load(self) -> Any:
        """Return what makes the policy: a class, or a function of its options."""
        return getattr(import_module(self.module, __package__), self.maker)

    @property
    def options(self) -> dict[str, Any]:
        """The options it takes, with their defaults."""
        parameters = inspect.signature(self.load()).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}


# Policies of the rounds engine: name, description, module, maker. One row adds a policy.
_ROUNDS = (
    (
        "shockwave",
        "the window program: fair over past and future, and soon done",
        ".shockwave.policy",
        "ShockwavePolicy",
    ),
    ("shockwave-artifact", "the released code's variant of it", ".shockwave.artifact", "ArtifactPolicy"),
    ("ossp", "least time until the last job ends", ".rounds.solved_shares", "MinTotalDurationPolicy"),
    (
        "themis",
        "least worst finish-time fairness, as Gavel codes it",
        ".rounds.finish_time",
        "FinishTimeFairnessPolicy",
    ),
    ("themis-filter", "Themis's own filter and partial allocation", ".rounds.themis_filter", "ThemisFilterPolicy"),
    ("gavel", "the largest least normalised throughput", ".rounds.solved_shares", "MaxMinFairnessPolicy"),
    ("mst", "the largest sum of throughputs", ".rounds.solved_shares", "MaxSumThroughputPolicy"),
    ("allox", "least average completion time by matching jobs to GPUs", ".rounds.allox", "AlloxPolicy"),
    ("gandiva-fair", "equal tickets for every job", ".rounds.equal_share", "GandivaFairPolicy"),
    ("isolated", "every job as on its own slice of the cluster", ".rounds.equal_share", "IsolatedPolicy"),
    (
        "proportional",
        "every GPU type to every job by its part of the cluster",
        ".rounds.equal_share",
        "ProportionalPolicy",
    ),
    ("fifo", "first come, first served", ".rounds.queue", "FifoPolicy"),
    ("las", "least attained service first", ".rounds.queue", "LasPolicy"),
)

_OWN = [
    PolicyEntry(name=name, engine="rounds", description=description, module=module, maker=maker)
    for name, description, module, maker in _ROUNDS
]

#: Every policy by (name, engine): the package's own, and those that other distributions add.
ENTRIES: Mapping[tuple[str, str], PolicyEntry] = LazyTable(
    lambda: with_installed(_OWN, ENTRY_POINTS, PolicyEntry, attrgetter("name", "engine"))
)

#: Every policy by name; of a name that several engines have, the first one's.
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
    """Return the entry of a policy.

    Parameters
    ----------
    name : str
    engine : str, optional
        By default the first engine that has a policy of this name.

    Raises
    ------
    InvalidInput
        If there is no such policy (the message names the nearest) or no such engine.
    """
    if engine is not None:
        known = policies_of(find_engine(engine).name)
        if name in known:
            return ENTRIES[name, engine]
        if name in POLICIES:
            why = f"it is a policy of {', '.join(engines_of(name))}; those of {engine} are {', '.join(known) or 'none'}"
            raise InvalidInput("name", name, why)
    if not isinstance(name, str) or name not in POLICIES:
        raise InvalidInput("name", name, _nearest(name, POLICIES, "policies"))
    return POLICIES[name]


def make_policy(name: str, engine: str | None = None, **options: Any) -> Any:
    """Make a policy that was never called: one for each run, since a policy may remember.

    Parameters
    ----------
    name : str
        One of `POLICIES`.
    engine : str, optional
        The engine that it is for; by default the first that has a policy of this name.
    **options
        Its own; see `find_policy(name, engine).options`.

    Returns
    -------
    object
        A policy of that engine; of rounds, a `RoundPolicy`.

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
