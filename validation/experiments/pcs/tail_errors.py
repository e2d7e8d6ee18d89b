"""Figure 8: tail errors of predictions on workload-3, whose mean errors are small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..claims import at_least, at_most
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .paper import cluster_gpus
from .run import BASELINES, PICKS, Figures, mean, ratios, rows_of, spread_columns, tuned_and_held_out

#: The picks have at most so many times the mean JCT of AFS.
TIMES = 1.1
_OBJECTIVES = ("jct:avg", "pred_error:p99")


def figure_8(settings: ExperimentSettings) -> ExperimentOutcome:
    """Search for short JCT and small p99 errors on jobs at 4 per hour; run the picks on these jobs and on others."""
    gpus = cluster_gpus(settings)
    case, seen, unseen, curves = tuned_and_held_out(
        settings, "continuous", gpus=gpus, times=TIMES, objectives=_OBJECTIVES, error="p99_error_pct"
    )
    rows: list[dict[str, Any]] = []
    for name in (*BASELINES, *PICKS):
        row: dict[str, Any] = {"policy": name, "jct h": mean(seen, name, "jct_s") / 3600.0}
        row |= spread_columns("jct / afs", ratios(seen, name))
        row |= spread_columns("error %", [each[name].error_pct for each in seen])
        row |= spread_columns("p99 error %", [each[name].p99_error_pct for each in seen])
        row |= spread_columns("other jobs: jct / afs", ratios(unseen, name))
        rows.append(row | spread_columns("other jobs: p99 error %", [each[name].p99_error_pct for each in unseen]))
    plot = Curves(
        title=f"Figure 8b: the front of seed {settings.seed}", x_axis="p99 prediction error in percent",
        y_axis="mean JCT over that of AFS", curves=curves,
    )  # fmt: skip
    return ExperimentOutcome(rows=rows_of(case, rows), claims=tail_claims(seen), plots=(plot,))


def tail_claims(seen: Sequence[Mapping[str, Figures]]) -> tuple[PaperClaim, ...]:
    """Check the claims of Figure 8."""
    fast = ("afs", "srsf", "themis", "pcs-jct")
    return (
        at_most(
            "mean errors are small under AFS, Tiresias, Themis and PCS-JCT: at most 20% (Figure 8a)",
            {name: mean(seen, name, "error_pct") for name in fast},
            20.0,
            unit="%",
        ),
        at_least(
            "the p99 error of AFS is 300% or nearly so (at least 250%)",
            {"afs": mean(seen, "afs", "p99_error_pct")},
            250.0,
            unit="%",
            printed="300%",
        ),
        at_most(
            "PCS-pred has a p99 error of at most 100% (Figure 8b)",
            {"pcs-pred": mean(seen, "pcs-pred", "p99_error_pct")},
            100.0,
            unit="%",
            printed="100%",
        ),
        at_most(
            "at a mean JCT within 1.1 times that of AFS",
            {"pcs-pred": sum(ratios(seen, "pcs-pred")) / len(seen)},
            TIMES,
            printed="1.1",
        ),
    )
