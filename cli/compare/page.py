"""The page of `equipoise compare`: bars, table, schedules side by side, distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulations.plotting.svg import escape
from ...formulations.text import duration_text
from ..simulate.page import command, figure, fill, lead, number
from ..simulate.run import FinishedRun
from ..simulate.summary import solves_text
from .comparison import table_rows

if TYPE_CHECKING:
    from .comparison import Comparison


def render(comparison: Comparison) -> str:
    """Return the page of what is finished so far as text; it needs neither a network nor a script."""
    from ...simulation.results.plots import ftf_cdf, jct_cdf, relative_bars

    finished, config = comparison.finished, comparison.config
    results = {label: each.result for label, each in finished.items()}
    until_s = max(float(each.result.metrics["makespan_s"]) for each in finished.values())
    missing = [spec.label for spec in comparison.specs if spec.label not in finished]
    body = []
    if missing:
        body.append(f'<p class="warn">{escape(_missing(comparison, missing))}</p>')
    body += [
        f'<div class="pictures">{figure(relative_bars(results, comparison.base), head=_base(comparison), wide=True)}'
        "</div>",
        f"<h2>Figures</h2>\n{_table(comparison)}",
        f'<h2>Schedules</h2>\n<p class="lead">Time runs to the right, one row is one GPU, and a job has one colour in '
        f'all of them. All end at {escape(duration_text(until_s))}.</p>\n<div class="pictures">',
        *(_card(label, each, until_s) for label, each in finished.items()),
        f'</div>\n<h2>Distributions</h2>\n<div class="pictures">{figure(jct_cdf(results))}{figure(ftf_cdf(results))}'
        "</div>",
    ]
    names = ",".join(spec.label for spec in comparison.specs)
    title = f"{len(finished)} {'policy' if len(finished) == 1 else 'policies'} on {config.total_gpus:,} GPUs"
    return fill(title, lead(config), body, command("compare", config, ["--policies", names]))


def _missing(comparison: Comparison, missing: list[str]) -> str:
    failed = [label for label in missing if label in comparison.failed]
    waiting = [label for label in missing if label not in comparison.failed]
    parts = [f"not finished: {', '.join(waiting)}"] if waiting else []
    parts += [f"failed: {label} ({comparison.failed[label]})" for label in failed]
    return "; ".join(parts).capitalize() + "."


def _base(comparison: Comparison) -> str:
    base = escape(comparison.base)
    return f"<p>Relative to {base}, which is 1 (where {base} has 0, the figures themselves); less is better.</p>"


def _table(comparison: Comparison) -> str:
    titles = [headline.title for headline in comparison.config.engine.headlines]
    heads = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    rows = []
    for label, cells in table_rows(comparison).items():
        inside = "".join(f"<td{' class=best' if best else ''}>{escape(text)}</td>" for text, best in cells)
        rows.append(f"<tr><td>{escape(label)}</td>{inside}</tr>")
    head = f'<thead><tr><th scope="col">policy</th>{heads}</tr></thead>'
    return f'<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _card(label: str, finished: FinishedRun, until_s: float) -> str:
    from ...simulation.results.plots import schedule_picture, utilisation_picture

    result = finished.result
    metrics = result.metrics
    figures = (
        f"makespan {duration_text(metrics['makespan_s'])}, average JCT {duration_text(metrics['avg_jct_s'])}, "
        f"worst FTF {number(metrics['worst_ftf'], 2)}, unfair {metrics['unfair_pct']:.1f}%; "
        f"{solves_text(metrics, result.solves)}"
    )
    head = f"<h3>{escape(label)}</h3><p>{escape(figures)}</p>"
    return figure(schedule_picture(result, until_s=until_s) + utilisation_picture(result, until_s=until_s), head=head)
