"""The trace and the job state refuse bad columns by name and index, and keep good ones."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.simulation import JobState, Trace

GOOD = {
    "job_id": ["a", "b"],
    "model": ["LM", "ResNet-18"],
    "batch_size": [10, 32],
    "gang_gpus": [1, 2],
    "mode": ["static", "gns"],
    "total_steps": [100, 200],
    "arrival_s": [0.0, 1.5],
    "weight": [1.0, 2.0],
    "total_epochs": [3, 4],
    "schedule": [((10, 3),), ((32, 1), (64, 3))],
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("job_id", [], "job_id = '\\[\\]': must not be empty"),
        ("job_id", ["a", "a"], r"job_id\[1\] = 'a': the same id"),
        ("job_id", ["a", 1.5], r"job_id\[1\] = 1.5: an id must be text or a whole number"),
        ("model", ["LM"], "model has length 1, job_id has length 2"),
        ("model", ["LM", ""], r"model\[1\] = '': must be text, not empty"),
        ("model", ["LM", 3], r"model\[1\] = 3: must be text"),
        ("model", "LM", "model = 'LM': must be a sequence of names"),
        ("batch_size", [10, 0], r"batch_size\[1\] = 0: at least 1"),
        ("batch_size", [10, 1.5], r"batch_size\[1\] = 1.5: must be a whole number"),
        ("gang_gpus", [0, 2], r"gang_gpus\[0\] = 0: at least 1"),
        ("gang_gpus", [1, -2], r"gang_gpus\[1\] = -2: at least 1"),
        ("gang_gpus", ["1", "2"], r"gang_gpus\[0\] = '1': must be a number"),
        ("mode", ["static", "sometimes"], r"mode\[1\] = 'sometimes': must be one of static, accordion, gns"),
        ("total_steps", [100, 0], r"total_steps\[1\] = 0: at least 1"),
        ("arrival_s", [0.0, -1.0], r"arrival_s\[1\] = -1.0: at least 0"),
        ("arrival_s", [float("nan"), 0.0], r"arrival_s\[0\] = nan: must be finite"),
        ("arrival_s", [0.0, float("inf")], r"arrival_s\[1\] = inf: must be finite"),
        ("arrival_s", [[0.0, 1.0]], "arrival_s.*: must be a number"),
        ("weight", [1.0, 0.0], r"weight\[1\] = 0.0: must be greater than 0"),
        ("total_epochs", [3, 0], r"total_epochs\[1\] = 0: at least 1"),
        ("total_epochs", [3, 5], r"schedule\[1\] = .*add up to 4, total_epochs is 5"),
        ("schedule", [((10, 3),)], "schedule has length 1, job_id has length 2"),
        ("schedule", [((10, 3),), ()], r"schedule\[1\] = .*must not be empty"),
        ("schedule", [((10, 3),), ((64, 4),)], r"schedule\[1, 0\] = 64: must start at the job's batch size, 32"),
        ("schedule", [((10, 3),), ((32, 0), (64, 4))], r"schedule\[1, 0\] = .*at least 1"),
        ("min_gpus", [1, 3], r"min_gpus\[1\] = 3: more than the job's gang_gpus, 2"),
        ("min_gpus", [0, 1], r"min_gpus\[0\] = 0: at least 1"),
        ("duration_s", [1.0, 0.0], r"duration_s\[1\] = 0.0: must be greater than 0"),
        ("duration_s", [1.0], "duration_s has length 1, job_id has length 2"),
        ("size_s", [float("inf"), 1.0], r"size_s\[0\] = inf: must be finite"),
        ("total_steps", None, "total_steps = None: must be given where neither duration_s nor size_s is"),
        ("schedule", [((10, 3),), (32, 4)], r"schedule\[1\] = .*must be a sequence of \(batch size, epochs\)"),
    ],
)
def test_bad_columns_name_field_and_index(field, value, message):
    with pytest.raises(eq.InvalidInput, match=message) as caught:
        Trace(**GOOD | {field: value})
    assert caught.value.field in (field, "schedule")


def test_columns_are_read_only_and_defaults_are_filled_in():
    trace = Trace(**GOOD | {"weight": None, "total_epochs": None})
    assert trace.weight.tolist() == [1.0, 1.0]
    assert trace.total_epochs.tolist() == [3, 4]
    assert len(trace) == 2
    with pytest.raises(ValueError, match="read-only"):
        trace.arrival_s[0] = 7.0


def test_select_takes_positions_or_a_mask_and_keeps_every_column():
    trace = Trace(**GOOD)
    by_mask, by_position = trace.select(np.array([False, True])), trace.select([1])
    pd.testing.assert_frame_equal(by_mask.to_frame(), by_position.to_frame())
    pd.testing.assert_frame_equal(trace.select([1, 0]).select([1, 0]).to_frame(), trace.to_frame())
    assert by_mask.job_id == ("b",)
    assert by_mask.schedule == (((32, 1), (64, 3)),)


def test_frame_has_one_row_per_job():
    frame = Trace(**GOOD).to_frame()
    assert frame["job_id"].tolist() == ["a", "b"]
    assert frame["schedule"].tolist() == ["10x3", "32x1 64x3"]
    assert frame["gang_gpus"].tolist() == [1, 2]


def test_importing_the_folder_loads_neither_pandas_nor_scipy():
    code = "import sys, equipoise.simulation; print([m for m in ('pandas', 'scipy', 'numba') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


STATE = {
    "id": "a",
    "gpus": 2,
    "mode": "gns",
    "total_epochs": 10.0,
    "finished_epochs": 4.0,
    "batch_sizes": (32, 64),
    "regime_epochs": (3.0, 1.0),
    "epoch_s": {32: 5.0, 64: 4.0},
    "future": ((64, 6.0),),
    "attained_s": 19.0,
    "waiting_s": 1.0,
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "", "id.* = '': an id must not be empty"),
        ("gpus", 0, "gpus = 0: at least 1"),
        ("mode", "other", "mode = 'other': must be one of"),
        ("total_epochs", 0.0, "total_epochs = 0.0: must be greater than 0"),
        ("finished_epochs", -1.0, "finished_epochs = -1.0: at least 0"),
        ("finished_epochs", 10.0, "finished_epochs = 10.0: must be below total_epochs"),
        ("finished_epochs", 5.0, "regime_epochs = 4.0: must add up to finished_epochs, 5"),
        ("batch_sizes", (), "batch_sizes = '\\(\\)': must not be empty"),
        ("batch_sizes", (32, 128), r"batch_sizes\[1\] = 128: epoch_s has no time"),
        ("regime_epochs", (4.0,), "regime_epochs = .*one value per batch size"),
        ("regime_epochs", (5.0, -1.0), r"regime_epochs\[1\] = -1.0: must be finite and at least 0"),
        ("epoch_s", {32: 0.0, 64: 4.0}, r"epoch_s\[32\] = 0.0: must be greater than 0"),
        ("epoch_s", {32: 5.0, 64: float("nan")}, r"epoch_s\[64\] = nan: must be finite"),
        ("future", ((128, 6.0),), r"future\[0\] = 128: epoch_s has no time"),
        ("future", ((64, 0.0), (32, 6.0)), r"future\[0\] = 0.0: epochs must be finite and greater than 0"),
        ("future", ((64, 5.0),), "future = 5.0: must add up to the epochs left, 6"),
        ("attained_s", float("nan"), "attained_s = nan: must be finite"),
        ("waiting_s", -1.0, "waiting_s = -1.0: at least 0"),
        ("contention", 0.5, "contention = 0.5: at least 1"),
        ("weight", 0.0, "weight = 0.0: must be greater than 0"),
        ("running", 1, "running = 1: must be True or False"),
    ],
)
def test_bad_job_state_names_the_field(field, value, message):
    JobState(**STATE)
    with pytest.raises(eq.InvalidInput, match=message):
        JobState(**STATE | {field: value})


def test_a_state_without_a_known_future_is_a_state():
    assert JobState(**STATE | {"future": ()}).future == ()


def test_what_durations_give_are_the_steps():
    exact = {"duration_s": [0.2, 90.6], "size_s": [0.25, 150.5], "min_gpus": [1, 2]}
    trace = Trace(job_id=[0, 1], model=["a", "b"], gang_gpus=[1, 2], arrival_s=[0.0, 1.0], **exact)
    assert trace.total_steps.tolist() == [1, 182]
    assert trace.batch_size.tolist() == [1, 1]
    assert trace.mode == ("static", "static")
    last = trace.select([1])
    assert (last.duration_s.tolist(), last.size_s.tolist(), last.min_gpus.tolist()) == ([90.6], [150.5], [2])
    assert trace.to_frame()[list(exact)].to_dict("list") == exact
    bare = Trace(job_id=[0], model=["a"], gang_gpus=[4], arrival_s=[0.0], total_steps=[9])
    assert (bare.min_gpus.tolist(), bare.duration_s, bare.size_s) == ([1], None, None)
    assert not set(exact) & set(bare.to_frame())
    with pytest.raises(eq.InvalidInput, match="duration_s has length 1, gang_gpus has length 2"):
        Trace(job_id=[0, 1], model=["a", "b"], gang_gpus=[1, 2], arrival_s=[0.0, 1.0], duration_s=[3.0])
