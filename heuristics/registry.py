"""The policies of the rounds engine by name, and `make_policy`, which makes one ready to run."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ..formulations.errors import InvalidInput
from ..simulation.rounds.policy import RoundPolicy


@dataclass(frozen=True, kw_only=True)
class PolicyEntry:
    """One line of the registry.

    Attributes
    ----------
    name : str
        On the command line.
    description : str
        What it optimises, in a few words.
    module, maker : str
        The module of this folder, loaded when first asked for, and what in it makes the policy.
    """

    name: str
    description: str
    module: str
    maker: str

    def load(self) -> Any:
        """Return what makes the policy: a class, or a function of its options."""
        return getattr(import_module(f".{self.module}", __package__), self.maker)

    @property
    def options(self) -> dict[str, Any]:
        """The options it takes, with their defaults."""
        parameters = inspect.signature(self.load()).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}


# Name, description, module, maker. One line adds a policy.
_ENTRIES = (
    (
        "shockwave",
        "the window program: fair over past and future, and soon done",
        "shockwave.policy",
        "ShockwavePolicy",
    ),
    ("shockwave-artifact", "the released code's variant of it", "shockwave.artifact", "ArtifactPolicy"),
    ("ossp", "least time until the last job ends", "rounds.solved_shares", "MinTotalDurationPolicy"),
    ("themis", "least worst finish-time fairness, as Gavel codes it", "rounds.finish_time", "FinishTimeFairnessPolicy"),
    ("themis-filter", "Themis's own filter and partial allocation", "rounds.themis_filter", "ThemisFilterPolicy"),
    ("gavel", "the largest least normalised throughput", "rounds.solved_shares", "MaxMinFairnessPolicy"),
    ("mst", "the largest sum of throughputs", "rounds.solved_shares", "MaxSumThroughputPolicy"),
    ("allox", "least average completion time by matching jobs to GPUs", "rounds.allox", "AlloxPolicy"),
    ("gandiva-fair", "equal tickets for every job", "rounds.equal_share", "GandivaFairPolicy"),
    ("isolated", "every job as on its own slice of the cluster", "rounds.equal_share", "IsolatedPolicy"),
    (
        "proportional",
        "every GPU type to every job by its part of the cluster",
        "rounds.equal_share",
        "ProportionalPolicy",
    ),
    ("fifo", "first come, first served", "rounds.queue", "FifoPolicy"),
    ("las", "least attained service first", "rounds.queue", "LasPolicy"),
)

#: Every policy of the rounds engine, by name.
POLICIES: Mapping[str, PolicyEntry] = MappingProxyType(
    {
        name: PolicyEntry(name=name, description=description, module=module, maker=maker)
        for name, description, module, maker in _ENTRIES
    }
)


def make_policy(name: str, **options: Any) -> RoundPolicy:
    """Make a policy that was never called: one for each run, since a policy may remember.

    Parameters
    ----------
    name : str
        One of `POLICIES`.
    **options
        Its own; see `POLICIES[name].options`.

    Raises
    ------
    InvalidInput
        If there is no such policy (the message names the nearest) or no such option, or an option is out of range.

    Examples
    --------
    >>> from equipoise.heuristics import make_policy
    >>> make_policy("gavel", interval_s=600.0).name
    'gavel'
    """
    if not isinstance(name, str) or name not in POLICIES:
        raise InvalidInput("name", name, _nearest(name, POLICIES, "policies"))
    entry = POLICIES[name]
    known = entry.options
    for option, value in options.items():
        if option not in known:
            raise InvalidInput(option, value, f"no option of {name}: " + _nearest(option, known, "options"))
    made: RoundPolicy = entry.load()(**options)
    return made


def _nearest(name: Any, known: Mapping[str, Any], what: str) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5) if isinstance(name, str) else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}the {what} are {', '.join(known)}"
