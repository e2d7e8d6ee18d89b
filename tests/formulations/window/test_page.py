"""The page of a window plan: its data are the plan's, it is self-contained, and it survives hostile text."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.program.certificate import SolveCertificate
from equipoise.formulations.window import page as window_page
from equipoise.formulations.window.page import render
from equipoise.formulations.window.plan import WindowPlan

HOSTILE = (
    "</script><script>document.body.innerHTML=''</script>",
    "<!--DATA-->",
    "<img src=x onerror=alert(1)>",
    "a\"b'c&amp;d",
    "\u2028\u2029\x00\x1f",
    "lone \ud800 surrogate",
    "שלום עולם \u202e 日本",
    "]]>{{x}}${y}",
    7,
)
CERTIFICATE = SolveCertificate(
    objective=-0.01234567890123,
    bound=-0.01233,
    gap=3.5123e-7,
    residuals=None,
    termination="OPTIMAL",
    backend="lagrangian",
    version="1",
    form="special",
    seed=0,
    wall_time=0.00812,
    notes=("The bound holds for <b>every</b> schedule & order.",),
)


def plan_of(n: int, *, gpus: int = 8, rounds: int = 6, seed: int = 0, ids: Any = None, busy: float = 0.5) -> WindowPlan:
    """Return a random plan that respects capacity, gangs and each job's work, with gaps and changes of regime."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 4, n)
    starts = np.concatenate([[0], np.cumsum(count)])
    epochs = rng.integers(1, 5, starts[-1]).astype(float)
    epoch_s = rng.uniform(20, 200, starts[-1])
    finished = rng.integers(0, 9, n).astype(float)
    window = eq.ScheduleWindow.from_columns(
        gang_gpus=rng.choice([1, 2, 4], n),
        finished_epochs=finished,
        total_epochs=finished + np.add.reduceat(epochs, starts[:-1]),
        regime_starts=starts,
        regime_epochs=epochs,
        regime_epoch_s=epoch_s,
        gpus=gpus,
        ids=ids,
        ftf=rng.uniform(0.5, 2.0, n),
        rounds=rounds,
    )
    need = np.add.reduceat(np.ceil(epochs * epoch_s / window.round_s - 1e-9), starts[:-1]).astype(int)
    grants = np.zeros((n, rounds), dtype=bool)
    for t in range(rounds):
        free = gpus
        for job in rng.permutation(n):
            if window.gang_gpus[job] <= free and grants[job].sum() < need[job] and rng.random() < busy:
                grants[job, t] = True
                free -= int(window.gang_gpus[job])
    return WindowPlan(window=window, grants=grants)


def data_of(page: str) -> dict[str, Any]:
    """Return the data embedded in the page, each job as a mapping."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert text
    data: dict[str, Any] = json.loads(text[1])
    data["jobs"] = [dict(zip(data["fields"], job, strict=True)) for job in data["jobs"]]
    return data


def visible(page: str) -> str:
    """Return the text of the page's head as a reader sees it."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page[page.index("<body>") : page.index('<section id="gantt"')]))


@pytest.mark.parametrize("seed", range(5))
def test_bars_are_the_grants(seed: int) -> None:
    plan = plan_of(12, seed=seed)
    data = data_of(render(plan))
    assert [job["id"] for job in data["jobs"]] == [str(name) for name in plan.window.ids]
    shown = np.full(plan.regime_of.shape, -1)
    for row, job in enumerate(data["jobs"]):
        for start, length, regime in job["runs"]:
            assert (shown[row, start : start + length] == -1).all(), "two bars overlap"
            shown[row, start : start + length] = regime
        touching = zip(job["runs"], job["runs"][1:], strict=False)
        assert all(a[0] + a[1] < b[0] or a[2] != b[2] for a, b in touching), "one stretch is split into two bars"
    np.testing.assert_array_equal(shown, plan.regime_of)


def test_job_figures_are_the_plans() -> None:
    plan = plan_of(10, seed=3)
    window = plan.window
    jobs = data_of(render(plan))["jobs"]
    np.testing.assert_array_equal([job["gang"] for job in jobs], window.gang_gpus)
    np.testing.assert_allclose([job["before"] for job in jobs], window.finished_epochs / window.total_epochs, rtol=1e-8)
    np.testing.assert_allclose([job["after"] for job in jobs], plan.utilities, rtol=1e-8)
    np.testing.assert_allclose([job["left"] for job in jobs], plan.remaining_s, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose([job["ftf"] for job in jobs], window.ftf, rtol=1e-8)
    regimes = [regime for job in jobs for regime in job["regimes"]]
    np.testing.assert_allclose(regimes, np.stack([window.regime_epochs, window.regime_epoch_s], axis=1), rtol=1e-8)


def test_gpus_in_use_are_split_by_regime() -> None:
    plan = plan_of(12, seed=1)
    data = data_of(render(plan))
    np.testing.assert_array_equal(np.sum(data["in_use"], axis=0), plan.gpus_in_use)
    for regime, line in enumerate(data["in_use"]):
        np.testing.assert_array_equal(line, plan.window.gang_gpus @ (plan.regime_of == regime))
    assert data["running"] == plan.grants.sum(axis=0).tolist()


def test_a_plan_without_any_grant() -> None:
    window = plan_of(3).window
    page = render(WindowPlan(window=window, grants=np.zeros((3, window.rounds), dtype=bool)))
    data = data_of(page)
    assert data["in_use"] == []
    assert all(job["runs"] == [] for job in data["jobs"])
    assert "0 of 3 jobs run" in visible(page)


def test_hostile_ids_and_notes_stay_text() -> None:
    plan = plan_of(len(HOSTILE), ids=HOSTILE)
    plain = render(plan_of(len(HOSTILE)), CERTIFICATE)
    page = render(plan, replace(CERTIFICATE, backend=HOSTILE[0], notes=HOSTILE[:-1]))
    shown = [job["id"] for job in data_of(page)["jobs"]]
    assert [name for name in shown if "lone" not in name] == [str(name) for name in HOSTILE if "lone" not in str(name)]
    assert re.fullmatch("lone \ufffd+ surrogate", shown[5])
    page.encode("utf-8")

    def tags(text: str) -> list[str]:
        seen: list[str] = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attrs: seen.append(tag)  # type: ignore[method-assign]
        parser.feed(text)
        return [tag for tag in seen if tag != "li"]

    assert tags(page) == tags(plain)
    assert "<img src=x onerror=alert(1)>" in visible(page)


def test_long_ids_are_cut_short() -> None:
    page = render(plan_of(2, ids=("x" * 5_000, "short")))
    first, second = (job["id"] for job in data_of(page)["jobs"])
    assert first.startswith("xxx")
    assert first.endswith("…")
    assert len(first) == 120
    assert second == "short"


def test_omitted_jobs_are_counted_and_are_those_of_least_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(30, seed=2)
    monkeypatch.setattr(window_page, "MAX_ROWS", 12)
    page = render(plan)
    data = data_of(page)
    best = np.sort(np.argsort(-(plan.window.weight * plan.window.ftf**plan.window.ftf_power), kind="stable")[:12])
    assert [job["id"] for job in data["jobs"]] == [str(plan.window.ids[job]) for job in best]
    assert "shows the 12 jobs of highest priority" in visible(page)
    assert "18 jobs omitted" in visible(page)
    assert data["all_jobs"] == 30
    np.testing.assert_array_equal(np.sum(data["in_use"], axis=0), plan.gpus_in_use)


def test_too_many_bars_are_omitted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(30, seed=2)
    monkeypatch.setattr(window_page, "MAX_BARS", 10)
    page = render(plan)
    jobs = data_of(page)["jobs"]
    assert 0 < len(jobs) < 30
    assert sum(len(job["runs"]) for job in jobs) <= 10
    assert f"{30 - len(jobs)} jobs omitted" in visible(page)


def test_nothing_is_said_to_be_omitted_when_nothing_is() -> None:
    assert "omitted" not in visible(render(plan_of(12)))


def test_skipped_jobs_are_named() -> None:
    jobs = [
        eq.WindowJob(id=name, gpus=gpus, finished_epochs=0, total_epochs=2, regimes=[eq.Regime(2, 100.0)])
        for name, gpus in (("fits", 1), ("too <wide>", 9))
    ]
    with pytest.warns(UserWarning, match="wide"):
        window = eq.ScheduleWindow(jobs, gpus=8, rounds=4, skip_wide=True)
    text = visible(render(WindowPlan(window=window, grants=np.zeros((1, 4), dtype=bool))))
    assert "not planned: 1 job (too <wide>)" in text


def test_certificate_figures_appear_readably() -> None:
    text = visible(render(plan_of(5), CERTIFICATE))
    for figure in (
        "\N{MINUS SIGN}0.01235",
        "bound \N{MINUS SIGN}0.01233",
        "3.5e\N{MINUS SIGN}7",
        "OPTIMAL, lagrangian, 8.12 ms",
        "<b>every</b> schedule & order",
    ):
        assert figure in text
    assert not re.search(r"\d\.\d{9}", text), "a figure with more digits than anyone reads"


def test_without_certificate_nothing_is_claimed() -> None:
    plan = plan_of(5)
    text = visible(render(plan))
    assert "no certificate given" in text
    assert "no bound given" in text
    assert f"{plan.objective:.4g}".replace("-", "\N{MINUS SIGN}") in text


def test_infinite_bound_and_gap_have_a_sign_not_a_traceback() -> None:
    text = visible(render(plan_of(5), replace(CERTIFICATE, bound=float("inf"), gap=float("inf"))))
    assert "bound ∞" in text


def test_utilisation_is_never_rounded_up_to_full() -> None:
    jobs = [eq.WindowJob(id=0, gpus=1, finished_epochs=0, total_epochs=9e3, regimes=[eq.Regime(9e3, 100.0)])]
    window = eq.ScheduleWindow(jobs, gpus=1, rounds=5_000)
    grants = np.ones((1, 5_000), dtype=bool)
    assert "keeps 100% of 1 GPU in use" in visible(render(WindowPlan(window=window, grants=grants)))
    grants[0, -1] = False
    assert "keeps 99.9% of 1 GPU in use" in visible(render(WindowPlan(window=window, grants=grants)))


def test_page_needs_nothing_from_outside() -> None:
    page = render(plan_of(8), CERTIFICATE)
    assert not re.search(r"https?:|//[a-z]+\.|@import|\burl\(|\bsrc=|fetch\(|XMLHttp|\bimport\(", page)
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]
    assert "default-src 'none'" in page
    assert "<!--" not in page, "a marker of the template was left unfilled"


def test_same_plan_same_page() -> None:
    assert render(plan_of(12), CERTIFICATE) == render(plan_of(12), CERTIFICATE)


def test_two_thousand_jobs_stay_below_two_megabytes() -> None:
    page = render(plan_of(2_000, gpus=1_000, rounds=20, busy=0.3), CERTIFICATE)
    assert len(data_of(page)["jobs"]) == 2_000
    assert len(page.encode("utf-8")) < 2_000_000


def dump(address: str, profile: Path) -> str:
    """Return the document at `address` as Chromium leaves it once its scripts have run; skip where it cannot run."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next((path for name in names if (path := shutil.which(name))), None)
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --window-size=1400,1000 --virtual-time-budget=3000 --dump-dom"
    command = [chromium, *flags.split(), f"--user-data-dir={profile}", address]
    return subprocess.run(command, capture_output=True, timeout=60, check=True).stdout.decode("utf-8", "replace")


# Reports errors, then points at a bar, at a round of the chart, sorts and filters, and writes down what it saw.
PROBE = """<script>addEventListener("load", function () {
  var point = function (element) {
    var box = element.getBoundingClientRect();
    element.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: box.left + 1, clientY: box.top + 1}));
    return document.getElementById("tip").innerText;
  };
  var ids = function () {
    return Array.from(document.querySelectorAll(".row:not([hidden])")).map(function (row) { return row.job.index; });
  };
  var seen = {rows: document.querySelectorAll(".row").length, bars: document.querySelectorAll(".bar").length,
    starts: document.querySelectorAll(".bar.start").length,
    scripts: document.scripts.length, images: document.images.length,
    waits: document.querySelectorAll(".row.waits").length};
  seen.epochs = Array.from(document.querySelectorAll(".row")).map(function (row) {
    return [row.job.index, Array.from(row.querySelectorAll(".bar")).map(function (bar) {
      point(bar);
      var terms = Array.from(document.querySelectorAll("#tip dt"));
      return +terms.find(function (dt) { return dt.textContent === "Epochs run here"; }).nextSibling.textContent;
    })];
  });
  seen.bar = point(document.querySelector(".bar"));
  seen.plot = point(document.getElementById("plot"));
  document.querySelector("[data-key=rounds]").click();
  seen.by_rounds = ids();
  document.getElementById("filter").value = "1";
  document.getElementById("filter").dispatchEvent(new Event("input"));
  seen.filtered = ids();
  seen.errors = window.errors;
  document.documentElement.dataset.seen = JSON.stringify(seen);
});</script></body>"""


def look(page: str, folder: Path) -> dict[str, Any]:
    """Open the page in a browser and return what the probe saw."""
    try:
        dump("data:text/html,blank", folder / "profile")
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"Chromium cannot open an empty page here: {error}")
    watch = "<script>window.errors = []; addEventListener('error', function (e) { errors.push(e.message); });</script>"
    file = folder / "page.html"
    file.write_text(page.replace("</title>", "</title>" + watch).replace("</body>", PROBE), encoding="utf-8")
    seen = re.search(r'<html[^>]* data-seen="([^"]*)"', dump(file.as_uri(), folder / "profile"))
    assert seen, "the page's script or the probe did not finish"
    found: dict[str, Any] = json.loads(html.unescape(seen[1]))
    return found


@pytest.mark.thorough
def test_browser_draws_one_row_per_job(tmp_path: Path) -> None:
    ids = (*HOSTILE, *range(100, 115))
    plan = plan_of(len(ids), ids=ids, seed=4)
    window = plan.window
    page = render(plan, CERTIFICATE)
    jobs = data_of(page)["jobs"]
    seen = look(page, tmp_path)
    assert seen["errors"] == []
    assert seen["rows"] == len(ids)
    assert seen["bars"] == sum(len(job["runs"]) for job in jobs)
    assert seen["starts"] == plan.restarts
    assert seen["waits"] == np.count_nonzero(plan.rounds_granted == 0)
    assert (seen["scripts"], seen["images"]) == (4, 0), "the page's two scripts and the test's two, and no image"
    for job, epochs in seen["epochs"]:
        gained = plan.utilities[job] * window.total_epochs[job] - window.finished_epochs[job]
        assert sum(epochs) == pytest.approx(gained, abs=5e-3 * max(1, len(epochs)))
    assert re.search(r"Regime\s+\d of \d", seen["bar"])
    assert f"{plan.gpus_in_use[0]} of {window.gpus} GPUs" in seen["plot"]
    expected = sorted(range(len(ids)), key=lambda job: (-plan.rounds_granted[job], job))
    assert seen["by_rounds"] == expected
    assert seen["filtered"] == [job for job in expected if "1" in str(ids[job])]
