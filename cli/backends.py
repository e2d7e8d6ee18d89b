"""`equipoise backends`: which solvers can run here, and why the others cannot."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from .failures import OK


def list_backends(*, as_json: bool) -> int:
    """Print the table of backends on standard output and return the exit code."""
    from ..solvers.registry import backends

    table = backends()
    if as_json:
        sys.stdout.write(json.dumps([asdict(row) for row in table], indent=1) + "\n")
    else:
        sys.stdout.write(f"{table}\n")
    return OK
