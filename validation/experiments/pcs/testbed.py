"""Figures 4 to 6: errors of predictions, JCT and unfairness on AutoML jobs and 16 GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..claims import at_most, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars, Curves
from .paper import TESTBED_GPUS
from .run import BASELINES, PICKS, Figures, mean, ratios, rows_of, spread_columns, tuned_and_held_out

#: The picks have at most so many times the mean JCT of AFS, as the paper says of PCS.
TIMES = 1.1
_OBJECTIVES = ("jct:avg", "pred_error:avg")


def figures_4_to_6(settings: ExperimentSettings) -> ExperimentOutcome:
    """Run the baselines and the three picks on the jobs of the search, and on others of the same kind."""
    gpus = TESTBED_GPUS if settings.gpus is None else settings.gpus
    case, seen, unseen, curves = tuned_and_held_out(
        settings, "automl", gpus=gpus, times=TIMES, objectives=_OBJECTIVES, error="error_pct"
    )
    rows = [_row(name, seen, unseen) for name in (*BASELINES, *PICKS)]
    errors = {name: [mean(seen, name, f"{part}error_pct") for part in ("", "p90_")] for name in (*BASELINES, *PICKS)}
    plots = (
        Bars(title="Figures 4 and 5b: prediction error", y_axis="percent", groups=("mean", "p90"), series=errors),
        Curves(
            title=f"Figure 6b: the front of seed {settings.seed}", x_axis="mean prediction error in percent",
            y_axis="mean JCT over that of AFS", curves=curves,
        ),
    )  # fmt: skip
    return ExperimentOutcome(rows=rows_of(case, rows), claims=testbed_claims(seen, unseen), plots=plots)


def testbed_claims(
    seen: Sequence[Mapping[str, Figures]], unseen: Sequence[Mapping[str, Figures]]
) -> tuple[PaperClaim, ...]:
    """Check the claims of Figures 4 to 6 on runs with the jobs of the search, and on runs with other jobs."""

    def jct(found: Sequence[Mapping[str, Figures]], which: str) -> dict[str, float]:
        parts = {"mean": ratios(found, "pcs-jct"), "p90": ratios(found, "pcs-jct", "p90_jct_s")}
        return {f"{which} {part}": sum(values) / len(values) for part, values in parts.items()}

    def errors(rivals: Sequence[str], figure: str, names: Sequence[str]) -> dict[str, tuple[float, float]]:
        least = min(mean(seen, rival, figure) for rival in rivals)
        return {name: (mean(seen, name, figure), least) for name in names}

    return (
        below(
            "the p90 error of every pick is below that of AFS, Tiresias and Themis (Figure 4)",
            errors(("afs", "srsf", "themis"), "p90_error_pct", PICKS),
            unit="%",
        ),
        at_most(
            "the mean and the p90 of PCS-JCT's JCT are within 1.1 times those of AFS (Figure 5a)",
            jct(seen, "tuned") | jct(unseen, "other jobs"),
            TIMES,
            printed="1.1 at p90",
        ),
        below(
            "the mean error of PCS-JCT is below that of AFS and Tiresias (Figure 5b)",
            errors(("afs", "srsf"), "error_pct", ("pcs-jct",)),
            unit="%",
        ),
        at_most(
            "under the picks no job is more than 100% unfair (Figure 6a)",
            {name: mean(seen, name, "most_unfair_pct") for name in PICKS},
            100.0,
            unit="%",
            printed="100%",
        ),
        at_most(
            "under the picks nine jobs of ten are at most 100% unfair",
            {name: mean(seen, name, "p90_unfair_pct") for name in PICKS},
            100.0,
            unit="%",
        ),
    )


def _row(name: str, seen: Sequence[Mapping[str, Figures]], unseen: Sequence[Mapping[str, Figures]]) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": name, "jct h": mean(seen, name, "jct_s") / 3600.0}
    row |= spread_columns("jct / afs", ratios(seen, name))
    row |= spread_columns("p90 jct / afs", ratios(seen, name, "p90_jct_s"))
    row |= spread_columns("error %", [each[name].error_pct for each in seen])
    row |= spread_columns("p90 error %", [each[name].p90_error_pct for each in seen])
    figures = ("p99_error_pct", "unfair_pct", "p90_unfair_pct", "most_unfair_pct")
    row |= {figure.replace("_pct", " %").replace("_", " "): mean(seen, name, figure) for figure in figures}
    row |= spread_columns("other jobs: jct / afs", ratios(unseen, name))
    return row | spread_columns("other jobs: error %", [each[name].error_pct for each in unseen])
