"""The writer of pages: text is escaped once, pictures are not, and pages need nothing from outside."""

import re
from xml.etree import ElementTree

import jinja2
import numpy as np
import pytest

from equipoise.formulations.plotting import html, svg

HOSTILE = "<script>alert('1')</script>&amp;\x00\x1b\u2028\ud800ü"
#: How the hostile text stands in a page: escaped once, in ASCII, control characters as spaces.
ESCAPED = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;   &#55296;&#252;"


def page(**values):
    filled = {"title": "t", "tiles": [], "notes": [], "facts": html.table({}), "history": "", "drawing": ""}
    rest = {"lead": "", "table": None, "other": ""}
    return html.render("formulations/program/page.html", **filled | rest | values)


def test_text_is_escaped_once_wherever_it_stands():
    plain = page()
    for values in (
        {"title": HOSTILE},
        {"lead": HOSTILE},
        {"notes": [HOSTILE]},
        {"tiles": [(HOSTILE, "1", "e")]},
        {"tiles": [("n", HOSTILE, "e")]},
        {"table": html.table({HOSTILE: [1]})},
        {"table": html.table({"a": [HOSTILE]})},
        {"other": HOSTILE},
    ):
        text = page(**values)
        assert text.isascii()
        assert text.count(ESCAPED) == plain.count(ESCAPED) + (2 if "title" in values else 1)
        assert "<script" not in text


def test_line_ends_and_tabs_stay():
    assert "one\n\ttwo" in page(other="one\n\ttwo")


def test_a_picture_stands_as_its_writer_wrote_it():
    drawn = svg.document(10, 10, HOSTILE, [svg.bar(0, 0, 1, 1, 0, HOSTILE)])
    ElementTree.fromstring(drawn)
    assert drawn in page(drawing=html.picture(drawn))
    assert "<script" not in drawn
    assert drawn not in page(drawing=drawn)  # what is not marked as a picture is text


def test_a_template_says_what_it_misses():
    with pytest.raises(jinja2.UndefinedError, match="lead"):
        html.render("formulations/plotting/page.html", title="t")


def test_a_table_shows_its_first_rows_and_counts_the_rest():
    table = html.table({"a": [1, None, 2.123456], "b": [float("nan"), "x" * 900, True]}, most=2)
    assert table["heads"] == ["a", "b"]
    assert table["rows"] == [["1", "\N{EN DASH}"], ["\N{EN DASH}", "x" * 399 + "\N{HORIZONTAL ELLIPSIS}"]]
    assert table["more"] == 1
    assert html.cell(2.123456) == "2.123"


def test_pages_and_pictures_have_one_palette():
    text = page()
    for colour in (*svg.LIGHT, *svg.DARK, *svg.INK, *svg.CARD):
        assert colour in svg.STYLE
        assert colour in text


def test_one_module_writes_svg_and_no_module_writes_html():
    from pathlib import Path

    root = Path(html.__file__).parents[2]
    sources = [path for path in root.rglob("*.py") if path.relative_to(root).parts[0] not in {"tests", ".venv"}]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sources}
    assert [name for name, text in texts.items() if "<svg" in text] == ["formulations/plotting/svg.py"]
    assert [
        name for name, text in texts.items() if re.search(r"</(div|p|td|table|html|h2|style)>|<!doctype", text)
    ] == ["formulations/plotting/svg.py"]
    assert [name for name, text in texts.items() if "Markup(" in text] == ["formulations/plotting/html.py"]


def test_axes_of_a_frame_may_begin_anywhere():
    frame = svg.Frame(left=10, top=20, width=400, height=100, x_start=-2.0, x_limit=2.0, y_start=5.0, y_limit=6.0)
    assert frame.x(np.array([-2.0, 0.0, 2.0])).tolist() == [10, 210, 410]
    assert frame.y(np.array([5.0, 6.0])).tolist() == [120, 20]
    assert svg.ticks(6.0, 4, 5.0) == [5.0, 5.25, 5.5, 5.75, 6.0]
    assert svg.ticks(2.0, 4, -2.0) == [-2.0, -1.0, 0.0, 1.0, 2.0]


def test_a_logarithmic_axis_has_whole_decades_or_1_2_and_5_of_few():
    assert svg.log_ticks(1.0, -4.0) == [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0]
    assert [round(10**value, 9) for value in svg.log_ticks(1.5, 0.2)] == [2.0, 5.0, 10.0, 20.0]
