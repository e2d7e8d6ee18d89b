"""Policies as written on the command line: a name, and options after a colon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import CommandError

if TYPE_CHECKING:
    from ...simulation import RoundPolicy

#: The policy that others are compared with, where it takes part.
REFERENCE = "shockwave"
_POLICY_HINT = "such as shockwave:rounds=30,ftf_power=5; `equipoise simulate --help` lists the policies."


@dataclass(frozen=True)
class PolicySpec:
    """A policy as asked for: a name and its options.

    Attributes
    ----------
    name : str
    options : mapping of str to object
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How it is written on the command line."""
        chosen = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{chosen}" if chosen else self.name

    @property
    def folder(self) -> str:
        """A name for its folder of results."""
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in self.label)

    def make(self, seed: int) -> RoundPolicy:
        """Return a policy that was never called; one that takes a seed gets this one, unless its options name one."""
        from ...heuristics.registry import POLICIES, make_policy

        options = dict(self.options)
        if self.name in POLICIES and "seed" in POLICIES[self.name].options:
            options.setdefault("seed", seed)
        return make_policy(self.name, **options)


def read_policies(given: Sequence[str], seed: int) -> list[PolicySpec]:
    """Return the policies named in lists such as "gavel,shockwave:rounds=30,ftf_power=5,las", or all of them for "all".

    Raises
    ------
    CommandError, InvalidInput
        If a list cannot be read, a policy or an option is unknown or out of range, or one is named twice.
    """
    from ...heuristics.registry import POLICIES

    pieces: list[str] = []
    for piece in (piece.strip() for text in given for piece in text.split(",")):
        if "=" in piece and ":" not in piece.split("=", 1)[0] and pieces:
            pieces[-1] += f",{piece}"  # one more option of the policy before it
        elif piece == "all":
            pieces += list(POLICIES)
        elif piece:
            pieces.append(piece)
    specs: list[PolicySpec] = []
    for piece in pieces:
        name, _, options = piece.partition(":")
        spec = PolicySpec(name, read_options(options, "--policy", _POLICY_HINT))
        if name == "pollux":
            raise CommandError("policy pollux: it needs the placement engine, which this version lacks", _POLICY_HINT)
        if any(spec.label == other.label for other in specs):
            raise CommandError(f"policy {spec.label}: named twice", "name each once, or with other options.")
        spec.make(seed)
        specs.append(spec)
    if not specs:
        raise CommandError("no policy named", _POLICY_HINT)
    return specs


def read_options(text: str, option: str, hint: str) -> dict[str, Any]:
    """Return "a=1,b=0.5,c=yes" as a mapping: numbers, true, false, none, else text."""
    values: dict[str, Any] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not (key and equals and value):
            raise CommandError(f"{option}: {piece!r} is not KEY=VALUE", hint)
        if key in values:
            raise CommandError(f"{option}: {key} is given twice", hint)
        values[key] = read_value(value)
    return values


def read_value(text: str) -> Any:
    """Return text as a whole number, a number, true, false or none, if it reads as one."""
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
