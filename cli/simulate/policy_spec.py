"""Policies as written on the command line: a name, and options after a colon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CommandError

#: The policy that others are compared with, where it takes part.
REFERENCE = "shockwave"
_POLICY_HINT = "such as shockwave:rounds=30,ftf_power=5; `equipoise simulate --help` lists the policies."


@dataclass(frozen=True)
class PolicySpec:
    """A policy as requested: its name, its options, and its engine; None: the first that has a policy of this name."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None

    @property
    def label(self) -> str:
        """The policy as written on the command line."""
        chosen = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{chosen}" if chosen else self.name

    @property
    def folder(self) -> str:
        """Name of the folder of its results."""
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in self.label)

    def make(self, seed: int) -> Any:
        """Return a new policy; one that takes a seed gets this one, unless its options name another."""
        from ...heuristics.registry import find_policy, make_policy

        options = dict(self.options)
        if "seed" in find_policy(self.name, self.engine).options:
            options.setdefault("seed", seed)
        return make_policy(self.name, self.engine, **options)


def read_policies(given: Sequence[str], seed: int, engine: str | None = None) -> list[PolicySpec]:
    """Return the policies named in lists such as "gavel,shockwave:rounds=30,ftf_power=5,las", or all of them for "all".

    All policies are of one engine: the given one, or that of the first policy. CommandError or InvalidInput if a list
    cannot be read, a policy or an option is unknown or out of range, or one is named twice.
    """
    from ...heuristics.registry import find_policy, policies_of
    from ...simulation.engines import DEFAULT_ENGINE

    pieces: list[str] = []
    for piece in (piece.strip() for text in given for piece in text.split(",")):
        if "=" in piece and ":" not in piece.split("=", 1)[0] and pieces:
            pieces[-1] += f",{piece}"  # one more option of the policy before it
        elif piece == "all":
            pieces += policies_of(engine or DEFAULT_ENGINE)
        elif piece:
            pieces.append(piece)
    specs: list[PolicySpec] = []
    for piece in pieces:
        name, _, options = piece.partition(":")
        engine = find_policy(name, engine).engine
        spec = PolicySpec(name, read_options(options, "--policy", _POLICY_HINT), engine)
        if any(spec.label == other.label for other in specs):
            raise CommandError(f"policy {spec.label}: named twice", "name each once, or with other options.")
        spec.make(seed)
        specs.append(spec)
    if not specs:
        raise CommandError("no policy named", _POLICY_HINT)
    return specs


def read_options(text: str, option: str, hint: str) -> dict[str, Any]:
    """Return "a=1,b=0.5,c=yes" as a mapping: numbers, true, false, none, else text."""
    return {key: read_value(value) for key, value in read_pairs(text, option, hint).items()}


def read_pairs(text: str, option: str, hint: str) -> dict[str, str]:
    """Return "a=1,b=0.5,c=yes" as a mapping of text; CommandError if a piece is not KEY=VALUE or a key comes twice."""
    values: dict[str, str] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not (key and equals and value):
            raise CommandError(f"{option}: {piece!r} is not KEY=VALUE", hint)
        if key in values:
            raise CommandError(f"{option}: {key} is given twice", hint)
        values[key] = value
    return values


def read_value(text: str) -> Any:
    """Return text as a whole number, a number, a Boolean or None where it can be read as one, else the text."""
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
