"""The writer of every page: jinja2 templates on one shared base, in which all text is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

from .svg import CARD, DARK, INK, LIGHT, short

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PACKAGE = __package__.partition(".")[0]
# Control characters other than tab and line feed, and the separators that scripts read as line ends.
_UNPRINTABLE = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029], " ")
_LONGEST_TABLE, _LONGEST_CELL = 2_000, 400


def render(template: str, **values: Any) -> str:
    """Return the page of a template as ASCII text; equal values give equal text.

    Parameters
    ----------
    template : str
        A file of this package, as "cli/verify/page.html". It extends ``formulations/plotting/page.html``.
    **values
        What the template fills in. Text is escaped; of pictures, give what `picture` returns.
    """
    page = _environment().get_template(template).render(values)
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def picture(svg: str) -> Markup:
    """Return a picture of :mod:`.svg` as a template takes it: its writer has escaped all text in it."""
    from markupsafe import Markup

    return Markup(svg)


def table(columns: Mapping[str, Any], most: int = _LONGEST_TABLE) -> dict[str, Any]:
    """Return what the macro `table` shows: names of columns, the first `most` rows as text, how many rows are left."""
    values = [list(column) for column in columns.values()]
    count = max((len(column) for column in values), default=0)
    rows = [[cell(value) for value in row] for row in zip(*(column[:most] for column in values), strict=True)]
    return {"heads": list(columns), "rows": rows, "more": count - len(rows)}


def cell(value: Any) -> str:
    """Return a table's value as text: four digits of a number with a point, a dash for nothing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "\N{EN DASH}"
    return f"{value:.4g}" if isinstance(value, float) else short(str(value), _LONGEST_CELL)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    # By name: the root imports every folder, so that no folder may import it.
    version = import_module(_PACKAGE).__version__
    environment.globals.update(version=version, ink=INK, card=CARD, light=LIGHT, dark=DARK)
    return environment


def _source(template: str) -> str:
    return resources.files(_PACKAGE).joinpath(template).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """Return text without control characters; what is markup or no text, as it is."""
    return value.translate(_UNPRINTABLE) if type(value) is str else value
