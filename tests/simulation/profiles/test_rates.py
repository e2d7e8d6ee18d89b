"""Profiles: rates, epochs and batch-size rules, against published durations and against a plain per-epoch reading."""

import csv
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import SHOCKWAVE

import equipoise as eq
from equipoise.simulation import CriticalEpochs, Profiles, Trace, exclusive_s, trajectory

DATA = SHOCKWAVE
published = pytest.mark.skipif(not DATA.is_dir(), reason="the published profiles are not beside this checkout")

FILES = {
    "throughputs.csv": "cluster,model,batch_size,scale_factor,steps_per_s\n"
    "east,LM,10,1,5.0\neast,LM,20,1,4.0\neast,LM,40,1,0.0\nwest,LM,10,1,7.5\n",
    "models.csv": "model,dataset_size,max_batch_size,scales\nLM,1000,20,yes\nA3C,4,,no\n",
    "accordion_rules.csv": "model,initial_batch_size,use,period,first_epoch,last_epoch\n"
    "LM,,profile,,0,1\nLM,,runtime,6,0,2\n",
    "gns_rules.csv": "model,initial_batch_size,scale_factor,first_epoch_of_segment,batch_size\n"
    "LM,10,1,0,10\nLM,10,1,5,20\n",
}


def folder(path: Path, **changed: str) -> Path:
    for name, text in FILES.items():
        (path / name).write_text(changed.get(name.removesuffix(".csv"), text), encoding="utf-8")
    return path


def per_epoch(runs):
    return [size for size, epochs in runs for _ in range(epochs)]


# -- Published data ----------------------------------------------------------------------------------------------------


@published
def test_isolated_run_times_are_the_published_exclusive_durations():
    trace, profiles = Trace.read(DATA / "trace_120.csv"), Profiles.read(DATA)
    with (DATA / "trace_120.csv").open(encoding="utf-8") as file:
        exclusive = [float(row["exclusive_duration_s"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(exclusive_s(trace, profiles), exclusive, rtol=1e-12)


@published
def test_the_rules_alone_give_every_published_schedule_and_epoch_count():
    trace, profiles = Trace.read(DATA / "trace_120.csv"), Profiles.read(DATA)
    bare = replace(trace, schedule=None, total_epochs=None)
    assert bare.total_epochs is None
    for index in range(len(trace)):
        assert trajectory(bare, index, profiles) == trace.schedule[index], index


@published
def test_rates_give_the_steps_of_published_rounds():
    profiles = Profiles.read(DATA)
    for example in json.loads((DATA / "worked_examples.json").read_text(encoding="utf-8")):
        first = dict(zip(example["columns"], example["rows"][0], strict=True))
        rate = profiles.steps_per_s(example["model"], example["initial_batch_size"], example["scale_factor"])
        # A restart costs 20 s of the round in which a job starts, except in the trace's first round.
        assert first["steps_done"] in (int(120 * rate), int(int(120 * rate) * (1 - 20 / (int(120 * rate) / rate))))


@published
def test_runtime_rules_say_what_the_notes_say():
    profiles = Profiles.read(DATA)
    assert profiles.critical_epochs("LM", 5, 50, "runtime") == ((0, 10),)
    assert profiles.critical_epochs("ResNet-50", 64, 70, "runtime") == ((0, 10), (30, 40), (60, 70))
    assert profiles.critical_epochs("ResNet-18", 256, 255, "runtime") == ((0, 20), (150, 160), (250, 255))
    assert profiles.critical_epochs("Recommendation", 2048, 100, "runtime") == ((0, 40),)
    assert profiles.critical_epochs("Recommendation", 2048, 100, "profile") == ((0, 40), (60, 70), (80, 90))


@published
def test_the_two_clusters_differ_and_an_unknown_one_is_named():
    rates = [Profiles.read(DATA, cluster=name).steps_per_s("LM", 10, 1) for name in ("tacc", "wisr")]
    assert rates == [94.91094148, 129.0489988]
    with pytest.raises(eq.InvalidInput, match=r"cluster = 'mars': throughputs.csv holds tacc, wisr"):
        Profiles.read(DATA, cluster="mars")


# -- Files -------------------------------------------------------------------------------------------------------------


def test_small_folder(tmp_path):
    profiles = Profiles.read(folder(tmp_path), cluster="east")
    assert profiles.models == ("LM",)
    assert profiles.configurations(1) == (("LM", 10), ("LM", 20))
    assert profiles.epoch_s("LM", 10, 1) == pytest.approx(1000 / 10 / 5.0)
    assert profiles.total_epochs("LM", 300, 5) == 2  # 4 steps an epoch: 1000 samples in steps of 300
    assert profiles.batch_sizes("LM", 10, 1, "gns") == (10, 20)
    assert profiles.batch_sizes("LM", 10, 1, "static") == (10,)
    assert profiles.schedule("LM", 10, 1, "static", 9) == ((10, 9),)
    assert profiles.schedule("LM", 10, 1, "gns", 9) == ((10, 5), (20, 4))
    assert profiles.schedule("LM", 10, 1, "gns", 5) == ((10, 5),)
    assert profiles.schedule("LM", 10, 1, "accordion", 10) == ((10, 4), (20, 6))
    assert profiles.schedule("LM", 20, 1, "accordion", 10) == ((20, 10),)
    assert profiles.critical_epochs("LM", 10, 8, "runtime") == ((0, 3), (6, 8))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("throughputs", "steps_per_s", "speed", "steps_per_s = .*column missing from the header of throughputs.csv"),
        ("throughputs", "1,5.0", "1,-5.0", r"steps_per_s = -5.0: at least 0 \(throughputs.csv, line 2\)"),
        ("throughputs", "1,4.0", "1,nan", r"steps_per_s = nan: must be finite \(throughputs.csv, line 3\)"),
        ("throughputs", "east,LM,10,1", "east,LM,10,0", r"scale_factor = 0: at least 1 \(throughputs.csv, line 2\)"),
        ("throughputs", "LM,20", "LM,10", r"steps_per_s = 4.0: a second rate for .*line 3"),
        ("throughputs", "east,LM,20", "east,BERT,20", "dataset_sizes = 'BERT': the model has rates and no data set"),
        ("models", "LM,1000", "LM,0", r"dataset_size = 0: at least 1 \(models.csv, line 2\)"),
        ("models", "20,yes", ",yes", r"max_batch_size = '': must be a whole number \(models.csv, line 2\)"),
        ("models", "20,yes", "20,maybe", r"scales = 'maybe': must be yes or no \(models.csv, line 2\)"),
        ("models", "A3C,4", "LM,4", r"model = 'LM': given twice \(models.csv, line 3\)"),
        ("accordion_rules", "LM,,profile", "LM,,sometimes", r"use = 'sometimes': .*\(accordion_rules.csv, line 2\)"),
        ("accordion_rules", "0,1", "3,1", r"last_epoch = 1: at least 3 \(accordion_rules.csv, line 2\)"),
        ("accordion_rules", "6,0,2", "2,0,2", "its period must be longer than the stretch"),
        ("gns_rules", "1,5,20", "1,5", r"4 cells, the header has 5 \(gns_rules.csv, line 3\)"),
        ("gns_rules", "LM,10,1,0,10", "LM,10,1,1,10", "segments must start at epoch 0"),
    ],
)
def test_bad_profile_files_name_column_and_line(tmp_path, name, old, new, message):
    assert old in FILES[f"{name}.csv"]
    with pytest.raises(eq.InvalidInput, match=message):
        Profiles.read(folder(tmp_path, **{name: FILES[f"{name}.csv"].replace(old, new, 1)}), cluster="east")


def test_a_missing_folder_or_file_is_named(tmp_path):
    with pytest.raises(eq.InvalidInput, match=r"folder = .*is not a folder"):
        Profiles.read(tmp_path / "none")
    folder(tmp_path)
    (tmp_path / "gns_rules.csv").unlink()
    with pytest.raises(eq.InvalidInput, match=r"path = .*No such file"):
        Profiles.read(tmp_path, cluster="east")


def test_what_is_not_known_is_said_with_what_is(tmp_path):
    profiles = Profiles.read(folder(tmp_path), cluster="east")
    with pytest.raises(eq.InvalidInput, match="model = 'BERT': no throughput in profiles 'east', which have LM"):
        profiles.steps_per_s("BERT", 10, 1)
    with pytest.raises(eq.InvalidInput, match=re.escape("batch_size, gang_gpus = (40, 1): no throughput of LM")):
        profiles.steps_per_s("LM", 40, 1)  # the file's rate of 0 says that it was not measured
    with pytest.raises(eq.InvalidInput, match=re.escape("have (10, 1), (20, 1)")):
        profiles.epoch_s("LM", 10, 2)
    with pytest.raises(eq.InvalidInput, match="model = 'BERT': no data set size"):
        profiles.total_epochs("BERT", 10, 5)
    with pytest.raises(eq.InvalidInput, match="mode = 'other'"):
        profiles.schedule("LM", 10, 1, "other", 5)
    with pytest.raises(eq.InvalidInput, match="total_epochs = 0: at least 1"):
        profiles.schedule("LM", 10, 1, "gns", 0)
    with pytest.raises(eq.InvalidInput, match="use = 'both'"):
        profiles.critical_epochs("LM", 10, 5, "both")


# -- Rules -------------------------------------------------------------------------------------------------------------


@st.composite
def rules(draw):
    stretches = []
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(0, 20))
        last = first + draw(st.integers(0, 8))
        period = draw(st.none() | st.integers(last - first + 1, 25))
        stretches.append(CriticalEpochs(first, last, period))
    return tuple(stretches)


@given(rules(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 60))
def test_accordion_is_the_largest_size_exactly_outside_critical_epochs(stretches, share, total):
    profiles = Profiles(
        name="drawn",
        rates={("m", 1, 1): 1.0, ("m", 4, 1): 1.0},
        dataset_sizes={"m": 10},
        max_batch_sizes={"m": 4},
        accordion={("m", None, "profile"): stretches},
        accordion_share=share,
    )

    def critical(epoch: int) -> bool:
        return any(
            rule.first <= epoch and (epoch - rule.first) % (rule.period or total) <= rule.last - rule.first
            for rule in stretches
        )

    runs = profiles.schedule("m", 1, 1, "accordion", total)
    expected = [1 if critical(e) or not (e > share * total or share == 0.0) else 4 for e in range(total)]
    assert per_epoch(runs) == expected
    assert all(left[0] != right[0] for left, right in pairwise(runs))


@given(
    st.lists(st.integers(1, 12), max_size=4),
    st.integers(1, 60),
    st.booleans(),
)
def test_gns_follows_its_segments(gaps, total, returns):
    starts = [0, *np.cumsum(gaps).tolist()]
    segments = tuple((start, 2**k) for k, start in enumerate(starts))
    profiles = Profiles(
        name="drawn",
        rates={("m", 1, 1): 1.0},
        dataset_sizes={"m": 10},
        max_batch_sizes={"m": 32},
        gns={("m", 1, 1): segments},
        gns_last_epoch_returns=returns,
    )
    expected = [max(size for start, size in segments if start <= epoch) for epoch in range(total)]
    if returns and expected[-1] > 2:
        expected[-1] = 1
    assert per_epoch(profiles.schedule("m", 1, 1, "gns", total)) == expected


# -- Builtin -----------------------------------------------------------------------------------------------------------


def test_builtin_epochs_shorten_with_batch_size_and_gpus_but_never_beyond_linear():
    profiles = Profiles.builtin()
    sizes = {model: sorted({size for name, size, _ in profiles.rates if name == model}) for model in profiles.models}
    assert len(sizes) == 5
    for model, ladder in sizes.items():
        table = np.array([[profiles.epoch_s(model, size, gpus) for gpus in (1, 2, 4, 8)] for size in ladder])
        assert (np.diff(table, axis=0) < 0).all(), model
        assert (np.diff(table, axis=1) < 0).all(), model
        assert (table[:, 1:] * 2 > table[:, :-1]).all(), model


def test_builtin_rules_reach_the_largest_size_and_only_sizes_with_rates():
    profiles = Profiles.builtin()
    for model, size, gpus in profiles.rates:
        largest = profiles.max_batch_sizes[model]
        for mode in ("accordion", "gns"):
            runs = profiles.schedule(model, size, gpus, mode, 400)
            assert sum(epochs for _, epochs in runs) == 400
            assert max(each for each, _ in runs) == largest
            assert all((model, each, gpus) in profiles.rates for each, _ in runs)
            assert {each for each, _ in runs} <= set(profiles.batch_sizes(model, size, gpus, mode))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rates", {("m", 1, 1): 0.0}, r"rates\[.*\] = 0.0: must be greater than 0"),
        ("rates", {("m", 1, 1): float("nan")}, r"rates\[.*\] = nan: must be finite"),
        ("rates", {("n", 1, 1): 1.0}, "dataset_sizes = 'n': the model has rates and no data set size"),
        ("dataset_sizes", {"m": 0}, r"dataset_sizes\[m\] = 0: at least 1"),
        ("max_batch_sizes", {"m": 0}, r"max_batch_sizes\[m\] = 0: at least 1"),
        ("accordion", {("m", None, "profile"): (CriticalEpochs(4, 2),)}, "needs 0 <= first <= last"),
        ("gns", {("m", 1, 1): ((0, 2),)}, "segments must start at epoch 0 with the initial batch size"),
        ("gns", {("m", 1, 1): ((0, 1), (0, 2))}, "follow each other"),
        ("accordion_share", 1.5, "accordion_share = 1.5: at most 1"),
    ],
)
def test_bad_profiles_name_the_field(field, value, message):
    good = {"name": "x", "rates": {("m", 1, 1): 1.0}, "dataset_sizes": {"m": 10}, "max_batch_sizes": {}}
    Profiles(**good)
    with pytest.raises(eq.InvalidInput, match=message):
        Profiles(**good | {field: value})
