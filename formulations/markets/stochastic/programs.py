"""Programs of a stochastic market over occupancy measures, with or without binaries."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Floats, Indices
from ...program.builder import ProgramBuilder, Term
from ...program.model import Program
from .data import StochasticData
from .plan import StochasticPlan
from .process import Process

# A state less probable than this counts as never reached: smaller values are a solver's rounding.
REACHED = 1e-12


def stochastic_program(market: StochasticData, form: str) -> Program:
    """Return the program: ``occupancy`` is the probability of each cell (round, state, action) that can be reached.

    Utilities inside the logarithms are divided by each job's greatest utility alone, capacity rows by the capacity.
    """
    processes = market.processes(form)
    build = ProgramBuilder(sense="max")
    counts = [len(process.cells[0]) for process in processes]
    # The bound is 1, not the tighter `reach`: the flow rows imply it, and interior-point methods stall on nearly active
    # bounds.
    occupancy = build.add_columns("occupancy", (sum(counts),), upper=1.0)
    parts = np.split(occupancy, np.cumsum(counts)[:-1])

    flow, inflow, first = [], [], 0
    for process, columns in zip(processes, parts, strict=True):
        terms, arriving = _flow(process, columns, first)
        flow += terms
        inflow.append(arriving)
        first += len(arriving)
    arriving = np.concatenate(inflow)
    build.add_rows("flow", arriving.shape, terms=flow, lower=arriving, upper=arriving)

    if not form.startswith("joint"):
        units = market.capacity_units
        terms = []
        for process, columns in zip(processes, parts, strict=True):
            t, _, a = process.cells
            for j, unit in enumerate(units):
                takes = process.demands[a, j] / unit[t]
                used = takes > 0
                terms.append((j * market.rounds + t[used], columns[used], takes[used]))
        build.add_rows("capacity", units.shape, terms=terms, upper=market.capacities / units)

    if form.endswith("deterministic"):
        _add_choices(build, processes, parts)

    inside: list[Term] = []
    for process, columns in zip(processes, parts, strict=True):
        _, s, a = process.cells
        for job, worth in zip(process.jobs, process.utilities, strict=True):
            gain = worth[a, s] / market.best_alone[job]
            some = gain > 0
            inside.append((job, columns[some], gain[some]))
    build.add_logs(market.budgets, terms=inside)
    build.set_objective([], offset=math.fsum(market.budgets * np.log(market.best_alone)))
    return build.program(gap_unit=market.total_budget)


def policy_of(process: Process, cells: Floats, form: str) -> Floats:
    """Return the policy, shape (T, S, A), of values by cell: occupancies, or choices in a deterministic form."""
    table = np.zeros(process.shape)
    table[process.cells] = np.maximum(cells, 0.0)
    total = table.sum(axis=2, keepdims=True)
    reached = total > REACHED
    if form.endswith("deterministic"):
        chosen = table.argmax(axis=2)
        policy = np.zeros(process.shape)
        np.put_along_axis(policy, chosen[:, :, None], 1.0, axis=2)
    else:
        policy = table / np.where(reached, total, 1.0)
    idle = np.zeros(process.shape[2])
    idle[0] = 1.0
    return np.where(reached, policy, idle)


def decoded_policy(market: StochasticData, values: Floats, form: str) -> tuple[Floats, ...]:
    """Return the policy of column values of the program in this form."""
    processes = market.processes(form)
    count = sum(len(process.cells[0]) for process in processes)
    shown = values[count : 2 * count] if form.endswith("deterministic") else values[:count]
    parts = np.split(shown, np.cumsum([len(process.cells[0]) for process in processes])[:-1])
    return tuple(policy_of(process, part, form) for process, part in zip(processes, parts, strict=True))


def encoded(market: StochasticData, plan: StochasticPlan, form: str) -> Floats:
    """Return column values of the program in this form; a randomised plan leaves the choices open."""
    processes = market.processes(form)
    same = plan.is_joint == form.startswith("joint")
    tables = plan.occupancy if same else tuple(plan.job_occupancy(job) for job in range(len(processes)))
    occupancy = np.concatenate([table[process.cells] for process, table in zip(processes, tables, strict=True)])
    if not form.endswith("deterministic"):
        return occupancy
    choice = np.full(len(occupancy), np.nan)
    if same and plan.is_deterministic:
        choice = np.concatenate([part[process.cells] for process, part in zip(processes, plan.policy, strict=True)])
    return np.concatenate([occupancy, choice])


def _flow(process: Process, columns: Indices, first: int) -> tuple[list[Term], Floats]:
    """Return the terms of the flow rows (outflow of a state equals its inflow) and the initial inflow, by row."""
    rounds, states, actions = process.shape
    reached = process.reach > 0
    row = np.full((rounds, states), -1)
    row[reached] = first + np.arange(int(reached.sum()))
    column = np.full((rounds, states, actions), -1)
    column[process.cells] = columns
    t, s, _ = process.cells
    leaving: Term = (row[t, s], columns, 1.0)
    source, into = column[:-1, process.origin, process.action], row[1:, process.target]
    lead = (source >= 0) & (into >= 0)
    coming: Term = (into[lead], source[lead], -np.broadcast_to(process.chance, lead.shape)[lead])
    arriving = np.zeros((rounds, states))
    arriving[0] = process.initial
    return [leaving, coming], arriving[reached]


def _add_choices(build: ProgramBuilder, processes: tuple[Process, ...], parts: list[Indices]) -> None:
    """Add a binary per cell: in each round and state one action is chosen, and only that one is taken."""
    bounds = np.concatenate([process.reach[process.cells[0], process.cells[1]] for process in processes])
    choice = build.add_binaries("choice", bounds.shape)
    groups, first = [], 0
    for process in processes:
        t, s, _ = process.cells
        _, which = np.unique(t * process.shape[1] + s, return_inverse=True)
        groups.append(first + which)
        first += int(which.max()) + 1
    group = np.concatenate(groups)
    build.add_rows("one_action", (first,), terms=[(group, choice, 1.0)], lower=1.0, upper=1.0)
    row = np.arange(len(bounds))
    taken: list[Term] = [(row, np.concatenate(parts), 1.0), (row, choice, -bounds)]
    build.add_rows("chosen", bounds.shape, terms=taken, upper=0.0)
