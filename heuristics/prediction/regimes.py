"""Order of a job's batch sizes, and limit of the number of its regimes."""

from __future__ import annotations

from ...formulations.checks import as_integer
from ...simulation.job_state import JobState

# K for Accordion, whose regimes alternate without a limit: its number of batch sizes. docs/prediction.md shows other
# values.
ACCORDION_REGIMES = 2

# A regime below this share of all epochs is rounding and counts as empty.
_EMPTY_SHARE = 1e-9


def next_batch_size(state: JobState, current: int) -> int | None:
    """Return the batch size that follows `current`, or None if it is the last.

    Static jobs keep their size. Accordion alternates between the initial size and the largest one. GNS doubles up to
    the largest size and does not return; if the doubled size is missing from `state.epoch_s`, the next larger one
    follows. "Largest" is the largest key of `state.epoch_s`.
    """
    largest = max(state.epoch_s)
    if state.mode == "static" or state.batch_sizes[0] == largest:
        return None
    if state.mode == "accordion":
        return state.batch_sizes[0] if current == largest else largest
    return min((size for size in state.epoch_s if size >= 2 * current), default=largest) if current < largest else None


def regime_limit(state: JobState, max_regimes: int | None = None) -> int:
    """Return K, the largest number of regimes of the job: finished, ongoing and later ones.

    The K requested is `max_regimes`, by default `ACCORDION_REGIMES` = 2 for Accordion, and for GNS as many as doubling
    from the current size to the largest allows. K is raised to the number of regimes observed, including the ongoing
    one, which is then the last. K is reduced to the number that the mode allows: for GNS by the doublings left, for a
    job that cannot change to the regimes observed.
    """
    if max_regimes is not None:
        max_regimes = as_integer("max_regimes", max_regimes, minimum=1)
    observed = len(state.batch_sizes)
    if next_batch_size(state, state.batch_sizes[-1]) is None:
        return observed
    if state.mode == "accordion":
        return max(observed, ACCORDION_REGIMES if max_regimes is None else max_regimes)
    reachable, current = observed, next_batch_size(state, state.batch_sizes[-1])
    while current is not None:
        reachable, current = reachable + 1, next_batch_size(state, current)
    return reachable if max_regimes is None else min(reachable, max(observed, max_regimes))


def coming_batch_sizes(state: JobState, count: int) -> tuple[int, ...]:
    """Return `count` batch sizes from the current one on; the last one repeats if the job cannot change further."""
    sizes = [state.batch_sizes[-1]]
    while len(sizes) < count:
        following = next_batch_size(state, sizes[-1])
        sizes.append(sizes[-1] if following is None else following)
    return tuple(sizes)


def tidy(regimes: list[tuple[int, float]], total_epochs: float) -> tuple[tuple[int, float], ...]:
    """Drop empty regimes and merge neighbours of one batch size; the sum of epochs is kept.

    A regime is empty below 1e-9 of all epochs, since a window would grant such a remainder a round. Its epochs go to
    the following regime, those of the last one to the preceding regime.
    """
    kept: list[tuple[int, float]] = []
    carried = 0.0
    for size, epochs in regimes:
        if epochs <= _EMPTY_SHARE * total_epochs:
            carried += epochs
        elif kept and kept[-1][0] == size:
            kept[-1] = (size, kept[-1][1] + epochs + carried)
            carried = 0.0
        else:
            kept.append((size, epochs + carried))
            carried = 0.0
    if not kept:
        return ((regimes[0][0], carried),)
    kept[-1] = (kept[-1][0], kept[-1][1] + carried)
    return tuple(kept)
