"""`equipoise front`: the page of a front on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..formulations.search.front import ParetoFront
from .console import print_status
from .errors import OK, CommandError
from .files import check_target, write_text
from .options import deferred
from .tune.folder import FRONT, PAGE, SUMMARY
from .tune.summary import evidence, print_picks


@deferred
def front_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of `equipoise tune`, or any with front.json.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The page to write [DIR/front.html].")] = None,
) -> int:
    """Write the page on which an operator sees a front and chooses a point, and print the named picks."""
    if not (folder / FRONT).is_file():
        why = f"has no {FRONT}" if folder.is_dir() else "is no folder"
        raise CommandError(f"{folder}: {why}", "`equipoise tune wfq TRACE --out DIR` writes one.")
    target = folder / PAGE if out is None else out
    check_target("--out" if out is not None else "DIR", target)
    front = ParetoFront.load(folder / FRONT)
    write_text(target, front.to_html(evidence=evidence(_summary(folder / SUMMARY))))
    print_picks(front)
    print_status(f"wrote {target}")
    return OK


def _summary(path: Path) -> Mapping[str, Any]:
    """Return the summary of the search beside the front; nothing if there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
