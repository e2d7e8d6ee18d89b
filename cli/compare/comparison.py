"""The outcomes of several policies on one configuration, as a document and as the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ...formulations.errors import EquipoiseError
from ...simulation.engines import Headline
from ..json_text import json_value
from ..simulate.config import SimulationConfig
from ..simulate.policy_spec import REFERENCE, PolicySpec
from ..simulate.run import FinishedRun, document

#: The finished run of a policy, or the error that ended it.
Outcome = FinishedRun | EquipoiseError


@dataclass(frozen=True)
class Comparison:
    """The policies asked for, and the outcomes so far by the label of the policy, in order of completion."""

    config: SimulationConfig
    specs: Sequence[PolicySpec]
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    def with_outcome(self, spec: PolicySpec, outcome: Outcome) -> Comparison:
        """Return the comparison with the outcome of one more policy."""
        return replace(self, outcomes={**self.outcomes, spec.label: outcome})

    @cached_property
    def finished(self) -> dict[str, FinishedRun]:
        """The finished runs by label, in the order asked for."""
        found = {spec.label: self.outcomes.get(spec.label) for spec in self.specs}
        return {label: outcome for label, outcome in found.items() if isinstance(outcome, FinishedRun)}

    @cached_property
    def failed(self) -> dict[str, EquipoiseError]:
        """The errors of the policies that failed, by label."""
        return {label: outcome for label, outcome in self.outcomes.items() if isinstance(outcome, EquipoiseError)}

    @property
    def headlines(self) -> list[Headline]:
        """The columns whose metrics the finished runs have."""
        metrics = [run.result.metrics for run in self.finished.values()]
        return [
            each
            for each in self.config.engine.headlines
            if any(each.metric in some and (each.zeros or some[each.metric]) for some in metrics)
        ]

    @property
    def base(self) -> str:
        """The label that the others are compared with: the first Shockwave that finished, else the first policy."""
        own = [label for label, run in self.finished.items() if run.spec.name == REFERENCE]
        return next(iter(own or self.finished))

    def document(self) -> dict[str, Any]:
        """Return one object: the configuration, and the metrics of each finished policy."""
        from ... import __version__

        metadata = self.config.metadata()
        common = {"format", "version", *metadata}
        rows = [
            {key: value for key, value in document(self.config, run).items() if key not in common}
            for run in self.finished.values()
        ]
        return {
            "format": "equipoise.comparison/1",
            "version": __version__,
            **metadata,
            "relative_to": self.base if rows else None,
            "asked": [spec.label for spec in self.specs],
            "failed": {label: str(error) for label, error in self.failed.items()},
            "policies": rows,
        }


def table_rows(comparison: Comparison) -> dict[str, list[tuple[str, bool]]]:
    """Return for each policy its cells as (text, whether it is the column's best)."""
    finished = comparison.finished
    rows: dict[str, list[tuple[str, bool]]] = {label: [] for label in finished}
    for headline in comparison.headlines:
        values = {label: json_value(float(run.result.metrics[headline.metric])) for label, run in finished.items()}
        known = [value for value in values.values() if value is not None]
        best = (min if headline.less_is_better else max)(known, default=None)
        base = values[comparison.base]
        for label, value in values.items():
            text = "-" if value is None else headline.form.format(value)
            if value is not None and base and headline.relative:
                text += f" ({value / base:.2f})"
            rows[label].append((text, value is not None and value == best and headline.less_is_better is not None))
    return rows
