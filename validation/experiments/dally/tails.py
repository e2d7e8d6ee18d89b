"""Figures 8 and 13, Tables II and III: percentiles of queueing, communication and completion times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..claims import at_least, below
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars
from .paper import COMMUNICATION_BELOW_PCT, GANDIVA_BELOW_PCT, JCT_BELOW_PCT, POLICIES, TABLES, shown
from .run import ARRIVALS, DAY_S, Grid, grid, label

_QUEUEING = ("avg waited", "p95 waited", "p99 waited")
_COMMUNICATION = ("avg exposed", "p95 exposed", "p99 exposed")
_JCT = ("avg jct", "median jct", "p95 jct", "p99 jct")
# Racks of the tables for which we have the printed numbers.
_PRINTED_RACKS = 8


def figure_8(settings: ExperimentSettings) -> ExperimentOutcome:
    """Compare queueing times and exposed communication of the slowest jobs."""
    found = grid(settings)
    plots = tuple(_bars(found, f"Figure 8: {figure}, {kind}", figure, kind)
                  for kind in ARRIVALS for figure in (*_QUEUEING[1:], *_COMMUNICATION[1:]))  # fmt: skip
    return ExperimentOutcome(rows=_rows(found, (*_QUEUEING, *_COMMUNICATION)), claims=tail_claims(found), plots=plots)


def figure_13(settings: ExperimentSettings) -> ExperimentOutcome:
    """Compare completion times."""
    found = grid(settings)
    plots = tuple(_bars(found, f"Figure 13: {figure}, {kind}", figure, kind) for kind in ARRIVALS for figure in _JCT)
    rows = [{**row, **_printed(row)} for row in _rows(found, _JCT)]
    return ExperimentOutcome(rows=rows, claims=jct_claims(found), plots=plots)


def _rows(found: Grid, figures: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "arrivals": cluster[0],
            "racks": cluster[1],
            "policy": policy,
            **{f"{figure} d": found.mean(figure, cluster, policy) for figure in figures},
        }
        for cluster in found.cases
        for policy in POLICIES
    ]


def _printed(row: Mapping[str, Any]) -> dict[str, float | None]:
    printed = TABLES[row["arrivals"]].get(row["policy"]) if row["racks"] == _PRINTED_RACKS else None
    return {
        "printed avg d": None if printed is None else printed.avg_jct_s / DAY_S,
        "printed p99 d": None if printed is None else printed.p99_jct_s / DAY_S,
    }


def _bars(found: Grid, title: str, figure: str, kind: str) -> Bars:
    clusters = [cluster for cluster in found.cases if cluster[0] == kind]
    series = {policy: [found.mean(figure, cluster, policy) for cluster in clusters] for policy in POLICIES}
    return Bars(title=title, y_axis="days", groups=[f"{racks} racks" for _, racks in clusters], series=series)


def tail_claims(found: Grid) -> tuple[PaperClaim, ...]:
    """Check the claims on queueing and communication, on average over the seeds."""
    least, most = COMMUNICATION_BELOW_PCT
    return (
        *(
            below(f"the {figure[:3]} of communication under Dally is below that under {shown(name)}",
                  found.pairs(figure, "dally", name), unit=" d")
            for figure in _COMMUNICATION[1:]
            for name in ("tiresias", "gandiva")
        ),
        at_least(
            f"communication under Dally is below that under Tiresias by at least {least:g}%",
            found.below_pct("avg exposed", "dally", "tiresias"),
            least,
            unit="%",
            printed=f"{least:g} to {most:g}%",
        ),
        *(
            below(f"the {figure[:3]} of queueing under Dally is below that under Tiresias",
                  found.pairs(figure, "dally", "tiresias"), unit=" d")
            for figure in _QUEUEING[1:]
        ),
        *(
            below(f"communication under {shown(name)} is above that under Dally, on average",
                  found.pairs("avg exposed", "dally", name), unit=" d")
            for name in ("dally-nowait", "gandiva")
        ),
    )  # fmt: skip


def jct_claims(found: Grid) -> tuple[PaperClaim, ...]:
    """Check the claims on completion times, and the paper's exceptions, on average over the seeds."""
    exceptions = {("batch", 2): "gandiva", ("poisson", 4): "tiresias"}
    usual = {
        name: [cluster for cluster in found.cases if exceptions.get(cluster) != name]
        for name in ("tiresias", "gandiva")
    }
    least, most = JCT_BELOW_PCT
    reductions = found.below_pct("avg jct", "dally", "tiresias")
    exceptional = [cluster for cluster in exceptions if cluster in found.cases]
    large = [cluster for cluster in found.cases if cluster[1] == _PRINTED_RACKS]
    return (
        *(
            below(
                f"the average JCT of Dally is below that of {shown(name)}, but for the exception in print",
                found.pairs("avg jct", "dally", name, where=where),
                unit=" d",
            )
            for name, where in usual.items()
        ),
        at_least(
            f"where Dally's average JCT is below that of Tiresias by most, it is by at least {least:g}%",
            {max(reductions, key=reductions.__getitem__): max(reductions.values())},
            least,
            unit="%",
            printed=f"{least:g} to {most:g}%",
        ),
        *(
            below(
                f"the exception in print: on {label(cluster)} racks the average JCT of {shown(exceptions[cluster])} is "
                "below that of Dally",
                found.pairs("avg jct", exceptions[cluster], "dally", where=[cluster]),
                unit=" d",
                printed=f"by {GANDIVA_BELOW_PCT:g}%" if exceptions[cluster] == "gandiva" else "",
            )
            for cluster in exceptional
        ),
        *(
            below(
                f"the {figure} of Dally is below that of {shown(name)} on 8 racks (Tables II and III)",
                found.pairs(figure, "dally", name, where=large),
                unit=" d",
                printed=_ratios(figure, name),
            )
            for figure in ("avg jct", "p99 jct")
            for name in ("dally-manual", "gandiva")
            if large
        ),
    )


def _ratios(figure: str, name: str) -> str:
    """Return the printed ratios of the two policies, by arrivals."""
    place = 0 if figure.startswith("avg") else 1
    return ", ".join(f"{kind} {rows['dally'][place] / rows[name][place]:.2f} times" for kind, rows in TABLES.items())
