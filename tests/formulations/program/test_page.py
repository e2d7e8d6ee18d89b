"""The page of a result: every value of the certificate, the plan's picture and table, nothing from outside."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.program.page import history_picture
from equipoise.solvers.result import HistoryPoint

VOID = {"meta", "link", "br", "img", "hr", "input"}
SHAPES = {"circle", "line", "path", "rect"}


def check_page(page: str) -> None:
    """Check that a page is ASCII, that its elements nest, and that it loads nothing."""
    assert page.isascii()
    open_elements = []

    class Nesting(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in VOID:
                open_elements.append(tag)

        def handle_startendtag(self, tag, attrs):
            assert tag in SHAPES | VOID

        def handle_endtag(self, tag):
            assert open_elements.pop() == tag

    Nesting().feed(page)
    assert open_elements == []
    assert re.findall(r'(?:href|src)="([^"#][^"]*)"', page) == ["data:,"]
    assert set(re.findall(r'https?://[^"<]*', page)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def shown(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", page[page.index("<body>") :]))


def market() -> eq.Result:
    return eq.solve(eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0]), rel_gap=1e-8)


def window(name: str = "job") -> eq.Result:
    jobs = [
        eq.WindowJob(id=f"{name} {i}", gpus=1, finished_epochs=0, total_epochs=2, regimes=[eq.Regime(2, 100.0)])
        for i in range(3)
    ]
    return eq.solve(eq.ScheduleWindow(jobs, gpus=2, rounds=3))


@pytest.mark.parametrize("make", [market, window, lambda: eq.solve(eq.OpenShop([[3.0, 1.0], [2.0, 2.0]]))])
def test_a_page_holds_every_value_of_the_certificate(make):
    result = make()
    page = result.to_html()
    check_page(page)
    text = shown(page)
    certificate = result.certificate()
    for value in (
        certificate.termination,
        certificate.objective,
        certificate.bound,
        certificate.gap,
        certificate.residuals.bound,
        certificate.residuals.row,
        certificate.residuals.integrality,
        certificate.backend,
        certificate.version,
        certificate.form,
        certificate.seed,
        certificate.wall_time,
        *certificate.notes,
    ):
        assert f" {value} " in text
    assert page == result.to_html()


def test_a_plan_is_drawn_and_tabulated_where_it_can_be():
    result = market()
    page = result.to_html()
    assert result.plan.to_svg() in page
    assert page.count("<tr>") >= 1 + len(result.plan.to_frame())
    page = window().to_html()
    assert "round_2" in page
    assert "job 1" in page


def test_a_plan_without_picture_or_table_is_shown_by_its_representation():
    build = eq.ProgramBuilder(sense="max")
    build.set_objective([(build.add_columns("share", shape=(2,), upper=0.5), 1.0)])
    page = eq.solve(build.program()).to_html()
    check_page(page)
    assert "array([0.5, 0.5])" in shown(page)


def test_hostile_text_stays_text():
    result = window("<script>alert(1)</script>")
    page = replace(result, notes=("<img src=x>", "&lt;"), backend="a<b>c").to_html()
    check_page(page)
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3
    assert "&lt;img src=x&gt;" in page
    assert "&amp;lt;" in page
    assert "<script" not in page


def test_without_a_plan_the_page_says_why():
    infeasible = eq.solve(eq.OpenShop([[1e9] * 12] * 12), time_limit=0.0)
    failed = replace(infeasible, plan=None, objective=None, residuals=None, bound=-np.inf, gap=np.inf)
    page = replace(
        failed, termination=eq.Termination(eq.Reason.NO_SOLUTION_FOUND, eq.Limit.TIME, "<nothing> in time")
    ).to_html()
    check_page(page)
    text = shown(page)
    assert "NO_SOLUTION_FOUND: no plan" in text
    assert "stopped by the limit on time: <nothing> in time" in text
    assert "No plan." in text
    assert " \N{MINUS SIGN}∞" in text


def test_the_file_appears_whole(tmp_path):
    result = market()
    assert result.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text(encoding="ascii")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileNotFoundError):
        result.to_html(tmp_path / "none" / "page.html")


def test_progress_is_drawn_where_anything_changes():
    points = [HistoryPoint(0.1, None, np.inf), HistoryPoint(0.2, -5.0, 3.0), HistoryPoint(0.4, 1.0, 2.0)]
    drawn = history_picture(points)
    assert "bound, at last 2<" in drawn
    assert "objective of the incumbent, at last 1<" in drawn
    assert len(re.findall('<path class="line l[01]" d="M[^"]*H', drawn)) == 2
    assert history_picture(points[:2]) == ""
    assert history_picture([]) == ""
    assert history_picture([HistoryPoint(0.1, 1.0, 1.0), HistoryPoint(0.2, 1.0, 1.0)]) == ""
