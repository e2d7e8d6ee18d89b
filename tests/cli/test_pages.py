"""The pages of `simulate`, `compare` and `verify`: well-formed, self-contained, every text escaped once, repeatable."""

import html
import re
from html.parser import HTMLParser

import pytest

from equipoise.cli import main
from equipoise.cli.verify.page import render
from equipoise.validation.statements.verify import Verdict

HEADER = "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s"
HOSTILE = "<script>alert('1')</script>&amp;"
VOID = {"meta", "link"}


def elements(page):
    """Return the elements of a page in order; fail unless they nest."""
    seen, still_open = [], []

    class Nesting(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)
            if tag not in VOID:
                still_open.append(tag)

        def handle_startendtag(self, tag, attrs):
            seen.append(tag)

        def handle_endtag(self, tag):
            assert still_open.pop() == tag

    Nesting().feed(page)
    assert still_open == []
    return seen


def check_page(page):
    assert page.isascii()
    assert "script" not in elements(page)
    assert re.findall(r'(?:href|src)="([^"#][^"]*)"', page) == ["data:,"]
    assert set(re.findall(r'https?://[^"<]*', page)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def without_times(page):
    return re.sub(r"\d+\.\d\d s|<td[^>]*>\d+\.\d\d</td></tr>", "", page)


@pytest.mark.parametrize(
    ("command", "policies"), [("simulate", ["--policy", "fifo"]), ("compare", ["--policies", "fifo,las"])]
)
def test_a_run_writes_a_page_that_holds_every_job(command, policies, tmp_path, capsys):
    trace = tmp_path / "<b>.csv"
    lines = [f'"{HOSTILE}{k}",LM,10,1,static,9000,{k}' for k in range(3)]
    trace.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    pages = []
    for name in ("one", "two"):
        arguments = [command, str(trace), *policies, "--gpus", "2", "--out", str(tmp_path / name)]
        assert main.run(arguments) == 0, capsys.readouterr().err
        page = (tmp_path / name / "page.html").read_text(encoding="ascii")
        check_page(page)
        assert f"jobs of {html.escape(str(trace))}" in page
        for k in range(3):
            assert f"<title>job {html.escape(HOSTILE)}{k}</title>" in page
        pages.append(without_times(page))
    assert pages[0] == pages[1]


def test_verdicts_stay_text():
    verdicts = [
        Verdict(
            subject=subject,
            statement=f"{HOSTILE} of {subject}",
            source=HOSTILE,
            verdict=verdict,
            examples=4,
            held=3,
            witness=f"line 1\n{HOSTILE}",
            problem="",
            steps=(),
        )
        for subject, verdict in (("market", "held"), ("window", "fails"))
    ]
    page = render(verdicts, f"equipoise verify {HOSTILE}")
    check_page(page)
    escaped = html.escape(HOSTILE).replace("&#x27;", "&#39;")
    assert page.count(escaped) == 1 + 3 * 2
    assert "1 of 2 statements fail" in page
    assert page.count('class="tile bad"') == 1
    assert page == render(verdicts, f"equipoise verify {HOSTILE}")
