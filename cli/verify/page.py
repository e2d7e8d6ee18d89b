"""The page of `equipoise verify`: the verdict on every statement, with its proof or its witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...formulations.plotting import html
from .summary import HEADINGS, summary

if TYPE_CHECKING:
    from ...validation.statements.verify import Verdict

#: An introduction under each heading.
LEADS = {
    "theorems": "Each step is closed by a computer algebra system. Statements against a paper are counterexamples.",
    "market": "Random markets of five kinds are solved, and each answer judged from allocation and prices alone.",
    "stochastic": "Small markets of Markov chains, solved over all jobs together and job by job, then sampled.",
    "gpu-sharing": "Random pairs and groups of jobs, against simulations of many delays. The sign test is the paper's.",
    "window": "Random windows small enough to enumerate every schedule. Statements marked reported are not promised.",
}
_CLASSES = {
    "proved": "good",
    "held": "good",
    "reported": "notice",
    "not checked": "notice",
    "skipped": "notice",
    "fails": "bad",
}
_MARKS = {"proved": "\N{CHECK MARK}", "held": "\N{CHECK MARK}", "reported": "\N{BLACK CIRCLE}",
          "not checked": "\N{EN DASH}", "skipped": "\N{EN DASH}", "fails": "\N{MULTIPLICATION X}"}  # fmt: skip


def render(verdicts: Sequence[Verdict], command: str) -> str:
    """Return the page as text, which needs neither a network nor a library; `command` repeats the run."""
    failing = [verdict for verdict in verdicts if verdict.fails]
    complete = all(verdict.verdict != "not checked" for verdict in verdicts)
    title = "Everything promised holds" if complete else "Everything promised that was checked holds"
    if failing:
        title = f"{len(failing)} of {len(verdicts)} statements fail"
    return html.render(
        "cli/verify/page.html",
        title=title,
        state="bad" if failing else "good",
        lead=summary(verdicts),
        subjects=[_subject(name, verdicts) for name in dict.fromkeys(verdict.subject for verdict in verdicts)],
        command=command,
    )


def _subject(name: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return what the page shows of one subject: the figures of its tile, and its rows."""
    own = [verdict for verdict in verdicts if verdict.subject == name]
    promised = [verdict for verdict in own if verdict.verdict in ("proved", "held", "fails")]
    good = sum(not verdict.fails for verdict in promised)
    others = {kind: sum(verdict.verdict == kind for verdict in own) for kind in ("reported", "not checked", "skipped")}
    return {
        "name": name,
        "heading": HEADINGS[name],
        "lead": LEADS[name],
        "state": "good" if good == len(promised) else "bad",
        "good": good,
        "promised": len(promised),
        "others": ", ".join(f"{count} more {kind}" for kind, count in others.items() if count)
        or "nothing only reported",
        "rows": [_row(verdict) for verdict in own],
    }


def _row(verdict: Verdict) -> dict[str, str]:
    more, text = "", ""
    if verdict.steps:
        steps = sum(line[:3].strip().isdigit() for line in verdict.steps)  # a step begins with its number
        more, text = f"the proof, {steps} steps", "\n".join(verdict.steps)
    elif verdict.witness:
        more = "where it does not hold" if verdict.examples else "why"
        text = "\n".join(filter(None, [verdict.witness, verdict.problem]))
    return {
        "state": _CLASSES[verdict.verdict],
        "mark": _MARKS[verdict.verdict],
        "verdict": verdict.text,
        "statement": verdict.statement,
        "source": verdict.source,
        "more": more,
        "text": text,
    }
