"""Throughput profiles: training rates by model, batch size and GPU count, and rules of batch-size adaptation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from .builtin import builtin_columns
from .files import profile_columns
from .rules import MODES, CriticalEpochs, Runs, extend_runs

Use = Literal["profile", "runtime"]


@dataclass(frozen=True, kw_only=True)
class Profiles:
    """Throughputs and adaptation rules of models that train alone on their gangs.

    Parameters
    ----------
    name : str
        Name of the cluster or of the origin, for messages.
    rates : mapping of (str, int, int) to float
        Steps per second at (model, batch size, GPUs), positive. A step of g GPUs counts as g steps, each of one
        batch, as in Gavel's throughput tables.
    dataset_sizes : mapping of str to int
        Samples per epoch of each model.
    max_batch_sizes : mapping of str to int
        Largest batch size of each model that adapts; a model without an entry does not adapt.
    accordion : mapping of (str, int or None, str) to tuple of CriticalEpochs
        Critical epochs of (model, initial batch size, use). None stands for every size without rules of its own.
        `use` is "profile" (the whole trajectory in advance) or "runtime" (the test that a running job applies).
    gns : mapping of (str, int, int) to tuple of (int, int)
        (First epoch, batch size) segments at (model, initial batch size, GPUs); the first starts at epoch 0.
    accordion_share : float
        Accordion's trajectory stays at the initial size up to this share of all epochs, within [0, 1].
    gns_last_epoch_returns : bool
        The released code's trajectories run the last epoch at the initial size if it lies in the second or a later
        enlarged segment. True for files in its format, which reproduces their durations; the paper has no such rule.

    Raises
    ------
    InvalidInput
        If a rate, size or rule is out of range.

    Notes
    -----
    One epoch takes (samples / batch size) / rate seconds, without rounding up to whole steps, as the
    released traces count their exclusive durations. Steps per epoch are rounded up.
    """

    name: str
    rates: Mapping[tuple[str, int, int], float]
    dataset_sizes: Mapping[str, int]
    max_batch_sizes: Mapping[str, int]
    accordion: Mapping[tuple[str, int | None, str], tuple[CriticalEpochs, ...]] = field(default_factory=dict)
    gns: Mapping[tuple[str, int, int], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    accordion_share: float = 0.3
    gns_last_epoch_returns: bool = False

    def __post_init__(self) -> None:
        for key, rate in self.rates.items():
            as_real(f"rates[{key}]", rate, above=0.0)
            if key[0] not in self.dataset_sizes:
                raise InvalidInput("dataset_sizes", key[0], "the model has rates and no data set size")
        for name in ("dataset_sizes", "max_batch_sizes"):
            for model, size in getattr(self, name).items():
                as_integer(f"{name}[{model}]", size, minimum=1)
        for rule, stretches in self.accordion.items():
            for stretch in stretches:
                if not 0 <= stretch.first <= stretch.last:
                    raise InvalidInput(f"accordion[{rule}]", stretch, "needs 0 <= first <= last")
                if stretch.period is not None and stretch.period <= stretch.last - stretch.first:
                    raise InvalidInput(f"accordion[{rule}]", stretch, "its period must be longer than the stretch")
        for key, segments in self.gns.items():
            starts = [first for first, _ in segments]
            if starts[:1] != [0] or segments[0][1] != key[1] or starts != sorted(set(starts)):
                why = "segments must start at epoch 0 with the initial batch size and follow each other"
                raise InvalidInput(f"gns[{key}]", segments, why)
        as_real("accordion_share", self.accordion_share, minimum=0.0, maximum=1.0)
        for name in ("rates", "dataset_sizes", "max_batch_sizes", "accordion", "gns"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @staticmethod
    def read(folder: str | Path, cluster: str = "tacc") -> Profiles:
        """Read throughputs.csv, models.csv, accordion_rules.csv and gns_rules.csv; see `profile_columns`."""
        return Profiles(**profile_columns(folder, cluster))

    @staticmethod
    def builtin() -> Profiles:
        """Return the built-in profiles; see `profiles.builtin.builtin_columns`."""
        return Profiles(**builtin_columns())

    @property
    def models(self) -> tuple[str, ...]:
        """Models that have a rate, sorted."""
        return tuple(sorted({model for model, _, _ in self.rates}))

    def configurations(self, gpus: int) -> tuple[tuple[str, int], ...]:
        """Return every (model, batch size) that has a rate on this many GPUs, sorted."""
        return tuple(sorted((model, size) for model, size, count in self.rates if count == gpus))

    def steps_per_s(self, model: str, batch_size: int, gpus: int) -> float:
        """Return the rate, or raise InvalidInput with the configurations that have one."""
        rate = self.rates.get((model, int(batch_size), int(gpus)))
        if rate is not None:
            return rate
        if model not in self.dataset_sizes or model not in self.models:
            known = ", ".join(self.models)
            raise InvalidInput("model", model, f"no throughput in profiles '{self.name}', which have {known}")
        known = ", ".join(f"({size}, {count})" for name, size, count in sorted(self.rates) if name == model)
        why = f"no throughput of {model} at this (batch size, GPUs) in profiles '{self.name}', which have {known}"
        raise InvalidInput("batch_size, gang_gpus", (int(batch_size), int(gpus)), why)

    def epoch_s(self, model: str, batch_size: int, gpus: int) -> float:
        """Return the seconds of one epoch on the whole gang."""
        rate = self.steps_per_s(model, batch_size, gpus)
        return self.dataset_sizes[model] / int(batch_size) / rate

    def steps_per_epoch(self, model: str, batch_size: int) -> int:
        """Return the steps of one epoch; the last step may be smaller."""
        if model not in self.dataset_sizes:
            known = ", ".join(sorted(self.dataset_sizes))
            raise InvalidInput("model", model, f"no data set size in profiles '{self.name}', which have {known}")
        return -(-self.dataset_sizes[model] // int(batch_size))

    def total_epochs(self, model: str, batch_size: int, total_steps: int) -> int:
        """Return the epochs of this many steps at this batch size; the last epoch may be incomplete."""
        return -(-int(total_steps) // self.steps_per_epoch(model, batch_size))

    def batch_sizes(self, model: str, batch_size: int, gpus: int, mode: str) -> tuple[int, ...]:
        """Return the batch sizes that the job may have, ascending: the initial one and those that its mode reaches."""
        sizes = {int(batch_size)}
        if self._adapts(model, batch_size, mode):
            if mode == "accordion":
                sizes.add(self.max_batch_sizes[model])
            else:
                sizes.update(size for _, size in self.gns.get((model, int(batch_size), int(gpus)), ()))
        return tuple(sorted(sizes))

    def critical_epochs(
        self, model: str, batch_size: int, total_epochs: int, use: Use = "profile"
    ) -> tuple[tuple[int, int], ...]:
        """Return the critical stretches within the job's epochs as (first, one past the last), disjoint, in order."""
        if use not in ("profile", "runtime"):
            raise InvalidInput("use", use, "must be profile or runtime")
        rules = self.accordion.get((model, int(batch_size), use), self.accordion.get((model, None, use), ()))
        stretches = []
        for rule in rules:
            step = rule.period or total_epochs
            stretches += [
                (first, min(first + rule.last - rule.first + 1, total_epochs))
                for first in range(rule.first, total_epochs, step)
            ]
        merged: list[tuple[int, int]] = []
        for first, end in sorted(stretches):
            if merged and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((first, end))
        return tuple(merged)

    def schedule(self, model: str, batch_size: int, gpus: int, mode: str, total_epochs: int) -> Runs:
        """Return the (batch size, epochs) stretches of a job's whole training.

        Static jobs keep their size. Accordion uses the initial size in critical epochs and in the first
        `accordion_share` of all, the largest otherwise. GNS follows its segments and never returns (but see
        `gns_last_epoch_returns`). A model without a largest size, or a job that starts at it, keeps its size.
        """
        initial = as_integer("batch_size", batch_size, minimum=1)
        total = as_integer("total_epochs", total_epochs, minimum=1)
        if mode not in MODES:
            raise InvalidInput("mode", mode, f"must be one of {', '.join(MODES)}")
        if not self._adapts(model, initial, mode):
            return ((initial, total),)
        if mode == "accordion":
            return self._accordion_schedule(model, initial, total)
        return self._gns_schedule(model, initial, int(gpus), total)

    def _adapts(self, model: str, batch_size: int, mode: str) -> bool:
        return mode != "static" and int(batch_size) < self.max_batch_sizes.get(model, 0)

    def _accordion_schedule(self, model: str, initial: int, total: int) -> Runs:
        largest = self.max_batch_sizes[model]
        free_from = 0  # the first epoch e with e > share x total, by the same float product as the released code
        if self.accordion_share > 0.0:
            free_from = min(int(self.accordion_share * total) + 1, total)
        critical = [(0, free_from), *self.critical_epochs(model, initial, total)]
        runs: list[tuple[int, int]] = []
        done = 0
        for first, end in sorted(critical):
            extend_runs(runs, largest, first - done)
            done = max(done, first)
            extend_runs(runs, initial, end - done)
            done = max(done, end)
        extend_runs(runs, largest, total - done)
        return tuple(runs)

    def _gns_schedule(self, model: str, initial: int, gpus: int, total: int) -> Runs:
        segments = self.gns.get((model, initial, gpus), ((0, initial),))
        ends = [first for first, _ in segments[1:]] + [total]
        runs: list[tuple[int, int]] = []
        for (first, size), end in zip(segments, ends, strict=True):
            extend_runs(runs, size, min(end, total) - first)
        if self.gns_last_epoch_returns and len(runs) > 2:
            size, epochs = runs.pop()
            extend_runs(runs, size, epochs - 1)
            extend_runs(runs, initial, 1)
        return tuple(runs)
