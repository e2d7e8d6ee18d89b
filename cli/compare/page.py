"""The page of `equipoise compare`: bars, table, schedules side by side, distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulations.plotting import html
from ...formulations.text import duration_text
from ..simulate.page import command, lead, number
from ..simulate.run import FinishedRun
from ..simulate.summary import solves_text
from .comparison import table_rows

if TYPE_CHECKING:
    from .comparison import Comparison


def render(comparison: Comparison) -> str:
    """Return the page of what is finished so far as text; it needs neither a network nor a script."""
    from ...simulation.results.plots import ftf_cdf, jct_cdf, jobs_left_picture, relative_bars, utilisation_picture

    finished, config = comparison.finished, comparison.config
    results = {label: each.result for label, each in finished.items()}
    until_s = max(float(each.result.metrics["makespan_s"]) for each in finished.values())
    names = ",".join(spec.label for spec in comparison.specs)
    return html.render(
        "cli/compare/page.html",
        title=f"{len(finished)} {'policy' if len(finished) == 1 else 'policies'} on {config.total_gpus:,} GPUs",
        lead=lead(config),
        missing=_missing(comparison),
        base=comparison.base,
        bars=html.picture(relative_bars(results, comparison.base)),
        figures=_table(comparison),
        until=duration_text(until_s),
        cards=[_card(label, each, until_s) for label, each in finished.items()],
        use=html.picture(utilisation_picture(results, until_s=until_s)),
        left=html.picture(jobs_left_picture(results, until_s=until_s)),
        completion=html.picture(jct_cdf(results)),
        fairness=html.picture(ftf_cdf(results)),
        command=command("compare", config, ["--policies", names]),
    )


def _missing(comparison: Comparison) -> str:
    """Return which policies failed or are not finished; empty if none."""
    missing = [spec.label for spec in comparison.specs if spec.label not in comparison.finished]
    failed = [label for label in missing if label in comparison.failed]
    waiting = [label for label in missing if label not in comparison.failed]
    parts = [f"not finished: {', '.join(waiting)}"] if waiting else []
    parts += [f"failed: {label} ({comparison.failed[label]})" for label in failed]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _table(comparison: Comparison) -> dict[str, Any]:
    titles = [headline.title for headline in comparison.headlines]
    rows = [
        [label, *((text, "good") if best else text for text, best in cells)]
        for label, cells in table_rows(comparison).items()
    ]
    return {"heads": ["policy", *titles], "rows": rows}


def _card(label: str, finished: FinishedRun, until_s: float) -> dict[str, Any]:
    from ...simulation.results.plots import schedule_picture, utilisation_picture

    result = finished.result
    metrics = result.metrics
    figures = (
        f"makespan {duration_text(metrics['makespan_s'])}, average JCT {duration_text(metrics['avg_jct_s'])}, "
        f"worst FTF {number(metrics['worst_ftf'], 2)}, unfair {metrics['unfair_pct']:.1f}%; "
        f"{solves_text(metrics, result.solves)}"
    )
    pictures = schedule_picture(result, until_s=until_s) + utilisation_picture(result, until_s=until_s)
    return {"name": label, "figures": figures, "pictures": html.picture(pictures)}
