"""The operator's page: what it shows is the front, text stays text, and an operator chooses, compares and downloads."""

import html
import json
import math
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pytest
from browser import SHIFT, opened

import equipoise as eq
from equipoise.formulations.search.front_page import size_text
from equipoise.formulations.search.front_picture import front_picture

HOSTILE = "</script><script>document.body.innerHTML=''</script>"
EVIDENCE = {"backend": "spea2", "seed": 0, "evaluations": 1330, "wall time": "61 s"}
OBJECTIVES = ("jct:avg", "pred_error:p99", "unfairness:avg", "cost")


def config_of(point, gpu_types=()):
    weights = [f"{1 + point}/{10 + point}", f"9/{10 + point}"]
    by_type = dict.fromkeys(gpu_types, weights)
    return eq.WfqConfig(thresholds=[900.0 * (point + 1), math.inf], weights=by_type or weights, zeta=0.3, delta=0.1)


def front_of(points=9, objectives=OBJECTIVES[:2], *, held_out=True, configurations=None, variables=("T", "W")):
    """Return a front on a line: the first score rises as the others fall."""
    share = np.linspace(0.1, 0.9, points)
    unit = np.stack([share, *(1.0 - share**power for power in range(1, len(objectives)))], axis=1)
    scores = unit * np.array([7200.0, 900.0, 3.0, 50.0])[: len(objectives)]
    return eq.ParetoFront(
        variables=variables,
        objectives=objectives,
        vectors=np.stack([share] * len(variables), axis=1),
        scores=scores,
        configurations=configurations or tuple(map(config_of, range(points))),
        ideal=np.zeros(len(objectives)),
        reference=scores.max(axis=0) * 1.1,
        held_out=scores * 1.25 if held_out else None,
    )


def data_of(page):
    """Return the data that the page's script reads."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def tags(page):
    seen = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: seen.append(tag)
    parser.feed(page)
    return seen


def test_the_page_has_every_point_with_scores_and_file():
    front = front_of()
    page = front.to_html(evidence=EVIDENCE)
    assert page.isascii()
    data = data_of(page)
    for point, (shown, config) in enumerate(zip(data["points"], front.configurations, strict=True)):
        assert shown["scores"] == front.scores[point].tolist()
        assert shown["held_out"] == front.held_out[point].tolist()
        assert shown["vector"] == front.vectors[point].tolist()
        assert shown["facts"] == [["queues", "2"], ["zeta", "0.3"], ["delta", "0.1"]]
        (queues,) = shown["queues"]
        assert [queue["weight"] for queue in queues["queues"]] == [str(weight) for weight in config.weights]
        assert [queue["sizes"].split()[0] for queue in queues["queues"]] == ["up", "above"]
        address = re.search(rf'download="wfq-{point}\.json" href="([^"]*)"', page)[1]
        assert unquote(address.partition(",")[2]) == config.to_json()
    assert [data["points"][k]["picks"] for k in (0, 8)] == [["jct"], ["pred"]]
    assert sum("balanced" in point["picks"] for point in data["points"]) == 1
    assert page.count('<g class="point"') == 2 * 9
    for fact in (f"{front.hypervolume:.4f}", "backend spea2, seed 0, evaluations 1330, wall time 61 s"):
        assert fact in page


def test_each_pair_of_objectives_has_a_picture():
    for count, pictures in ((1, 0), (2, 1), (3, 3), (4, 6)):
        front = front_of(1 if count == 1 else 9, OBJECTIVES[:count], held_out=False)
        page = front.to_html()
        assert page.count("<svg") == pictures
        assert page.count('<g class="point"') == 9 * pictures
        assert "held out</th>" not in page
        assert tags(page).count("tr") == 1 + len(front)


def test_other_objectives_give_the_colour():
    two, three = front_of(9).to_svg(), front_of(9, OBJECTIVES[:3]).to_svg()
    assert set(re.findall(r'<circle class="dot ?(\w*)"', two)) == {"f0"}
    colours = re.findall(r'<circle class="dot" fill="(#\w{6})"', three)
    assert len(set(colours)) == 9
    assert "unfairness:avg: " in three


def test_held_out_scores_have_a_picture_of_their_own():
    front = front_of(9)
    scores = front_picture(front, held_out=True)
    tops = [float(top) for top in re.findall(r'class="dot f0" cx="[\d.]+" cy="([\d.]+)"', scores)]
    assert tops == sorted(tops)
    assert "jct:avg held out (hours)" in scores
    assert "<path" not in scores
    with pytest.raises(eq.InvalidInput, match="no held-out scores"):
        front_picture(front_of(held_out=False), held_out=True)


def test_a_wide_range_gets_a_logarithmic_axis():
    front = front_of(9)
    scores = front.scores * [[1.0, 1.0]]
    scores[-1, 1] = 0.09
    wide = eq.ParetoFront(**{**vars(front), "scores": scores, "held_out": None})

    def numbers(picture):
        return {float(text) for text in re.findall(r'text-anchor="end">([\d.]+)</text>', picture)}

    assert {0.1, 1.0, 10.0, 100.0} <= numbers(wide.to_svg())
    assert numbers(front.to_svg()) == {250.0, 500.0, 750.0}
    # Places on the axis are ordered as the scores.
    tops = [float(top) for top in re.findall(r'class="dot f0" cx="[\d.]+" cy="([\d.]+)"', wide.to_svg())]
    assert tops == sorted(tops)


def test_configurations_that_are_mappings_are_shown_by_name():
    values = [{"timer_s": 60.0 * k, "levels": [1, 2], "fast": True, "name": "a"} for k in range(9)]
    page = front_of(configurations=tuple(values)).to_html()
    data = data_of(page)
    assert data["points"][3]["facts"] == [["timer_s", "180"], ["levels", "[1, 2]"], ["fast", "true"], ["name", "a"]]
    assert data["points"][3]["queues"] == []
    address = re.search(r'download="point-3\.json" href="([^"]*)"', page)[1]
    assert json.loads(unquote(address.partition(",")[2])) == values[3]


def test_weights_by_gpu_type_are_shown_for_each():
    configs = tuple(config_of(k, ("v100", HOSTILE)) for k in range(9))
    data = data_of(front_of(configurations=configs).to_html())
    assert [group["gpu_type"] for group in data["points"][0]["queues"]] == ["v100", HOSTILE]


def test_hostile_names_stay_text():
    plain = front_of(9, ("jct:avg", "cost"), variables=("T", "W")).to_html(evidence={"a": "b"})
    values = tuple({HOSTILE: f"{HOSTILE}\ud800\x00\u2028'\"&amp;"} for _ in range(9))
    page = front_of(9, ("jct:avg", f"{HOSTILE}"), variables=(f'"{HOSTILE}', "W"), configurations=values).to_html(
        title=HOSTILE, evidence={HOSTILE: HOSTILE}
    )
    assert page.isascii()
    assert tags(page) == tags(plain)
    data = data_of(page)
    assert data["objectives"][1] == HOSTILE
    assert data["points"][0]["facts"][0][0] == HOSTILE
    assert html.escape(HOSTILE).replace("&#x27;", "&#39;") in page


def test_equal_fronts_give_equal_pages_that_need_nothing_from_outside(tmp_path):
    page = front_of().to_html(tmp_path / "front.html", evidence=EVIDENCE)
    assert (tmp_path / "front.html").read_text(encoding="ascii") == page
    assert page == front_of().to_html(evidence=EVIDENCE)
    assert "default-src 'none'" in page
    assert set(re.findall(r'(?:https?:)?//[a-z][^"<]*', page)) == {"http://www.w3.org/2000/svg"}
    assert all(each.startswith("data:") for each in re.findall(r'(?:href|src)="([^"]*)"', page))
    assert not re.search(r"@import|\burl\(|fetch\(|XMLHttp|\bimport\(", page)


@pytest.mark.parametrize(
    ("size_s", "text"),
    [
        (0.25, "0.25 s"), (59.2, "59.2 s"), (60.0, "1 min"), (3599.9, "1 h"), (9000.0, "2 h 30 min"), (86_399.0, "1 d"),
        (273_600.0, "3 d 4 h"), (math.inf, "\N{INFINITY}"),
    ],
)  # fmt: skip
def test_sizes_are_readable(size_s, text):
    assert size_text(size_s) == text


def test_a_saved_and_loaded_front_has_the_same_page(tmp_path):
    front = front_of()
    front.save(tmp_path / "front.json")
    assert eq.ParetoFront.load(tmp_path / "front.json").to_html() == front.to_html()


def details(page):
    return page.get('document.getElementById("details").innerText')


def selected(page):
    return page.get(
        '["one", "two"].map(function (name) { var e = document.querySelector("#points tr." + name);'
        "return e ? +e.dataset.point : null; })"
    )


@pytest.mark.thorough
def test_an_operator_selects_compares_and_downloads(tmp_path):
    front = front_of(9, OBJECTIVES[:3])
    file = tmp_path / "front.html"
    front.to_html(file, evidence=EVIDENCE)
    with opened(file, tmp_path) as page:
        assert selected(page) == [None, None]
        page.point('.point[data-point="4"] .dot')
        assert page.get('getComputedStyle(document.getElementById("tip")).visibility') == "visible"
        tip = page.get('document.getElementById("tip").innerText')
        assert tip.startswith("Point 4")
        assert front.objectives[0].text(front.scores[4, 0]) in tip

        page.click('.point[data-point="4"] .dot')
        assert selected(page) == [4, None]
        text = details(page)
        for shown in ("up to 1 h 15 min", "5/14", "35.7%", "zeta", front.objectives[1].text(front.held_out[4, 1])):
            assert shown in text
        name, content = page.download("#details a.save")
        assert name == "wfq-4.json"
        assert content == front.configurations[4].to_json()
        assert eq.WfqConfig.from_json(content) == front.configurations[4]

        page.click('#points tr[data-point="6"] td', SHIFT)
        assert selected(page) == [4, 6]
        for column in range(3):
            change = 100 * (front.scores[6, column] / front.scores[4, column] - 1)
            assert f"{abs(change):.1f}%" in details(page)
        page.click("#swap")
        assert selected(page) == [6, 4]
        page.click("#compare")
        page.click('.point[data-point="2"] .dot')
        assert selected(page) == [6, 2]
        page.press("Escape")
        assert selected(page) == [6, None]

        page.click('[data-choose="8"]')
        assert selected(page) == [8, None]
        shown = "Array.from(document.querySelectorAll('#front figure:not([hidden])')).map("
        shown += "function (figure) { return figure.dataset.pair + figure.dataset.held; })"
        assert page.get(shown) == ["00"]
        page.choose("axes", 2)
        page.choose("workloads", 1)
        assert page.get(shown) == ["21"]
        page.click('figure:not([hidden]) .point[data-point="1"] .dot')
        assert selected(page) == [1, None]
        assert page.requests == [file.as_uri()]
        assert page.reports == []


@pytest.mark.thorough
def test_all_of_it_is_reached_by_keyboard_and_the_table_sorts(tmp_path):
    front = front_of(9, held_out=False)
    front.to_html(tmp_path / "front.html")
    order = (
        "Array.from(document.querySelectorAll('#points tbody tr')).map(function (row) { return +row.dataset.point; })"
    )
    focused = "+document.activeElement.dataset.point"
    with opened(tmp_path / "front.html", tmp_path) as page:
        for _ in range(3):  # the buttons of the picks
            page.press("Tab")
            assert page.get("document.activeElement.matches('button[data-choose]')")
        page.press("Tab")
        assert page.get("document.activeElement.matches('.point')")
        page.press("ArrowRight")
        page.press("ArrowRight")
        assert page.get(focused) == 2
        page.press("Enter")
        assert selected(page) == [2, None]
        page.press("End")
        page.press("Enter", SHIFT)
        assert selected(page) == [2, 8]

        page.click("#points th[data-sorts] button")
        assert page.get(order) == list(range(9))
        page.click("#points th[data-sorts] button")
        assert page.get(order) == list(range(9))[::-1]
        page.click("#points th:nth-child(4) button")
        assert page.get(order) == np.argsort(front.scores[:, 1]).tolist()
        page.get("document.querySelector('#points tbody tr').focus()")
        page.press("ArrowDown")
        page.press("Enter")
        assert selected(page)[0] == 7
        assert page.reports == []


@pytest.mark.thorough
def test_without_script_picture_table_and_files_are_there(tmp_path):
    page = front_of().to_html()
    still = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).replace(
        "</body>", "<script>document.body.dataset.ready = 1;</script></body>"
    )
    (tmp_path / "front.html").write_text(still, encoding="ascii")
    with opened(tmp_path / "front.html", tmp_path) as shown:
        assert shown.get("document.querySelector('#front svg').getBoundingClientRect().height") > 200
        assert shown.get("document.querySelector('.unscripted').offsetHeight") > 0
        assert shown.get("document.getElementById('tools').offsetHeight") == 0
        name, content = shown.download('#points tr[data-point="3"] a')
        assert (name, content) == ("wfq-3.json", config_of(3).to_json())
        assert shown.reports == []
