"""Pictures of results: what is drawn is what happened, and every picture is well-formed."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.plotting.svg import escape, ticks, time_unit
from equipoise.heuristics.registry import make_policy
from equipoise.simulation import Cluster, Profiles, RoundRules, generate_trace, simulate_rounds
from equipoise.simulation.results.plots import (
    cdf_steps,
    ftf_cdf,
    gpu_shares,
    jct_cdf,
    jobs_left,
    jobs_left_picture,
    relative_bars,
    schedule_picture,
    utilisation_picture,
)
from equipoise.simulation.results.schedule_plot import held_gpus

SVG = "{http://www.w3.org/2000/svg}"
GPUS = 8


@pytest.fixture(scope="module")
def results():
    trace = generate_trace(np.random.default_rng(5), num_jobs=12, mean_interarrival_s=900.0)
    return {
        name: simulate_rounds(trace, make_policy(name), gpus=GPUS, profiles=Profiles.builtin(), rules=RoundRules())
        for name in ("fifo", "gandiva-fair")
    }


def shapes(picture, tag):
    """Return (element, title) of every shape of one kind that says something when pointed at."""
    assert picture.isascii()
    root = ElementTree.fromstring(picture)
    return [
        (each, each.findtext(f"{SVG}title"))
        for each in root.iter(f"{SVG}{tag}")
        if each.find(f"{SVG}title") is not None
    ]


def texts(picture):
    return [each.text for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def area(path):
    """Return the area of the rectangles of a path."""
    found = re.findall(r"M(\S+) (\S+?)H(\S+?)V(\S+?)H(\S+?)z", path)
    assert found
    return sum((float(x1) - float(x0)) * (float(y1) - float(y0)) for x0, y0, x1, y1, _ in found)


def test_a_schedule_shows_each_job_with_its_time_and_its_gpus(results):
    for result in results.values():
        ends, starts = result.rounds["end_s"].to_numpy(), result.rounds["start_s"].to_numpy()
        picture = schedule_picture(result)
        drawn = {title: area(each.get("d")) for each, title in shapes(picture, "path")}
        gang_gpus = dict(zip(result.jobs["job_id"], result.jobs["gpus"], strict=True))
        whole = GPUS * ends[-1]
        pixels = (540 - 46 - 10) * (270 - 26 - 42)
        for name, gang in gang_gpus.items():
            ran = [index for index, names in enumerate(result.schedule) if name in names]
            expected = gang * float((ends[ran] - starts[ran]).sum()) / whole
            # Each edge is rounded to a tenth of a pixel.
            slack = 0.1 * len(ran) * (gang * 202 / GPUS + 1 + 484 * 120 / ends[-1])
            assert drawn[f"job {name}"] == pytest.approx(expected * pixels, abs=slack)
        assert len(drawn) == len(gang_gpus)


def test_the_rows_are_the_gpus_that_the_engine_gave(results):
    for result in results.values():
        table = held_gpus(result.stretches, GPUS, result.levels.start_s)
        busy = result.rounds["gpus_busy"].to_numpy()
        assert np.array_equal((table >= 0).sum(axis=1), busy)
        gang_gpus = result.jobs["gpus"].to_numpy()
        for row, names in zip(table, result.schedule, strict=True):
            assert {result.trace.job_id[place] for place in row[row >= 0]} == set(names)
            assert all((row == place).sum() == gang_gpus[place] for place in row[row >= 0])


def test_gpus_of_several_types_stand_one_type_above_the_other():
    trace = generate_trace(np.random.default_rng(2), num_jobs=8, mean_interarrival_s=100.0)
    own = Profiles.builtin()
    slow = replace(own, name="slow", rates={key: rate / 3 for key, rate in own.rates.items()})
    gpus = {"old": 8, "new": 3}
    result = simulate_rounds(trace, make_policy("gavel"), gpus=gpus, profiles={"old": slow, "new": own})
    table = held_gpus(result.stretches, 11, result.levels.start_s)
    runs = result.runs
    assert set(runs["gpu_type"]) == {"old", "new"}
    for number, name, kind, ids in zip(runs["round"], runs["job_id"], runs["gpu_type"], runs["gpu_ids"], strict=True):
        for gpu in ids:
            assert trace.job_id[table[number, gpu + (8 if kind == "new" else 0)]] == name
    assert (table >= 0).sum() == runs["gpu_ids"].map(len).sum()


def test_a_schedule_too_large_to_draw_says_what_is_drawn(results):
    result = results["fifo"]
    many = replace(result, cluster=Cluster.of(400))
    assert "Drawn: 160 of 400 GPUs" in texts(schedule_picture(many))
    assert not [text for text in texts(schedule_picture(result)) if text.startswith("Drawn")]


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=50))
def test_a_distribution_says_how_many_are_at_or_below_each_value(values):
    x, share = cdf_steps(np.array(values))
    assert (x[0], share[0], share[-1]) == (0.0, 0.0, 1.0)
    for value in values:
        assert share[np.flatnonzero(x <= value)[-1]] == np.mean(np.array(values) <= value)


def test_a_long_distribution_keeps_its_ends():
    values = np.random.default_rng(0).exponential(size=5000)
    x, share = cdf_steps(values)
    assert len(x) <= 601
    assert (x[1], x[-1], share[-1]) == (values.min(), values.max(), 1.0)
    assert np.allclose(share[1:], [np.mean(values <= each) for each in x[1:]])


def test_utilisation_adds_up_to_the_gpu_time_of_the_rounds(results):
    for result in results.values():
        rounds = result.rounds
        held = float((rounds["gpus_busy"] * (rounds["end_s"] - rounds["start_s"])).sum())
        end_s = float(rounds["end_s"].max())
        for until_s in (end_s, 2.5 * end_s):
            edges, share = gpu_shares(result, until_s)
            assert float((share * np.diff(edges)).sum()) * GPUS == pytest.approx(held)
            assert share.min() >= -1e-12
            assert share.max() <= 1 + 1e-9
        middle = float(rounds["start_s"].iloc[3] + rounds["end_s"].iloc[3]) / 2
        edges, share = gpu_shares(result, end_s, bins=100_000)
        assert share[np.searchsorted(edges, middle) - 1] * GPUS == pytest.approx(rounds["gpus_busy"].iloc[3])


def test_jobs_left_add_up_to_the_times_of_the_jobs(results):
    for result in results.values():
        # From the start of the first round after the arrival, a job is there until it ends.
        levels = result.levels
        there = float(((levels.running + levels.waiting) * (levels.end_s - levels.start_s)).sum())
        end_s = float(levels.end_s.max())
        for until_s in (end_s, 2.5 * end_s):
            edges, left = jobs_left(result, until_s)
            assert float((left * np.diff(edges)).sum()) == pytest.approx(there)
        assert left[-1] == 0
        middle = float(levels.start_s[3] + levels.end_s[3]) / 2
        edges, left = jobs_left(result, end_s, bins=100_000)
        assert left[np.searchsorted(edges, middle) - 1] == pytest.approx(levels.running[3] + levels.waiting[3])


def test_a_line_of_gpus_in_use_has_each_mean_where_it_was_taken(results):
    result = results["fifo"]
    _, share = gpu_shares(result, float(result.levels.end_s[-1]))
    ((path, _),) = shapes(utilisation_picture(result), "path")
    first, *rest = re.findall(r"[MV](?:\S+ )?([\d.]+)", path.get("d"))
    heights = 26 + 62 * (1.0 - np.append(share, share[-1]))
    assert np.allclose(np.array([first, *rest], float), heights, atol=0.051)


def test_a_line_of_jobs_left_has_their_number_as_its_height(results):
    result = results["fifo"]
    end_s = float(result.levels.end_s.max())
    _, left = jobs_left(result, end_s)
    ((path, tip),) = shapes(jobs_left_picture(result), "path")
    numbers = [float(number) for number in re.findall(r"[0-9.]+", path.get("d"))]
    assert numbers[::2] == pytest.approx((46 + 484 * np.linspace(0, 1, 241)).tolist(), abs=0.1)
    heights = 26 + 62 * (1 - left / left.max())
    assert numbers[1::2] == pytest.approx([*heights, heights[-1]], abs=0.1)
    assert tip == f"fifo: {left.mean():,.1f} jobs on average, at most {left.max():,.1f}"
    assert jobs_left_picture(result, until_s=end_s) == jobs_left_picture(result) != jobs_left_picture(result, until_s=1)


def test_bars_are_as_long_as_the_ratios(results):
    bars = shapes(relative_bars(results, "gandiva-fair"), "rect")
    width = {title.rsplit(" ", 1)[0]: float(each.get("width")) for each, title in bars}
    for key in ("makespan_s", "avg_jct_s", "worst_ftf"):
        ratio = results["fifo"].metrics[key] / results["gandiva-fair"].metrics[key]
        assert width[f"fifo: {key}"] / width[f"gandiva-fair: {key}"] == pytest.approx(ratio, rel=2e-3)
    with pytest.raises(eq.InvalidInput, match="base = 'las': must be one of fifo, gandiva-fair"):
        relative_bars(results, "las")


def test_bars_relative_to_nothing_are_the_figures_themselves(results):
    result = results["fifo"]
    # Of 12 jobs, none or three took far longer than their share.
    none = replace(result, end_s=result.trace.arrival_s + result.exclusive_s)
    slow = np.where(np.arange(12) < 3, 4.0, 1.0)
    some = replace(result, end_s=result.trace.arrival_s + slow * result.exclusive_s)
    picture = relative_bars({"none": none, "some": some}, "none")
    assert "unfair jobs, %" in texts(picture)
    assert "25.00" in texts(picture)


def test_one_result_or_several_are_drawn_with_a_line_each(results):
    for draw in (jct_cdf, ftf_cdf, utilisation_picture, jobs_left_picture):
        assert len(shapes(draw(results["fifo"]), "path")) == 1
        several = shapes(draw({f"{name} {k}": result for name, result in results.items() for k in range(6)}), "path")
        assert len({(each.get("class"), title) for each, title in several}) == 12
        # More policies than colours: the rest are dashed.
        assert len({each.get("class") for each, _ in several}) == 12


def test_names_cannot_break_out_of_a_picture(results):
    result = results["fifo"]
    hostile = '</title><script>alert("1")</script>\x00\ud800'
    trace = replace(result.trace, job_id=[f"{hostile}{k}" for k in range(12)])
    odd = replace(result, trace=trace, policy=hostile)
    for picture in (
        schedule_picture(odd),
        jct_cdf(odd),
        ftf_cdf({hostile: odd}),
        relative_bars({hostile: odd}, hostile),
        jobs_left_picture({hostile: odd, "fifo": result}),
    ):
        assert "<script" not in picture
        ElementTree.fromstring(picture)
    assert escape("ü<\n") == "&#252;&lt; "


@given(st.floats(1e-6, 1e9), st.integers(2, 12))
def test_ticks_are_round_and_few(limit, most):
    found = ticks(limit, most)
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] <= limit * (1 + 1e-6)
    assert len(found) <= most + 1


def test_time_is_told_in_the_unit_that_reads_best():
    assert [time_unit(seconds)[0] for seconds in (600.0, 30_000.0, 1e6)] == ["minutes", "hours", "days"]
