"""The eight options that mean the same for every backend."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..formulations.checks import as_flag, as_integer, as_real
from ..formulations.errors import InvalidInput, UnknownOption
from ..formulations.text import nearest_hint

#: Present names of backends by their former ones.
RENAMED_BACKENDS = {"marginal": "lagrangian"}


def present_name(name: Any) -> Any:
    """Return the present name of a backend, with a DeprecationWarning for a former one; other values unchanged."""
    if not isinstance(name, str) or name not in RENAMED_BACKENDS:
        return name
    new = RENAMED_BACKENDS[name]
    warnings.warn(f"the backend {name!r} is called {new!r} now", DeprecationWarning, stacklevel=3)
    return new


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options common to all backends.

    Attributes
    ----------
    time_limit : float or None
        Seconds of wall time, soft: a backend stops soon after. None: no limit.
    rel_gap : float
        Stop when the gap, as `Result.gap` defines it, is at most this.
    abs_gap : float
        Stop when abs(bound - objective) is at most this.
    feasibility_tol : float
        Largest violation of a bound, row or whole number that our own check accepts, absolute.
    threads : int
        Number of threads, at least 1.
    seed : int
        Seed of the random numbers, at least 0.
    warm_start : object or None
        A plan of the problem's own kind to start from.
    log : bool
        Let the solver write its log to standard output.
    backend_options : mapping of str to mapping
        Options of one backend, by its name: ``{"highs": {"presolve": "off"}}``. With backend="auto" they apply if that
        backend is chosen; a backend chosen by name refuses those of others.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    TypeError
        If an option does not exist.
    """

    time_limit: float | None = None
    rel_gap: float = 1e-4
    abs_gap: float = 0.0
    feasibility_tol: float = 1e-6
    threads: int = 1
    seed: int = 0
    warm_start: Any = None
    log: bool = False
    backend_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            as_real("time_limit", self.time_limit, minimum=0.0)
        as_real("rel_gap", self.rel_gap, minimum=0.0)
        as_real("abs_gap", self.abs_gap, minimum=0.0)
        as_real("feasibility_tol", self.feasibility_tol, minimum=1e-9, maximum=1e-2)
        as_integer("threads", self.threads, minimum=1, maximum=1024)
        as_integer("seed", self.seed, minimum=0, maximum=2**31 - 1)
        as_flag("log", self.log)
        if not isinstance(self.backend_options, Mapping):
            raise InvalidInput("backend_options", self.backend_options, "must map a backend's name to its options")
        for name, own in self.backend_options.items():
            if not isinstance(own, Mapping):
                raise InvalidInput(f"backend_options[{name!r}]", own, "must map option names to values")
        for old, new in RENAMED_BACKENDS.items():
            if old in self.backend_options and new in self.backend_options:
                raise InvalidInput("backend_options", old, f"is the former name of {new!r}, which is given too")
        if any(name in RENAMED_BACKENDS for name in self.backend_options):
            present = {present_name(name): own for name, own in self.backend_options.items()}
            object.__setattr__(self, "backend_options", present)

    def own(self, backend: str, covered: Mapping[str, str]) -> dict[str, Any]:
        """Return the options meant for `backend` alone. Deprecated: `Backend.backend_options` checks them as well.

        `covered` maps a backend's option to the common option that already states it; InvalidInput if one is set.
        """
        warnings.warn("Options.own is replaced by Backend.backend_options", DeprecationWarning, stacklevel=2)
        own = dict(self.backend_options.get(backend, {}))
        for name, common in covered.items():
            if name in own:
                raise InvalidInput(f"backend_options[{backend!r}][{name!r}]", own[name], f"use {common}= instead")
        return own

    def with_time(self, seconds: float | None) -> Options:
        """Return the same options with another time limit."""
        return replace(self, time_limit=seconds)


#: The default options; `solve` and `candidates` take their defaults from here.
DEFAULTS = Options()


def refuse_unknown(given: Mapping[str, Any], *others: str) -> None:
    """Raise UnknownOption, naming the nearest, for a keyword that is neither an option nor one of `others`."""
    for name, value in given.items():
        known = [*others, *(each.name for each in fields(Options))]
        raise UnknownOption(name, value, f"no such option: {nearest_hint(name, known)}there are {', '.join(known)}")
