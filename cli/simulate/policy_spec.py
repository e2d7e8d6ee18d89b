"""Policies as written on the command line: a name, and options after a colon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CommandError
from .policy_arguments import read_argument, read_value

#: The policy that others are compared with, where it takes part.
REFERENCE = "shockwave"
_POLICY_HINT = "such as shockwave:rounds=30,ftf_power=5; `equipoise simulate --help` lists the policies."


@dataclass(frozen=True)
class PolicySpec:
    """A policy as requested.

    Parameters
    ----------
    name : str
    options : mapping of str to object
        The options as written.
    engine : str, optional
        Engine of the policy; None: the first that has a policy of this name.
    arguments : mapping of str to object, optional
        The options as the policy takes them, with sequences, mappings and the content of files; None: as written.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    arguments: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """The policy as written on the command line."""
        chosen = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{chosen}" if chosen else self.name

    @property
    def folder(self) -> str:
        """Name of the folder of its results."""
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in self.label)

    def make(self, defaults: Mapping[str, Any]) -> Any:
        """Return a new policy; those of the defaults that it takes, and its options do not state, are its own."""
        from ...heuristics.registry import find_policy, make_policy

        known = find_policy(self.name, self.engine).options
        taken = {option: value for option, value in defaults.items() if option in known}
        stated = self.options if self.arguments is None else self.arguments
        return make_policy(self.name, self.engine, **taken | dict(stated))


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
        entry = find_policy(name, engine)
        engine, written = entry.engine, read_options(options, "--policy", _POLICY_HINT)
        kinds = {option: str(parameter.annotation) for option, parameter in entry.parameters.items()}
        arguments = {option: read_argument(option, value, kinds.get(option, "")) for option, value in written.items()}
        spec = PolicySpec(name, written, engine, arguments)
        if any(spec.label == other.label for other in specs):
            raise CommandError(f"policy {spec.label}: named twice", "name each once, or with other options.")
        spec.make({"seed": seed})
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
