"""The page of `equipoise verify`: what holds and what does not, at a glance, with every proof and witness."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from .summary import HEADINGS, summary

if TYPE_CHECKING:
    from ...validation.statements.verify import Verdict

#: Under each heading, for who reads this first.
LEADS = {
    "theorems": "Each step is closed by a computer algebra system. Statements against a paper are counterexamples.",
    "market": "Random markets of five kinds are solved, and each answer judged from allocation and prices alone.",
    "stochastic": "Small markets of Markov chains, solved over all jobs together and job by job, then sampled.",
    "window": "Random windows small enough to try every schedule. What says reported is not promised: it may fail.",
}
_CLASSES = {"proved": "good", "held": "good", "reported": "told", "not checked": "told", "fails": "bad"}
_MARKS = {"proved": "\N{CHECK MARK}", "held": "\N{CHECK MARK}", "reported": "\N{BLACK CIRCLE}",
          "not checked": "\N{EN DASH}", "fails": "\N{MULTIPLICATION X}"}  # fmt: skip


def render(verdicts: Sequence[Verdict], command: str) -> str:
    """Return the page as text; it needs neither a network nor a library.

    Parameters
    ----------
    verdicts : sequence of Verdict
    command : str
        What repeats the run.
    """
    from ... import __version__

    failing = [verdict for verdict in verdicts if verdict.fails]
    complete = all(verdict.verdict != "not checked" for verdict in verdicts)
    title = "Everything promised holds" if complete else "Everything promised that was checked holds"
    if failing:
        title = f"{len(failing)} of {len(verdicts)} statements fail"
    parts = {
        "TITLE": _escape(title),
        "STATE": "bad" if failing else "good",
        "LEAD": _escape(summary(verdicts)),
        "TILES": "\n".join(_tile(subject, verdicts) for subject in _subjects(verdicts)),
        "SECTIONS": "\n".join(_section(subject, verdicts) for subject in _subjects(verdicts)),
        "COMMAND": _escape(command),
        "VERSION": _escape(__version__),
    }
    page = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    # No part can hold a marker of another one, because "<" is escaped in all that is not ours.
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


def _subjects(verdicts: Sequence[Verdict]) -> list[str]:
    return list(dict.fromkeys(verdict.subject for verdict in verdicts))


def _tile(subject: str, verdicts: Sequence[Verdict]) -> str:
    own = [verdict for verdict in verdicts if verdict.subject == subject]
    promised = [verdict for verdict in own if verdict.verdict in ("proved", "held", "fails")]
    good = sum(not verdict.fails for verdict in promised)
    more = {name: sum(verdict.verdict == name for verdict in own) for name in ("reported", "not checked")}
    small = ", ".join(f"{count} more {name}" for name, count in more.items() if count) or "nothing only reported"
    state = "good" if good == len(promised) else "bad"
    return (
        f'<a class="tile {state}" href="#{subject}"><span>{_escape(subject)}</span>'
        f"<b>{good} of {len(promised)} hold</b><span>{small}</span></a>"
    )


def _section(subject: str, verdicts: Sequence[Verdict]) -> str:
    rows = "\n".join(_row(verdict) for verdict in verdicts if verdict.subject == subject)
    return (
        f'<section id="{subject}"><h2>{_escape(HEADINGS[subject])}</h2><p class="lead">{_escape(LEADS[subject])}</p>\n'
        f'<table><thead><tr><th scope="col">verdict</th><th scope="col">statement</th><th scope="col">source</th></tr>'
        f"</thead><tbody>\n{rows}\n</tbody></table></section>"
    )


def _row(verdict: Verdict) -> str:
    more = ""
    if verdict.steps:
        more = _details(f"the proof, {sum(_is_step(line) for line in verdict.steps)} steps", "\n".join(verdict.steps))
    elif verdict.witness:
        lines = [verdict.witness, verdict.problem]
        more = _details("where it does not hold" if verdict.examples else "why", "\n".join(filter(None, lines)))
    state = _CLASSES[verdict.verdict]
    return (
        f'<tr class="{state}"><td><span class="badge"><i aria-hidden="true">{_escape(_MARKS[verdict.verdict])}</i> '
        f"{_escape(verdict.text)}</span></td><td>{_escape(verdict.statement)}{more}</td>"
        f'<td class="source">{_escape(verdict.source)}</td></tr>'
    )


def _is_step(line: str) -> bool:
    return line[:3].strip().isdigit()


def _details(name: str, text: str) -> str:
    return f"<details><summary>{_escape(name)}</summary><pre>{_escape(text)}</pre></details>"


def _escape(text: str) -> str:
    # ASCII only, so that a page without its encoding still reads.
    return html.escape(text).encode("ascii", "xmlcharrefreplace").decode("ascii")
