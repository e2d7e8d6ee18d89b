"""`equipoise backends`: which solvers can run here, whether they keep the contract, and which one "auto" takes."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

from ..formulations.errors import BackendUnavailable
from .errors import FAILED, NO_BACKEND, OK, CommandError

if TYPE_CHECKING:
    from ..solvers.backend import Backend

#: Stands for every backend in the table; those that cannot run here are skipped.
ALL = "all"


def backends_command(
    *,
    check: str | None,
    instance: str | None,
    form: str | None,
    rel_gap: float | None,
    threads: int | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """List the backends, check some, or weigh them for an instance; refuse options that would be ignored."""
    options = {"--form": form, "--rel-gap": rel_gap, "--threads": threads, "--seed": seed}
    given = [name for name, value in options.items() if value is not None]
    if check is not None and instance is not None:
        raise CommandError("--check and --for together", "give one of them.")
    if instance is not None:
        wanted = {"rel_gap": rel_gap, "threads": threads, "seed": seed}
        return weigh_backends(
            instance, form, {name: value for name, value in wanted.items() if value is not None}, as_json=as_json
        )
    idle = [name for name in given if check is None or name != "--seed"]
    if idle:
        raise CommandError(f"{idle[0]} without --for", "it says what to weigh the backends for.")
    if check is not None:
        return check_backends(check, seed=seed or 0, as_json=as_json)
    return list_backends(as_json=as_json)


def list_backends(*, as_json: bool) -> int:
    """Print the table of backends on standard output and return the exit code."""
    from ..solvers.backend_table import backends

    table = backends()
    if as_json:
        _print_json([asdict(row) for row in table])
    else:
        sys.stdout.write(f"{table}\n")
    return OK


def weigh_backends(source: str, form: str | None, options: dict[str, Any], *, as_json: bool) -> int:
    """Print what backend="auto" makes of every backend for the instance in a file, or on standard input for "-"."""
    from ..solvers.selection import candidates
    from .plan.instance import read_window

    table = candidates(read_window(source), form=form, **options)
    if as_json:
        _print_json([asdict(row) for row in table])
    else:
        sys.stdout.write(f"{table}\n")
    return OK


def check_backends(given: str, *, seed: int, as_json: bool) -> int:
    """Run the contract on backends and print the reports.

    Parameters
    ----------
    given : str
        Names separated by commas: of backends, "all", or MODULE:ATTRIBUTE for an object of somebody else's.
    seed : int
        Of the programs that are drawn.

    Returns
    -------
    int
        1 if a case failed.

    Raises
    ------
    BackendNotFound, BackendUnavailable
        If a backend that was named is unknown or cannot run here; nothing has run then.
    """
    from ..solvers.registry import BACKENDS
    from ..validation.contract.suite import CASES, check_backend
    from .progress import Counted

    names = [name.strip() for name in given.split(",")]
    named = [named_backend(name) for name in names if name != ALL]
    for backend in named:
        found = backend.probe()
        if not found.usable:
            raise BackendUnavailable(f"backend {backend.name!r} cannot run here: {found.reason}")
    listed = [named_backend(name) for name in BACKENDS] if ALL in names else []
    tested = {backend.name: backend for backend in [*named, *listed]}

    total, done = len(CASES) * len(tested), count(1)
    with Counted("cases") as shown:
        reports = [
            check_backend(backend, seed=seed, on_case=lambda row: shown(next(done), total))
            for backend in tested.values()
        ]
    if as_json:
        _print_json(
            [
                {"backend": each.backend, "version": each.version, "passed": each.passed, "cases": _rows(each)}
                for each in reports
            ]
        )
    else:
        sys.stdout.write("\n\n".join(str(report) for report in reports) + "\n")
    return OK if all(report.passed for report in reports) else FAILED


def named_backend(name: str) -> Backend:
    """Return the backend of this name, or the object at MODULE:ATTRIBUTE."""
    from ..solvers.registry import FAMILIES, find_backend

    module, colon, attribute = name.partition(":")
    if not colon or module in FAMILIES:
        return find_backend(name)
    hint = "MODULE:ATTRIBUTE names a backend object, say mypackage.solver:BACKEND, importable from this folder."
    if "" not in sys.path:
        sys.path.insert(0, "")  # the command's own folder stands first otherwise, and not the user's
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise CommandError(f"no backend {name!r}: {error}", hint, NO_BACKEND) from error
    except AttributeError:
        raise CommandError(f"no backend {name!r}: {module} has no {attribute!r}", hint, NO_BACKEND) from None
    if isinstance(found, type) or not (hasattr(found, "probe") and hasattr(found, "solve")):
        raise CommandError(f"{name!r} is no backend but of type {type(found).__name__}", hint)
    backend: Backend = found
    return backend


def _rows(report: Any) -> list[dict[str, Any]]:
    return [asdict(row) for row in report.rows]


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
