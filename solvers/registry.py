"""Table of backends by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..formulations.errors import BackendNotFound
from ..formulations.text import nearest_hint
from .backend import Backend
from .options import present_name

# In order of preference for backend="auto": special backends first. Each module has one object named BACKEND, or,
# for a family ("pyomo:glpk"), a function `backend(name)` that makes the member of any name.
BACKENDS = {
    "lagrangian": "window.backend",
    "proportional_response": "markets.proportional_response.backend",
    "interior_point": "markets.interior_point.backend",
    "share_prices": "shares.backend",
    "level_programs": "shares.level_programs",
    "finish_time": "shares.finish_time.backend",
    "matching": "assignment.matching.backend",
    "goodput": "assignment.goodput.backend",
    "birkhoff": "makespan.birkhoff",
    "delay_candidates": "gpu_sharing.delay_candidates",
    "cp_sat_schedule": "external.ortools.schedule",
    "gang_packing": "makespan.gang_packing",
    "differential_evolution": "search.differential",
    "spea2": "search.spea2",
    "nsga2": "search.nsga2",
    "random": "search.uniform",
    "grid": "search.grid",
    "gurobi": "external.gurobi.backend",
    "highs": "external.highs",
    "clarabel": "external.clarabel.backend",
    "scip": "external.scip.backend",
    "pyomo:highs": "external.pyomo.backend",
    "pyomo:cbc": "external.pyomo.backend",
    "pyomo:glpk": "external.pyomo.backend",
    "pyomo:ipopt": "external.pyomo.backend",
    "scipy": "external.scipy_milp",
    "ortools": "external.ortools.backend",
}
FAMILIES = {"pyomo": "external.pyomo.backend"}


def find_backend(name: Any) -> Backend:
    """Return the backend of this name; BackendNotFound, naming the nearest, if there is none. A former name warns."""
    name = present_name(name)
    family, _, member = name.partition(":") if isinstance(name, str) else ("", "", "")
    if family in FAMILIES and member:
        made: Backend = import_module(f".{FAMILIES[family]}", __package__).backend(name)
        return made
    if not isinstance(name, str) or name not in BACKENDS:
        raise BackendNotFound(f"no backend {name!r}: {nearest_hint(name, BACKENDS)}there are {', '.join(BACKENDS)}")
    backend: Backend = import_module(f".{BACKENDS[name]}", __package__).BACKEND
    return backend


def all_backends() -> list[Backend]:
    """Return the backends in the order in which "auto" prefers them."""
    return [find_backend(name) for name in BACKENDS]
