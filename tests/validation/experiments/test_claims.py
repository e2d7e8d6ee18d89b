"""Checks of PCS's claims: each holds on figures as the paper's, and fails on a planted wrong result."""

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.validation.experiments.claims import agrees, at_least, at_most, below, somewhere
from equipoise.validation.experiments.pcs.clusters import cluster_claims, printed_claims
from equipoise.validation.experiments.pcs.paper import FIGURE_1, FIGURE_7, FIGURE_9C, FIGURE_10A
from equipoise.validation.experiments.pcs.published_front import front_claims
from equipoise.validation.experiments.pcs.run import Figures, interval
from equipoise.validation.experiments.pcs.search_time import search_claims as time_claims
from equipoise.validation.experiments.pcs.search_time import simulation_claims
from equipoise.validation.experiments.pcs.searches import front_claim, search_claims
from equipoise.validation.experiments.pcs.sensitivity import error_claims, load_claims, within_box, within_relative
from equipoise.validation.experiments.pcs.spaces import found_share, space_claims
from equipoise.validation.experiments.pcs.tail_errors import tail_claims
from equipoise.validation.experiments.pcs.testbed import testbed_claims as check_testbed
from equipoise.validation.experiments.pcs.toy import toy_claims
from equipoise.validation.experiments.pcs.trade_off import least_error, trade_off_claims

AFS = Figures(
    jct_s=100.0, p90_jct_s=200.0, error_pct=20.0, p90_error_pct=60.0, p99_error_pct=300.0, unfair_pct=5.0,
    p90_unfair_pct=10.0, most_unfair_pct=50.0,
)  # fmt: skip
GOOD = replace(AFS, jct_s=105.0, p90_jct_s=210.0, error_pct=2.0, p90_error_pct=6.0, p99_error_pct=30.0)
#: A run of each policy as the paper has it.
RUN = dict.fromkeys(("afs", "srsf", "themis"), AFS) | {"fifo": replace(AFS, jct_s=900.0, error_pct=0.0)}
RUN |= dict.fromkeys(("pcs-jct", "pcs-bal", "pcs-pred"), GOOD)


def holds(claims):
    return [claim.holds for claim in claims]


def planted(policy, **wrong):
    """Return the runs of two workloads with a wrong figure of one policy in both."""
    return [RUN | {policy: replace(RUN[policy], **wrong)}] * 2


@pytest.mark.parametrize("nothing", [at_most("s", {}, 1.0), at_least("s", {}, 1.0), below("s", {})])
def test_nothing_measured_is_no_claim_that_holds(nothing):
    assert not nothing.holds


def test_what_is_not_a_number_never_passes():
    for claim in (
        at_most("s", {"a": math.nan}, 1.0),
        at_least("s", {"a": math.nan}, 1.0),
        below("s", {"a": (math.nan, 1.0)}, equal=True),
        agrees("s", {"a": (math.nan, 1.0)}, within=1.0),
        somewhere("s", {"a": (math.nan, 0.0)}, start=1.0, goal=1.0, unit="", printed=""),
    ):
        assert not claim.holds
        assert "nan" in claim.numbers


def test_bounds_are_included_and_one_wrong_value_suffices():
    assert at_most("s", {"a": 1.0, "b": 0.5}, 1.0).holds
    assert not at_most("s", {"a": 1.0, "b": 1.1}, 1.0).holds
    assert not at_least("s", {"a": 1.0, "b": 0.9}, 1.0).holds
    assert not below("s", {"a": (1.0, 1.0)}).holds
    assert below("s", {"a": (1.0, 1.0)}, equal=True).holds
    assert not agrees("s", {"a": (1.0, 1.1)}, within=0.05).holds
    assert somewhere("s", {"a": (1.0, 9.0), "b": (9.0, 1.0)}, start=8.0, goal=2.0, unit="", printed="").holds
    assert not somewhere("s", {"a": (1.0, 1.0), "b": (9.0, 9.0)}, start=8.0, goal=2.0, unit="", printed="").holds


def test_printed_numbers_stand_beside_ours():
    assert at_most("s", {"a": 1.0}, 1.0, unit=" s", printed="2").numbers == "a 1 s; printed 2"
    assert agrees("s", {"a": (1.0, 1.1)}, within=1.0).numbers == "a 1 (printed 1.1)"


def test_figure_1():
    rows = [
        {"policy": name, "jct s": jct, "printed jct s": jct, "error %": error, "printed error %": error,
         "most unfair %": unfair, "printed unfair %": unfair}
        for name, (jct, error, unfair) in FIGURE_1.items()
    ]  # fmt: skip
    assert all(holds(toy_claims(rows)))
    for place, column in enumerate(("jct s", "error %", "most unfair %")):
        wrong = [{**rows[0], column: rows[0][column] + 1.0}, *rows[1:]]
        assert holds(toy_claims(wrong)) == [each != place for each in range(3)]


@pytest.mark.parametrize(
    ("policy", "wrong", "claim"),
    [
        ("pcs-bal", {"p90_error_pct": 61.0}, 0),
        ("pcs-jct", {"p90_jct_s": 230.0}, 1),
        ("pcs-jct", {"jct_s": 111.0}, 1),
        ("pcs-jct", {"error_pct": 21.0}, 2),
        ("pcs-pred", {"most_unfair_pct": 101.0}, 3),
        ("pcs-pred", {"p90_unfair_pct": 101.0}, 4),
    ],
)
def test_figures_4_to_6(policy, wrong, claim):
    assert all(holds(check_testbed([RUN] * 2, [RUN] * 2)))
    assert holds(check_testbed(planted(policy, **wrong), [RUN] * 2)) == [each != claim for each in range(5)]


def test_figure_5_counts_other_jobs():
    assert not check_testbed([RUN] * 2, planted("pcs-jct", jct_s=130.0))[1].holds


def printed_run(cluster):
    return {
        name: replace(AFS, jct_s=printed.jct, error_pct=printed.error_pct, p99_error_pct=printed.p99_error_pct)
        for name, printed in FIGURE_7[cluster].items()
    }


def test_figure_7_on_the_printed_numbers():
    runs = {name: [printed_run(name)] for name in FIGURE_7}
    assert all(holds(cluster_claims(runs, {})))
    slow = runs | {"0e4a51": [printed_run("0e4a51") | {"pcs-jct": replace(AFS, jct_s=4.1)}]}
    assert holds(cluster_claims(slow, {})) == [False, True, True, True]
    # 12 of the 18 printed picks are within 1.5 to 4.
    assert cluster_claims(runs, {})[1].numbers.startswith("12 of 18")
    even = {
        name: [run[0] | {pick: replace(AFS, jct_s=1.0) for pick in ("pcs-bal", "pcs-pred")}]
        for name, run in runs.items()
    }
    assert not cluster_claims(even, {})[1].holds
    for place, (column, value) in enumerate([("error_pct", 1.1), ("p99_error_pct", 12.0)]):
        worse = {
            name: [run[0] | {"pcs-pred": replace(run[0]["pcs-pred"], **{column: value})}] for name, run in runs.items()
        }
        assert holds(cluster_claims(worse, {})) == [True, True, place != 0, place != 1]


def test_figure_7_on_full_traces():
    whole = {name: printed_run(name) for name in ("0e4a51", "2869ce")}
    assert all(holds(printed_claims(whole)))
    assert len(cluster_claims({name: [printed_run(name)] for name in FIGURE_7}, whole)) == 7
    for place, column in enumerate(("jct_s", "error_pct", "p99_error_pct")):
        run = whole["2869ce"]["srsf"]
        wrong = whole | {"2869ce": whole["2869ce"] | {"srsf": replace(run, **{column: getattr(run, column) + 0.01})}}
        assert holds(printed_claims(wrong)) == [each != place for each in range(3)]


@pytest.mark.parametrize(
    ("policy", "wrong", "claim"),
    [
        ("srsf", {"error_pct": 21.0}, 0),
        ("afs", {"p99_error_pct": 249.0}, 1),
        ("pcs-pred", {"p99_error_pct": 101.0}, 2),
        ("pcs-pred", {"jct_s": 111.0}, 3),
    ],
)
def test_figure_8(policy, wrong, claim):
    assert all(holds(tail_claims([RUN] * 2)))
    assert holds(tail_claims(planted(policy, **wrong))) == [each != claim for each in range(4)]


def test_figure_9():
    rows = [{"jobs": 512, "gpus": 128, "wfq s": 60.0, "seconds of 1330": 930.0, "printed s": 931.0}]
    assert all(holds((*simulation_claims(rows), *time_claims(rows))))
    assert not any(
        holds((*simulation_claims([rows[0] | {"wfq s": 61.0}]), *time_claims([rows[0] | {"printed s": 929.0}])))
    )
    counts = [
        {"evaluations": count, "parameters: points %": better, "direct: points %": worse,
         "parameters: hypervolume %": better, "direct: hypervolume %": worse}
        for count, (better, worse) in FIGURE_9C.items()
    ]  # fmt: skip
    assert all(holds(space_claims(counts)))
    assert holds(space_claims([*counts[1:], counts[0] | {"direct: points %": 31.0}])) == [False, True]
    assert holds(space_claims([*counts[1:], counts[0] | {"direct: hypervolume %": 31.0}])) == [True, False]


def test_points_that_are_found_by_hand():
    best = np.array([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0]])
    assert found_share(best, np.array([[1.009, 4.03], [2.1, 2.0]])) == pytest.approx(1 / 3)
    assert found_share(best, best) == 1.0


def test_figure_10():
    found = {
        (error, name): [replace(AFS, jct_s=100.0, error_pct=fifo)] for error, (_, fifo) in FIGURE_10A.items()
        for name in ("fifo", "afs", "pcs-jct", "pcs-bal", "pcs-pred")
    }  # fmt: skip
    assert all(holds(error_claims(found)))
    assert holds(error_claims(found | {(40, "pcs-bal"): [replace(AFS, error_pct=22.0)]})) == [False, True, True]
    assert holds(error_claims(found | {(20, "pcs-jct"): [replace(AFS, jct_s=106.0)]})) == [True, False, True]
    assert holds(error_claims(found | {(40, "pcs-pred"): [replace(AFS, jct_s=106.0, error_pct=1.0)]}))[2] is False


def test_points_near_a_front_by_hand():
    front = np.array([[1.0, 10.0], [5.0, 1.0]])
    scores = np.array([[1.05, 10.5], [1.2, 10.0], [4.0, 1.0], [9.0, 9.0]])
    assert within_relative(scores, front, 0.1).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert within_box(scores, front, np.array([0.3, 0.1])).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert all(holds(load_claims({"relative": [0.75], "of the box": [0.8]})))
    assert holds(load_claims({"relative": [0.9, 0.6], "of the box": [0.8]})) == [False, True]
    assert not any(holds(load_claims({"relative": [], "of the box": [math.nan]})))


def test_the_searches():
    best, worst = [[0.5, 0.90], [0.5, 0.92], [0.5, 0.91]], [[0.6, 0.80], [0.6, 0.81], [0.6, 0.80]]
    reached = {"spea2": best, "nsga2": best, "random": worst, "spea2, raw units": worst}
    assert all(holds(search_claims(reached)))
    # Equal, worse, and better on average by less than the differences vary.
    for wrong in (worst, [[0.5, 0.7]] * 3, [[0.5, 0.70], [0.5, 0.99], [0.5, 0.81]]):
        assert holds(search_claims(reached | {"nsga2": wrong})) == [True, False, True]
        assert not search_claims(reached | {"spea2": wrong})[0].holds
    assert not search_claims(reached | {"spea2, raw units": best})[2].holds
    assert not any(holds(search_claims({label: values[:1] for label, values in reached.items()})))
    assert not front_claim([]).holds


def test_the_published_front():
    published, ours = {"tuned on": 0.8, "held out": 0.9}, {"tuned on": [0.8, 0.85], "held out": [0.95, 0.9]}
    assert all(holds(front_claims(published, ours, 1e-12, {1: 239.0, 3: 500.0})))
    assert holds(front_claims(published, ours, 1e-3, {1: 241.0})) == [False, True, True, False]
    for place, where in enumerate(published):
        wrong = ours | {where: [0.99, 0.7]}
        assert holds(front_claims(published, wrong, 0.0, {1: 1.0})) == [True, place != 0, place != 1, True]


def test_the_trade_off():
    policies = {name: RUN[name] for name in ("afs", "srsf", "themis", "fifo")}
    front = np.array([[101.0, 4.0], [500.0, 0.5], [900.0, 0.0]])
    assert all(holds(trade_off_claims([policies], [front])))
    exact = policies | {"srsf": replace(AFS, jct_s=90.0, error_pct=1.0)}
    assert holds(trade_off_claims([exact], [front])) == [False, True, True, False]
    assert not trade_off_claims([policies | {"fifo": GOOD}], [front])[1].holds
    assert not trade_off_claims([policies], [front[1:]])[2].holds
    assert math.isnan(least_error(front, 50.0))
    assert least_error(front, 600.0) == 0.5


def test_intervals_by_hand():
    # Student's t at 97.5% with two degrees of freedom is 4.302653.
    middle, half = interval([1.0, 2.0, 3.0])
    assert (middle, half) == (2.0, pytest.approx(4.302653 / math.sqrt(3.0), rel=1e-6))
    assert math.isnan(interval([1.0])[1])
