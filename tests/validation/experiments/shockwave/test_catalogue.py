"""The paper's experiments: Table 1 exactly, the measures by hand, and every experiment at a small size."""

import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cli.main import run
from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics.registry import make_policy
from equipoise.simulation import JobState, exclusive_s
from equipoise.simulation.rounds.policy import RoundJob
from equipoise.validation.experiments.experiment import ExperimentOutcome, ExperimentSettings, outcome_page
from equipoise.validation.experiments.papers import EXPERIMENTS
from equipoise.validation.experiments.plots import Bars, Curves, Schedule
from equipoise.validation.experiments.shockwave.filter_model import (
    FRACTIONS,
    GPUS,
    PRINTED,
    REQUESTS,
    SERIAL_ROUNDS,
    FilterRun,
    adaptive,
    best_sequence,
    egalitarian_rounds,
    equal_to_print,
    filter_rows,
    filter_runs,
    play,
)
from equipoise.validation.experiments.shockwave.foresight import late_alarms
from equipoise.validation.experiments.shockwave.noise import Misled
from equipoise.validation.experiments.shockwave.policies import relative
from equipoise.validation.experiments.shockwave.pollux import pollux_workloads
from equipoise.validation.experiments.shockwave.run import workload

SHOCKWAVE = EXPERIMENTS["shockwave"]
FIGURES = SHOCKWAVE.experiments
SMALL = ExperimentSettings(jobs=4, repeats=1)
fractions = st.lists(st.sampled_from(FRACTIONS), min_size=1, max_size=7)


# -- Table 1 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "finishes", "worst", "mean"),
    [
        ("adaptive", (7, 5, 3), Fraction(5, 6), Fraction(5)),
        ("1/3", (7, 6, 4), Fraction(1), Fraction(17, 3)),
        ("2/3", (7, 5, 5), Fraction(10, 9), Fraction(17, 3)),
        ("1", (7, 6, 5), Fraction(10, 9), Fraction(6)),
        ("best sequence", (7, 5, 4), Fraction(8, 9), Fraction(16, 3)),
    ],
)
def test_table_1(name, finishes, worst, mean):
    run_ = filter_runs()[name]
    assert tuple(run_.finishes[job] for job in "ABC") == finishes
    assert (run_.worst, run_.mean_completion, run_.makespan) == (worst, mean, 7)


def test_the_instance_is_the_printed_one():
    assert GPUS == 4
    assert SERIAL_ROUNDS == {"A": 12, "B": 8, "C": 6}
    assert REQUESTS == {"A": 3, "B": 2, "C": 2}
    assert [egalitarian_rounds(job) for job in "ABC"] == [9, 6, Fraction(9, 2)]
    assert [row["equal"] for row in filter_rows()] == [True] * 4 + [None]
    by_job = filter_runs()["2/3"].fairness
    assert [by_job[job] for job in "ABC"] == [Fraction(7, 9), Fraction(5, 6), Fraction(10, 9)]


@pytest.mark.parametrize(
    ("fraction", "grid"),
    [
        (Fraction(2, 3), "AABB BBCC AACC AABB BBCC AAA AAA"),  # as printed
        # By hand: one job is kept, B first, and the others share what it leaves, C before those with more to do.
        (Fraction(1, 3), "BBCC AAAC BBCC AAAC AABB AABB AA"),
        # All are kept: three get one GPU each, and who has attained least a second one.
        (Fraction(1), "ABBC AABC ABCC ABBC AABC AAAB AA"),
    ],
)
def test_the_rounds_of_a_fixed_fraction(fraction, grid):
    assert play([fraction]).grid == grid


def test_a_run_that_differs_from_the_print_in_one_round_is_not_equal():
    run_ = play([Fraction(2, 3)])
    assert equal_to_print(run_, PRINTED["2/3"])
    swapped = FilterRun(gpus=(run_.gpus[1], run_.gpus[0], *run_.gpus[2:]))  # ends and fairness stay the same
    assert swapped.finishes == run_.finishes
    assert not equal_to_print(swapped, PRINTED["2/3"])
    assert not equal_to_print(run_, replace(PRINTED["2/3"], fairness="0.78/0.84/1.11"))
    assert not equal_to_print(best_sequence(), PRINTED["adaptive"])


@given(fractions)
def test_every_sequence_of_fractions_does_the_work_and_is_no_better_than_the_best_one(sequence):
    run_ = play(sequence)
    done = dict.fromkeys(SERIAL_ROUNDS, 0)
    for given_ in run_.rounds:
        assert sum(given_.values()) <= GPUS
        for job, gpus in given_.items():
            assert gpus <= REQUESTS[job]
            done[job] += gpus
    assert done == SERIAL_ROUNDS
    assert run_.makespan == 7  # 26 GPU-rounds on 4 GPUs
    best = best_sequence()
    assert (best.worst, best.mean_completion) <= (run_.worst, run_.mean_completion)


def test_the_best_sequence_of_fractions_is_one():
    third = Fraction(1, 3)
    assert play([third, third, Fraction(1), third, Fraction(2, 3), third]).grid == best_sequence().grid


def test_only_the_printed_adaptive_finishes_are_so_fair_among_all_schedules():
    # Forwards over every schedule of whole GPUs within the requests, idle ones included, for eight rounds: who ends
    # later than that is less fair. What counts is what is left and who has ended when.
    reached = {((12, 8, 6), (0, 0, 0))}
    ended = set()
    for now in range(1, 9):
        following = set()
        for left, ends in reached:
            wanted = (min(most, work) for most, work in zip((3, 2, 2), left, strict=True))
            for given_ in itertools.product(*(range(most + 1) for most in wanted)):
                if sum(given_) <= 4:
                    after = tuple(work - gpus for work, gpus in zip(left, given_, strict=True))
                    done = tuple(end or (0 if work else now) for end, work in zip(ends, after, strict=True))
                    (following if any(after) else ended).add((after, done))
        reached = following
    fairest = {ends for _, ends in ended if max(ends[0] / 9, ends[1] / 6, ends[2] / 4.5) <= 5 / 6 + 1e-12}
    assert fairest == {(7, 5, 3)}
    assert tuple(adaptive().finishes.values()) == (7, 5, 3)
    assert all(sum(given_) == 4 for given_ in adaptive().gpus[:5])


@pytest.mark.parametrize("sequence", [[], [Fraction(0)], [Fraction(3, 2)]])
def test_fractions_out_of_range_are_refused(sequence):
    with pytest.raises(InvalidInput, match="fractions"):
        play(sequence)


# -- Measures ----------------------------------------------------------------------------------------------------------


def test_late_alarms_by_hand():
    # Columns: time, changes to come, fairness by greedy, restatement, oracle. The last round counts no more.
    history = np.array(
        [
            [0.0, 1, 1.0, 1.0, 1.0],
            [120.0, 1, 1.0, 1.1, 1.2],
            [240.0, 1, 1.0, 1.1, 1.2],
            [360.0, 0, 1.2, 1.2, 1.2],
        ]
    )
    assert late_alarms(history) == {
        "alarm s": 120.0,
        "greedy late s": 240.0,
        "greedy missed %": 100.0,
        "restatement late s": 0.0,
        "restatement missed %": 0.0,
    }
    assert late_alarms(history[[0, 3]]) is None


def test_figures_relative_to_shockwave():
    def row(policy, makespan):
        return {"policy": policy, "makespan s": makespan, "mean jct s": 10.0, "worst ftf": 1.0, "unfair %": 0.0}

    ratios = relative([row("gavel", 30.0), row("shockwave", 20.0)])
    assert ratios["gavel"]["makespan s"] == 1.5
    assert np.isnan(ratios["gavel"]["unfair %"])


@given(noise=st.floats(0.0, 1.0), seed=st.integers(0, 99), speeds=st.booleans())
def test_noise_keeps_the_epochs_and_is_the_same_at_every_moment(noise, seed, speeds):
    def job(finished, future):
        known = JobState(
            id=7,
            gpus=1,
            mode="gns",
            total_epochs=100,
            finished_epochs=finished,
            batch_sizes=(16,),
            regime_epochs=(finished,),
            epoch_s={16: 30.0, 32: 20.0, 64: 15.0},
            future=future,
            attained_s=0.0,
            waiting_s=0.0,
        )
        given_ = dict.fromkeys(RoundJob.__dataclass_fields__)
        return RoundJob(**given_ | {"id": 7, "trace_index": 3, "make_state": lambda: known})

    misled = Misled(make_policy("las"), noise, seed, speeds)
    early = misled._believed(job(0.0, ((16, 20.0), (32, 30.0), (64, 50.0))))
    late = misled._believed(job(10.0, ((16, 10.0), (32, 30.0), (64, 50.0))))
    assert sum(epochs for _, epochs in early.future) == pytest.approx(100.0)
    assert sum(epochs for _, epochs in late.future) == pytest.approx(90.0)
    assert [size for size, _ in early.future] == [16, 32, 64]
    assert early.future[1][1] / early.future[2][1] == pytest.approx(late.future[1][1] / late.future[2][1])
    assert early.epoch_s == late.epoch_s
    assert speeds or early.epoch_s == {16: 30.0, 32: 20.0, 64: 15.0}
    if noise == 0.0:
        assert early == job(0.0, ((16, 20.0), (32, 30.0), (64, 50.0))).make_state()


def test_workloads_are_the_same_for_the_same_seed_and_differ_in_what_is_asked():
    assert workload(9, 4, gpus=8).to_frame().equals(workload(9, 4, gpus=8).to_frame())
    assert set(workload(40, 0, gpus=8, dynamic=0.0).mode) == {"static"}
    assert "static" not in workload(40, 0, gpus=8, dynamic=1.0).mode
    slow, fast = workload(9, 0, gpus=8), workload(9, 0, gpus=8, load=2.0)
    assert fast.arrival_s == pytest.approx(slow.arrival_s / 2)


@pytest.mark.parametrize(
    "arguments", [{"jobs": 3}, {"gpus": 7}, {"seed": -1}, {"repeats": 0}, {"jobs": 5.5}, {"gpus": True}]
)
def test_bad_setups_are_refused(arguments):
    with pytest.raises(InvalidInput, match=next(iter(arguments))):
        ExperimentSettings(**arguments)


# -- Plots -------------------------------------------------------------------------------------------------------------


def shapes(svg, kind):
    return [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith(kind)]


def test_plots_draw_every_point_and_leave_out_what_is_not_finite():
    curves = Curves(
        title="a < b",
        x_axis="x",
        y_axis="y",
        curves={"one": ([1e-4, 1e-2, 10.0], [1.0, 2.0, float("nan")]), "two": ([1.0], [3.0])},
        log_x=True,
        reference=1.5,
    ).svg()
    assert len(shapes(curves, "circle")) == 3
    bars = Bars(title="t", y_axis="y", groups=["g", "h"], series={"one": [1.0, float("nan")], "two": [0.5, 2.0]}).svg()
    heights = sorted(float(each.get("height")) for each in shapes(bars, "rect"))
    assert heights == pytest.approx([10.0, 10.0, 55.0, 110.0, 220.0])  # the legend's, and the bars
    rounds = [{"a": 2}, {"a": 2, "b": 1}, {"b": 1}, {"a": 2}]
    schedule = Schedule(title="s", rounds=rounds, jobs=["a", "b"]).svg()
    assert len(shapes(schedule, "rect")) == 3


def test_stairs_go_right_before_they_go_up():
    svg = Curves(title="t", x_axis="x", y_axis="y", curves={"c": ([0.0, 1.0], [0.0, 1.0])}, steps=True).svg()
    line = next(each.get("d") for each in shapes(svg, "path") if "H" in each.get("d"))
    found = re.fullmatch(r"M(\S+) (\S+?)H(\S+?)V(\S+)", line)
    left, low, right, high = map(float, found.groups())
    assert left < right
    assert high < low


# -- Experiments -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("11", "14", "17")])  # these need data
def test_every_experiment_runs_small_and_reports(name):
    steps = []
    outcome = FIGURES[name].run(replace(SMALL, on_step=lambda done, total: steps.append((done, total))))
    if outcome.skipped:
        assert name == "2"
        return
    assert steps[-1][0] == steps[-1][1]
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert outcome.rows
    assert outcome.claims
    assert outcome.plots
    assert outcome.in_shape is all(claim.holds for claim in outcome.claims)
    assert all(claim.numbers for claim in outcome.claims)
    for plot in outcome.plots:
        ElementTree.fromstring(plot.svg())
    page = outcome_page(SHOCKWAVE, {name: outcome}, SMALL)
    assert page.count("<svg") == len(outcome.plots)


def test_the_same_seed_gives_the_same_rows():
    rows = [FIGURES["8"].run(SMALL).rows for _ in range(2)]
    assert rows[0] == rows[1]
    assert rows[0] != FIGURES["8"].run(replace(SMALL, seed=1)).rows


def test_pollux_is_skipped_in_words_without_its_file(tmp_path):
    assert "--data" in FIGURES["17"].run(SMALL).skipped
    outcome = FIGURES["17"].run(replace(SMALL, data=tmp_path))
    assert "pollux_160_w*.csv" in outcome.skipped
    assert outcome.in_shape is None


def pollux_files(folder, **traces):
    (folder / "pollux").mkdir()
    for name, jobs in traces.items():
        head = "job_id,submit_time_s,duration_s,num_gpus,model,batch_size\n"
        (folder / "pollux" / f"pollux_160_{name}.csv").write_text(head + jobs)
    return ExperimentSettings(jobs=4, data=folder)


def test_pollux_jobs_take_the_time_the_files_say_and_are_compared_trace_by_trace(tmp_path):
    setup = pollux_files(tmp_path, w1="a,5,600,2,net,64\nb,0,300,1,net,32\n", w2="a,1,60,1,net,\nb,0,1200,1,net,8\n")
    traces, gpus = pollux_workloads(setup)
    assert list(traces) == ["pollux_160_w1", "pollux_160_w2"]
    trace, profiles = traces["pollux_160_w1"]
    assert trace.job_id == ("b", "a")
    assert trace.arrival_s.tolist() == [0.0, 5.0]
    assert exclusive_s(trace, profiles) == pytest.approx([300.0, 600.0])
    assert gpus == 2  # 64 GPUs for 160 jobs; 4 asked for
    outcome = FIGURES["17"].run(setup)
    rows = {(row["trace"], row["policy"]): row for row in outcome.rows}
    for column in ("makespan s", "unfair %", "all worst ftf"):
        each = [rows[name, "mst"][column] for name in traces]
        assert rows["mean", "mst"][column] == pytest.approx(sum(each) / 2)
    # The job of 60 s comes just too late for a round, and does not count: it lasts less than one.
    assert rows["pollux_160_w2", "mst"]["worst ftf"] < rows["pollux_160_w2", "mst"]["all worst ftf"]


def test_a_pollux_file_that_is_not_one_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"duration_s.*pollux_160_w1.csv, line 2"):
        pollux_workloads(pollux_files(tmp_path, w1="a,5,-600,2,transformer,64\n"))


def test_an_unknown_figure_is_refused_with_the_list():
    assert SHOCKWAVE.find("1").name == SHOCKWAVE.find("15").name == "table1"
    with pytest.raises(InvalidInput, match="lambda"):
        SHOCKWAVE.find("99")


def test_an_outcome_is_in_shape_only_if_every_claim_holds():
    assert ExperimentOutcome(rows=[], skipped="no").in_shape is None


# -- The command -------------------------------------------------------------------------------------------------------


def test_the_command_lists_the_figures(capsys):
    assert run(["bench", "shockwave", "--json"]) == 0
    assert [row["figure"] for row in json.loads(capsys.readouterr().out)] == list(FIGURES)


def test_the_command_prints_json_and_writes_a_page(capsys, tmp_path):
    page = tmp_path / "page.html"
    assert run(["bench", "shockwave", "--figure", "table1", "--json", "--html", str(page)]) == 0
    told = json.loads(capsys.readouterr().out)["table1"]
    assert told["in_shape"] is True
    assert [row["equal"] for row in told["rows"]] == [True, True, True, True, None]
    assert page.read_text(encoding="utf-8").count("<svg") == 5


def test_the_command_says_what_is_wrong_and_what_is_skipped(capsys):
    assert run(["bench", "shockwave", "--figure", "6"]) == 2
    assert "table1" in capsys.readouterr().err
    assert run(["bench", "shockwave", "--figure", "17"]) == 0
    assert "skipped: needs the shared data" in capsys.readouterr().out
