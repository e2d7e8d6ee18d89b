"""Interference of jobs that share GPUs: the protocol, one ratio for all, a table of pairs, and ratios drawn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ..delimited_files import Row, read_rows
from ..traces.trace import Trace
from .speeds import Running, Speeds, table_names


class Interference(Protocol):
    """Slowdown of a job by the jobs that share any of its GPUs.

    Where an attribute `by_sub_batch` is False, the ratios do not depend on sub-batches.
    """

    def ratio(self, mine: Running, others: Sequence[Running]) -> float:
        """Return the factor on the job's iteration time beside the others (at least one), at least 1."""
        ...


class ConstantInterference:
    """One ratio for every job that shares GPUs, however many share them.

    Parameters
    ----------
    value : float
        Factor on the iteration time, at least 1.
    """

    by_sub_batch = False

    def __init__(self, value: float) -> None:
        self.value = as_real("interference", value, minimum=1.0)

    def ratio(self, mine: Running, others: Sequence[Running]) -> float:
        """Return the constant."""
        return self.value


class SharedSpeeds(NamedTuple):
    """Speeds of jobs alone, and the interference of jobs that share GPUs: one argument `speeds` for `simulate`."""

    speeds: Speeds
    interference: Interference


@dataclass(frozen=True, kw_only=True)
class PairTable:
    """Measured ratios of pairs of jobs that share a GPU. Beside several jobs, a job has the largest of its ratios.

    Parameters
    ----------
    ratios : mapping of (str, str) to float
        Factor, at least 1, on the iteration time of the first job beside the second. Jobs are named
        "ResNet-18 (batch size 32)", with the batch size per GPU, or by their model alone.
    default : float, optional
        Ratio of pairs that the table lacks, at least 1. None: such a pair is an error.

    Raises
    ------
    InvalidInput
        If a ratio is below 1 or there is none.
    """

    by_sub_batch: ClassVar[bool] = False

    ratios: Mapping[tuple[str, str], float]
    default: float | None = None
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    # Names of (model, batch size), since writing one takes longer than all the rest of a look-up.
    _written: dict[tuple[str, int], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.ratios:
            raise InvalidInput("ratios", "{}", "must not be empty: a table has at least one pair")
        checked = {pair: as_real(f"ratios[{pair}]", ratio, minimum=1.0) for pair, ratio in self.ratios.items()}
        object.__setattr__(self, "ratios", checked)
        object.__setattr__(self, "_names", frozenset(name for pair in checked for name in pair))
        if self.default is not None:
            object.__setattr__(self, "default", as_real("default", self.default, minimum=1.0))

    @staticmethod
    def read(path: str | Path, gpu: str = "v100", default: float | None = None) -> PairTable:
        """Read the pairs measured on one GPU type from a CSV file with a header.

        Columns needed: gpu, job_a, job_b, xi_a and xi_b (ratios of a beside b and of b beside a). A pair with an empty
        ratio was not measured. Other columns are not read.

        Raises
        ------
        InvalidInput
            If the file is malformed or has no pair of this GPU type; the message names column, value, file and line.
        """
        path = Path(path)
        ratios: dict[tuple[str, str], float] = {}
        types = set()
        for row in read_rows(path, ("gpu", "job_a", "job_b", "xi_a", "xi_b")):
            types.add(row.text("gpu"))
            if row.cells["gpu"] == gpu and row.cells["xi_a"] and row.cells["xi_b"]:
                first, second = row.text("job_a"), row.text("job_b")
                _store(ratios, (first, second), "xi_a", row)
                _store(ratios, (second, first), "xi_b", row)
        if gpu not in types:
            raise InvalidInput("gpu", gpu, f"{path.name} holds {', '.join(sorted(types)) or 'no pair'}")
        return PairTable(ratios=ratios, default=default)

    def ratio(self, mine: Running, others: Sequence[Running]) -> float:
        """Return the largest ratio of the job beside each of the others; InvalidInput names a pair without one."""
        name = self._name(mine)
        if len(others) == 1:  # the usual case, of which policies ask thousands
            return self._pair_ratio(name, self._name(others[0]))
        return max([self._pair_ratio(name, self._name(other)) for other in others])

    def missing(self, trace: Trace) -> tuple[tuple[str, str], ...]:
        """Return the pairs of jobs of a trace, at their own batch sizes, that have neither a ratio nor a default."""
        if self.default is not None:
            return ()
        jobs = set(zip(trace.model, trace.batch_size.tolist(), strict=True))
        names = sorted({self._table_name(model, size) for model, size in jobs})
        return tuple((first, second) for first in names for second in names if (first, second) not in self.ratios)

    def _pair_ratio(self, mine: str, other: str) -> float:
        found = self.ratios.get((mine, other), self.default)
        if found is None:
            raise InvalidInput("interference", f"{mine} beside {other}", "the table has no ratio of this pair")
        return found

    def _name(self, run: Running) -> str:
        key = run.model, run.batch_size
        name = self._written.get(key)
        if name is None:
            name = self._written[key] = self._table_name(*key)
        return name

    def _table_name(self, model: str, batch_size: int) -> str:
        named, alone = table_names(model, batch_size)
        return alone if named not in self._names and alone in self._names else named


class DrawnInterference:
    """Ratios of pairs of models, each pair drawn once from the measured pairs of a table.

    Batch sizes do not count. Two jobs of one model have the same ratio. Beside several jobs, a job has the largest of
    its ratios. A pair's ratios follow from the table, the seed and the two names alone, in whatever order pairs occur.

    Parameters
    ----------
    table : PairTable
        Measured pairs; those of which both ratios are known are drawn, with equal probability.
    seed : int
        At least 0.

    Raises
    ------
    InvalidInput
        If the table has no such pair, or the seed is negative.
    """

    by_sub_batch = False

    def __init__(self, table: PairTable, seed: int) -> None:
        self.seed = as_integer("seed", seed, minimum=0)
        known = table.ratios
        # The order of the table's rows must not count.
        pairs = sorted(pair for pair in known if pair[::-1] in known)
        if not pairs:
            raise InvalidInput("table", f"{len(known)} ratios", "has no pair with both ratios")
        self.pairs = [(known[first, second], known[second, first]) for first, second in pairs]
        self._drawn: dict[tuple[str, str], tuple[float, float]] = {}

    def ratio(self, mine: Running, others: Sequence[Running]) -> float:
        """Return the largest ratio of the job's model beside each of the others."""
        return max(self._pair_ratio(mine.model, other.model) for other in others)

    def _pair_ratio(self, mine: str, other: str) -> float:
        names = (mine, other) if mine <= other else (other, mine)
        if names not in self._drawn:
            # A generator's stream would depend on the order of the draws.
            digest = sha256("\0".join((str(self.seed), *names)).encode()).digest()
            self._drawn[names] = self.pairs[int.from_bytes(digest) % len(self.pairs)]
        return self._drawn[names][mine != names[0]]


def find_interference(text: str, seed: int = 0) -> Interference:
    """Return the interference that an option states: a number, a file of pairs, or "drawn:" and such a file.

    Parameters
    ----------
    text : str
        Ratio of at least 1 for all jobs; or path of a CSV file for `PairTable.read`, and ",default=" with a ratio for
        the pairs that it lacks if there are any; or "drawn:" and such a path, for `DrawnInterference`.
    seed : int
        Seed of the draws.

    Raises
    ------
    InvalidInput
        If the text is none of these, or the file is malformed.
    """
    try:
        return ConstantInterference(float(text))
    except InvalidInput:
        raise
    except ValueError:  # not a number, hence a file
        pass
    if text.startswith("drawn:"):
        return DrawnInterference(PairTable.read(_existing(text, text.removeprefix("drawn:"))), seed)
    name, _, written = (text, "", "") if Path(text).is_file() else text.partition(",default=")
    path = _existing(text, name)
    try:
        default = float(written) if written else None
    except ValueError:
        raise InvalidInput("default", written, "must be a ratio of at least 1") from None
    return PairTable.read(path, default=default)


def _existing(text: str, name: str) -> Path:
    """Return the path of a file, or raise InvalidInput with the text of the option."""
    if not Path(name).is_file():
        raise InvalidInput("interference", text, "must be a number of at least 1, a file of pairs, or drawn:FILE")
    return Path(name)


def _store(ratios: dict[tuple[str, str], float], pair: tuple[str, str], column: str, row: Row) -> None:
    ratio = row.real(column, minimum=1.0)
    if ratios.setdefault(pair, ratio) != ratio:
        why = f"another ratio of {pair[0]} beside {pair[1]} than above, {ratios[pair]:g} ({row.location})"
        raise InvalidInput(column, ratio, why)
