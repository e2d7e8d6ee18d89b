"""The licence that Gurobi finds here, and the size of program that it allows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache

from ....formulations.errors import LicenseLimit
from ....formulations.program.model import Program
from ....formulations.program.to_gurobi import log_terms, range_rows
from ...backend import Availability

# The licence that comes with gurobipy; the smaller limit holds as soon as a logarithm is native, and a native
# logarithm counts as two rows.
BUNDLED_SIZE, BUNDLED_LOG_SIZE, ROWS_PER_LOG = 2_000, 200, 2
BUNDLED_LIMIT = "2,000 variables and 2,000 rows (200 variables with native logarithms)"
#: Parameters of Gurobi that select a licence.
LICENCE_PARAMETERS = frozenset(
    {"WLSAccessID", "WLSToken", "WLSConfig", "TokenServer", "ComputeServer", "CSManager", "CloudAccessID"}
)
TOO_LARGE = 10010  # GRB.Error.SIZE_LIMIT_EXCEEDED
#: Remedy for a licence that is too small.
ADVICE = "use backend='highs', or install a full licence (https://gurobi.com/unrestricted)"


def with_licence(installed: Availability) -> Availability:
    """Return the availability of an installed gurobipy under its licence; never raise.

    Without a licence of the user's own, nothing is started, as the limits of the bundled one are constants. A licence
    of the user's own is tried once per process.
    """
    if not installed.usable:
        return installed
    release = installed.version
    place = next(_places(release), None)
    if place is None:
        return Availability(True, release, limit=BUNDLED_LIMIT)
    reason, limit = _tried(place, os.path.getmtime(place) if os.path.isfile(place) else 0.0)
    return Availability(not reason, release, reason=reason, limit=limit)


def check_size(program: Program) -> None:
    """Raise LicenseLimit for a program that the bundled licence does not allow."""
    columns = program.num_columns + len(range_rows(program)) + len(log_terms(program))
    if columns > BUNDLED_SIZE or program.num_rows > BUNDLED_SIZE:
        bundled = f"the licence that comes with gurobipy allows {BUNDLED_SIZE:,} of each"
        raise LicenseLimit(f"{described_size(program)}; {bundled}: {ADVICE}")


def logs_fit(program: Program) -> bool:
    """Whether the bundled licence allows the program with its logarithms native."""
    logs = len(log_terms(program))
    columns = program.num_columns + len(range_rows(program)) + logs
    return columns <= BUNDLED_LOG_SIZE and program.num_rows + ROWS_PER_LOG * logs <= BUNDLED_SIZE


def described_size(program: Program) -> str:
    """Return a description of the size of the program as Gurobi counts it."""
    extra = {"rows of two sides": len(range_rows(program)), "logarithms": len(log_terms(program))}
    why = " and ".join(f"{count:,} for {what}" for what, count in extra.items() if count)
    total = program.num_columns + sum(extra.values())
    return f"{total:,} variables" + (f" ({why})" if why else "") + f" and {program.num_rows:,} rows"


def _places(release: str) -> Iterator[str]:
    """Yield the places of licences other than the bundled one, in the order in which Gurobi searches."""
    if os.environ.get("GRB_LICENSE_FILE"):
        yield os.environ["GRB_LICENSE_FILE"]  # Gurobi then looks in no other place, even if the file does not exist
    numbers = release.split(".")
    root = {"win32": "c:/gurobi", "darwin": "/Library/gurobi"}.get(sys.platform, "/opt/gurobi")
    for folder in (*(root + "".join(numbers[:count]) for count in (3, 2, 0)), os.path.expanduser("~")):
        place = os.path.join(folder, "gurobi.lic")
        if os.path.isfile(place):
            yield place


@cache
def _tried(place: str, changed: float) -> tuple[str, str]:
    """Return (fault of the licence, its limit); both are empty for a full one."""
    try:
        import gurobipy as gp

        with gp.Env(empty=True) as env:
            env.setParam("LogToConsole", 0)
            env.start()
            with gp.Model(env=env) as model:
                model.addMVar(BUNDLED_SIZE + 1)
                model.optimize()
    except Exception as error:
        if getattr(error, "errno", None) == TOO_LARGE:
            return "", BUNDLED_LIMIT
        return f"the licence in {place} does not work: {error}. Renew it, or remove it to use the bundled one", ""
    return "", ""
