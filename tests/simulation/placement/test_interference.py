"""Interference by one ratio, by a table of pairs, and drawn; slowdown by a table of unconsolidated runs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

import equipoise as eq
from equipoise.simulation import Trace
from equipoise.simulation.placement.consolidation import MeasuredSlowdown, SlowdownTable
from equipoise.simulation.placement.interference import (
    ConstantInterference,
    DrawnInterference,
    PairTable,
    find_interference,
)
from equipoise.simulation.placement.speeds import DurationSpeeds, Running

GAVEL = DATA / "gavel"
HEADER = "gpu,job_a,job_b,solo_a_steps_s,xi_a,xi_b"
LINES = [
    "v100,LM (batch size 5),LM (batch size 5),1,2.0,2.0",
    "v100,LM (batch size 5),A3C,1,1.5,3.0",
    "v100,A3C,LM (batch size 5),1,3.0,1.5",
    "v100,A3C,A3C,1,,",
    "k80,A3C,A3C,1,1.25,1.25",
]
PAIRS = PairTable(ratios={("a", "b"): 1.5, ("b", "a"): 3.0, ("a", "a"): 2.0, ("c", "a"): 4.0})


def running(model="LM", batch_size=5, gpus=1, machines=1, fewest_machines=1, gang_gpus=None) -> Running:
    return Running(
        trace_index=0,
        model=model,
        gang_gpus=gang_gpus or gpus,
        gpus=gpus,
        machines=machines,
        fewest_machines=fewest_machines,
        tier=int(machines > 1),
        batch_size=batch_size,
        sub_batch=batch_size,
    )


def jobs(models, batch_sizes, gang_gpus=None) -> Trace:
    count = len(models)
    return Trace(
        job_id=range(count),
        model=models,
        batch_size=batch_sizes,
        gang_gpus=[1] * count if gang_gpus is None else gang_gpus,
        arrival_s=np.zeros(count),
        duration_s=np.arange(1.0, count + 1.0),
    )


def written(folder, lines, header=HEADER):
    path = folder / "pairs.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


# -- Pairs -------------------------------------------------------------------------------------------------------------


def test_a_pair_has_one_ratio_for_each_of_its_jobs(tmp_path):
    table = PairTable.read(written(tmp_path, LINES))
    lm, a3c = running(), running("A3C", 4)
    assert table.ratio(lm, [a3c]) == 1.5
    assert table.ratio(a3c, [lm]) == 3.0
    assert table.ratio(lm, [a3c, lm]) == 2.0  # the largest
    assert PairTable.read(written(tmp_path, LINES), gpu="k80").ratio(a3c, [a3c]) == 1.25


def test_a_missing_pair_is_refused_by_name_or_has_the_default(tmp_path):
    table = PairTable.read(written(tmp_path, LINES))
    a3c, other = running("A3C", 4), running("LM", 10)
    trace = jobs(["A3C", "LM", "LM"], [4, 5, 5])
    with pytest.raises(eq.InvalidInput, match="interference = 'A3C beside A3C': the table has no ratio"):
        table.ratio(a3c, [running(), a3c])
    with pytest.raises(eq.InvalidInput, match=r"interference = 'A3C beside LM \(batch size 10\)'"):
        table.ratio(a3c, [other])
    assert table.missing(trace) == (("A3C", "A3C"),)
    assert table.missing(jobs(["LM"], [5])) == ()
    filled = PairTable.read(written(tmp_path, LINES), default=1.75)
    assert filled.ratio(a3c, [a3c]) == filled.ratio(a3c, [other]) == 1.75
    assert filled.ratio(running(), [a3c]) == 1.5
    assert filled.missing(trace) == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v100,LM,VGG,1,0.9,1.0", "xi_a = 0.9: at least 1 .*line 7"),
        ("v100,LM,VGG,1,1.0,x", "xi_b = 'x': must be a number .*line 7"),
        ("v100,LM,VGG,1,inf,1.0", "xi_a = inf: must be finite .*line 7"),
        ("v100,,VGG,1,1.0,1.0", "job_a = '': must not be empty .*line 7"),
        ("v100,LM,,1,1.0,1.0", "job_b = '': must not be empty .*line 7"),
        (",LM,VGG,1,1.0,1.0", "gpu = '': must not be empty .*line 7"),
        ("v100,LM (batch size 5),A3C,1,1.6,3.0", r"xi_a = 1.6: another ratio of LM .* beside A3C.*1.5.*line 7"),
        ("v100,VGG,VGG,1,1.6,1.7", "xi_b = 1.7: another ratio of VGG beside VGG .*line 7"),
        ("v100,LM", "2 cells, the header has 6"),
    ],
)
def test_a_bad_pair_is_named_by_column_value_and_line(tmp_path, line, message):
    with pytest.raises(eq.InvalidInput, match=message):
        PairTable.read(written(tmp_path, [*LINES, line]))


def test_bad_tables_of_pairs_are_refused(tmp_path):
    with pytest.raises(eq.InvalidInput, match=r"gpu = 'a100': pairs.csv holds k80, v100"):
        PairTable.read(written(tmp_path, LINES), gpu="a100")
    with pytest.raises(eq.InvalidInput, match=r"ratios = .*at least one pair"):
        PairTable.read(written(tmp_path, LINES[3:]))
    with pytest.raises(eq.InvalidInput, match=r"default = 0.5: at least 1"):
        PairTable(ratios=PAIRS.ratios, default=0.5)
    with pytest.raises(eq.InvalidInput, match=r"ratios\[\('a', 'b'\)\] = 0.5: at least 1"):
        PairTable(ratios={("a", "b"): 0.5})
    with pytest.raises(eq.InvalidInput, match=r"xi_b = .*column missing"):
        PairTable.read(written(tmp_path, [], HEADER.replace("xi_b", "xi")))


# -- Drawn pairs -------------------------------------------------------------------------------------------------------


def test_draws_are_pairs_of_the_table_and_one_pair_for_both_jobs():
    drawn = DrawnInterference(PAIRS, seed=0)
    assert sorted(drawn.pairs) == [(1.5, 3.0), (2.0, 2.0), (3.0, 1.5)]  # of c beside a, one ratio is unknown
    for first, second in itertools.combinations("klmnopq", 2):
        both = drawn.ratio(running(first), [running(second)]), drawn.ratio(running(second), [running(first)])
        assert both in drawn.pairs
    assert drawn.ratio(running("k", 1), [running("l", 2)]) == drawn.ratio(running("k", 3), [running("l", 4)])
    three = [drawn.ratio(running("k"), [running(other)]) for other in "lmn"]
    assert drawn.ratio(running("k"), [running(other) for other in "lmn"]) == max(three)


@given(seed=st.integers(0, 2**40), order=st.permutations(list(itertools.product("abcde", repeat=2))))
def test_draws_depend_on_seed_and_names_alone(seed, order):
    reverse = PairTable(ratios=dict(reversed(PAIRS.ratios.items())))
    first, second = DrawnInterference(PAIRS, seed), DrawnInterference(reverse, seed)
    asked = {pair: first.ratio(running(pair[0]), [running(pair[1])]) for pair in order}
    assert all(second.ratio(running(mine), [running(other)]) == asked[mine, other] for mine, other in sorted(order))


def test_draws_are_known_numbers_and_even():
    """The same seed gives the same ratios on every machine and in every version."""
    names = [f"m{i}" for i in range(80)]
    drawn = DrawnInterference(PAIRS, seed=3)
    ratios = [drawn.ratio(running(a), [running(b)]) for a, b in itertools.combinations(names, 2)]
    assert ratios[:12] == [2.0, 1.5, 3.0, 2.0, 1.5, 2.0, 3.0, 2.0, 2.0, 3.0, 2.0, 1.5]
    # 3,160 draws, a third each: the standard deviation of a count is 27.
    assert [ratios.count(ratio) for ratio in (1.5, 2.0, 3.0)] == pytest.approx([3160 / 3] * 3, abs=4 * 27)
    other = DrawnInterference(PAIRS, seed=4)
    assert [other.ratio(running(a), [running(b)]) for a, b in itertools.combinations(names, 2)] != ratios


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(eq.InvalidInput, match="seed = -1: at least 0"):
        DrawnInterference(PAIRS, -1)
    with pytest.raises(eq.InvalidInput, match="table = '1 ratios': has no pair with both ratios"):
        DrawnInterference(PairTable(ratios={("c", "a"): 4.0}), 0)


# -- The option --------------------------------------------------------------------------------------------------------


def test_an_option_is_a_number_a_file_or_drawn_from_a_file(tmp_path):
    path = written(tmp_path, LINES)
    number = find_interference("1.5")
    assert isinstance(number, ConstantInterference)
    assert number.ratio(running(), [running()]) == 1.5
    assert find_interference(str(path)) == PairTable.read(path)
    assert find_interference(f"{path},default=1.25") == PairTable.read(path, default=1.25)
    drawn = find_interference(f"drawn:{path}", seed=5)
    assert isinstance(drawn, DrawnInterference)
    again = DrawnInterference(PairTable.read(path), 5)
    assert (drawn.seed, drawn.pairs) == (again.seed, again.pairs)


@pytest.mark.parametrize("default", ["0.5", "many", "nan"])
def test_a_bad_ratio_of_other_pairs_is_refused(tmp_path, default):
    with pytest.raises(eq.InvalidInput, match=r"^default = "):
        find_interference(f"{written(tmp_path, LINES)},default={default}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5", "interference = 0.5: at least 1"),
        ("nan", "interference = nan: must be finite"),
        ("", "interference = '': must be a number of at least 1, a file of pairs, or drawn:FILE"),
        ("no such.csv", "interference = 'no such.csv': must be a number"),
        ("drawn:", "interference = 'drawn:': must be a number"),
        ("drawn:1.5", "interference = 'drawn:1.5': must be a number"),
        ("no such.csv,default=2", "interference = 'no such.csv,default=2': must be a number"),
    ],
)
def test_another_option_is_refused(text, message):
    with pytest.raises(eq.InvalidInput, match=message):
        find_interference(text)


def test_measured_pairs_have_the_known_distribution():
    path = GAVEL / "interference_1gpu.csv"
    if not path.is_file():
        pytest.skip("no shared data")
    drawn = find_interference(f"drawn:{path}", seed=1)
    assert len(drawn.pairs) == 636
    table = find_interference(str(path))
    xi = np.quantile(list(table.ratios.values()), [0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
    assert xi == pytest.approx([1.0, 1.19, 1.47, 2.07, 4.84, 10.97], abs=0.005)
    models = [f"model {i}" for i in range(90)]
    ratios = [drawn.ratio(running(a), [running(b)]) for a, b in itertools.permutations(models, 2)]
    assert np.quantile(ratios, [0.25, 0.5, 0.75]) == pytest.approx([1.19, 1.47, 2.07], abs=0.06)
    counts = {gpu: len(PairTable.read(path, gpu=gpu).ratios) for gpu in ("v100", "k80", "p100")}
    assert counts == {"v100": 636, "k80": 589, "p100": 656}


# -- Consolidation -----------------------------------------------------------------------------------------------------

SLOW = SlowdownTable({("LM (batch size 5)", 2): 4.0, ("LM (batch size 5)", 8): 9.0, ("A3C", 4): 0.5})


def test_a_job_that_is_spread_is_slowed_by_its_measurement():
    slowed = MeasuredSlowdown(DurationSpeeds(), SLOW)
    assert slowed.rate(running(gpus=2, machines=2)) == 0.25
    assert slowed.rate(running(gpus=8, machines=3, fewest_machines=2)) == 1 / 9
    assert slowed.rate(running(gpus=8, machines=2, fewest_machines=2)) == 1.0
    assert slowed.rate(running("A3C", 4, gpus=4, machines=2)) == 2.0  # measured as faster
    assert slowed.exposed(running(gpus=2, machines=2)) == 0.0
    with pytest.raises(eq.InvalidInput, match="gpu_ids"):
        slowed.rate(running(gpus=2, gang_gpus=4))


@pytest.mark.parametrize(("gpus", "factor"), [(1, 4.0), (2, 4.0), (3, 4.0), (7, 4.0), (8, 9.0), (64, 9.0)])
def test_other_numbers_of_gpus_take_the_nearest_smaller_measurement(gpus, factor):
    assert SLOW.slowdown("LM", 5, gpus) == factor


def test_jobs_that_the_table_lacks_are_counted_in_a_warning():
    slowed = MeasuredSlowdown(DurationSpeeds(), SLOW)
    known = jobs(["LM", "A3C", "LM"], [5, 4, 10], [2, 16, 1])  # a job of one GPU cannot be spread
    assert slowed.work(known).tolist() == [1.0, 2.0, 3.0]
    lacking = jobs(["LM", "LM", "VGG"], [5, 10, 5], [2, 2, 4])
    with pytest.warns(UserWarning, match="2 of 3 jobs are not in the table of slowdowns"):
        assert slowed.work(lacking).tolist() == [1.0, 2.0, 3.0]
    assert slowed.unknown_jobs(lacking) == 2
    assert slowed.rate(running("VGG", 5, gpus=4, machines=4)) == 1.0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("LM,2,0", "slowdown = '?0.0'?: must be greater than 0 .*line 3"),
        ("LM,2,", "slowdown = '': must be a number .*line 3"),
        ("LM,0,2", "gpus = 0: at least 1 .*line 3"),
        ("LM,two,2", "gpus = 'two': must be a whole number .*line 3"),
        (",2,2", "job = '': must not be empty .*line 3"),
        ("VGG,2,3", "job = 'VGG': a second slowdown on 2 GPUs .*line 3"),
    ],
)
def test_a_bad_slowdown_is_named_by_column_value_and_line(tmp_path, line, message):
    with pytest.raises(eq.InvalidInput, match=message):
        SlowdownTable.read(written(tmp_path, ["VGG,2,2.5", line], "job,gpus,slowdown"))


def test_bad_tables_of_slowdowns_are_refused(tmp_path):
    with pytest.raises(eq.InvalidInput, match="the file holds no slowdown"):
        SlowdownTable.read(written(tmp_path, [], "job,gpus,slowdown"))
    with pytest.raises(eq.InvalidInput, match="slowdowns = "):
        SlowdownTable({})
    with pytest.raises(eq.InvalidInput, match=r"slowdowns\[LM, 2\] = 0"):
        SlowdownTable({("LM", 2): 0.0})
    with pytest.raises(eq.InvalidInput, match=r"slowdowns\[LM\].gpus = 0"):
        SlowdownTable({("LM", 0): 2.0})
    with pytest.raises(eq.InvalidInput, match="table = 'dict'"):
        MeasuredSlowdown(DurationSpeeds(), {})


def test_measured_slowdowns_are_read():
    path = GAVEL / "gavel_v100_consolidation.csv"
    if not path.is_file():
        pytest.skip("no shared data")
    table = SlowdownTable.read(path)
    assert len(table.slowdowns) == 57
    assert table.slowdown("LM", 5, 8) == 9.557
    assert table.slowdown("ResNet-50", 128, 16) == 0.738
    assert table.slowdown("Recommendation", 512, 2) is None
