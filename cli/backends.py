"""`equipoise backends`: which solvers can run here, whether they keep the contract, and which one "auto" takes."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..formulations.errors import BackendUnavailable
from .errors import FAILED, NO_BACKEND, OK, CommandError
from .options import Json, deferred

if TYPE_CHECKING:
    from ..solvers.backend import Backend
    from ..validation.contract.suite import ContractReport

#: Stands for every backend in the table; those that cannot run here are skipped.
ALL = "all"


@deferred
def backends_command(
    check: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Run the contract on these backends: names, all, or MODULE:ATTRIBUTE for an object of your own.",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="INSTANCE.json", help="Explain why auto takes each or passes over it; - reads stdin."
        ),
    ] = None,
    form: Annotated[str | None, typer.Option(help="With --for: a program of the instance.")] = None,
    rel_gap: Annotated[float | None, typer.Option(help="With --for: the gap asked for [1e-4].")] = None,
    threads: Annotated[int | None, typer.Option(help="With --for: threads [1].")] = None,
    seed: Annotated[int | None, typer.Option(help="With --for and --check: the seed [0].")] = None,
    as_json: Json = False,
) -> int:
    """List the solvers: which can run here, and why the others cannot.

    An option that would be ignored is a CommandError.
    """
    from ..solvers.backend_table import backends
    from ..solvers.selection import candidates
    from .plan.instance import read_window

    options = {"form": form, "rel_gap": rel_gap, "threads": threads, "seed": seed}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if check is not None and instance is not None:
        raise CommandError("--check and --for together", "give one of them.")
    if instance is not None:
        return _print_table(candidates(read_window(instance), **given), as_json=as_json)
    ignored = [name for name in given if check is None or name != "seed"]
    if ignored:
        option = f"--{ignored[0].replace('_', '-')}"
        raise CommandError(f"{option} without --for", "it belongs to the instance that --for names.")
    if check is not None:
        return check_backends(check, seed=seed or 0, as_json=as_json)
    return _print_table(backends(), as_json=as_json)


def _print_table(table: Any, *, as_json: bool) -> int:
    if as_json:
        _print_json([asdict(row) for row in table])
    else:
        sys.stdout.write(f"{table}\n")
    return OK


def check_backends(given: str, *, seed: int, as_json: bool) -> int:
    """Run the contract on backends and print the reports; the exit code is 1 if a case failed.

    `given` has names of backends separated by commas, "all", or MODULE:ATTRIBUTE for a backend of another package.
    BackendNotFound or BackendUnavailable comes before anything runs, for a backend that was named.
    """
    from ..solvers.registry import BACKENDS
    from ..validation.contract.suite import CASES, check_backend
    from .progress import CountProgress

    names = [name.strip() for name in given.split(",")]
    named = [named_backend(name) for name in names if name != ALL]
    for backend in named:
        available = backend.probe()
        if not available.usable:
            raise BackendUnavailable(f"backend {backend.name!r} cannot run here: {available.reason}")
    listed = [named_backend(name) for name in BACKENDS] if ALL in names else []
    tested = {backend.name: backend for backend in [*named, *listed]}

    total, done = len(CASES) * len(tested), count(1)
    with CountProgress("cases") as shown:
        reports = [
            check_backend(backend, seed=seed, on_case=lambda row: shown(next(done), total))
            for backend in tested.values()
        ]
    if as_json:
        _print_json([_report_fields(report) for report in reports])
    else:
        sys.stdout.write("\n\n".join(str(report) for report in reports) + "\n")
    return OK if all(report.passed for report in reports) else FAILED


def named_backend(name: str) -> Backend:
    """Return the backend of this name, or the object at MODULE:ATTRIBUTE."""
    from ..solvers.backend import Backend
    from ..solvers.registry import FAMILIES, find_backend

    module, colon, attribute = name.partition(":")
    if not colon or module in FAMILIES:
        return find_backend(name)
    hint = "MODULE:ATTRIBUTE names a backend object, such as mypackage.solver:BACKEND, importable from this folder."
    if "" not in sys.path:
        sys.path.insert(0, "")  # the folder of the console script comes first otherwise, not the user's
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise CommandError(f"no backend {name!r}: {error}", hint, NO_BACKEND) from error
    except AttributeError:
        raise CommandError(f"no backend {name!r}: {module} has no {attribute!r}", hint, NO_BACKEND) from None
    if not isinstance(found, Backend):
        raise CommandError(f"{name!r} is no backend but of type {type(found).__name__}", hint)
    return found


def _report_fields(report: ContractReport) -> dict[str, Any]:
    cases = [asdict(row) for row in report.rows]
    return {"backend": report.backend, "version": report.version, "passed": report.passed, "cases": cases}


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
