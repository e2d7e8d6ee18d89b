"""FrontPoint: one configuration of a front, with its scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class FrontPoint:
    """One point of a front.

    Attributes
    ----------
    index : int
        Its place on the front.
    vector : mapping of str to float
        Values by variable.
    scores : mapping of str to float
        Scores by objective, on the workloads of the search.
    held_out : mapping of str to float
        Scores on workloads that the search has not seen; empty if there are none.
    configuration : object
        The decoded configuration, `WfqConfig` for instance.
    """

    index: int
    vector: Mapping[str, float]
    scores: Mapping[str, float]
    held_out: Mapping[str, float]
    configuration: Any

    def to_json(self) -> str:
        """Return the configuration as the text of a file: its own `to_json()`, or JSON of a mapping."""
        if isinstance(self.configuration, Mapping):
            return json.dumps(dict(self.configuration), indent=1) + "\n"
        return str(self.configuration.to_json())
