"""Faults of a trace: whatever finds them, the error names column, value, file and line."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.simulation import Trace, generate_trace, write_shockwave

HEADER = "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s"
LINES = ["a,LM,10,1,static,100,0", "b,LM,20,2,static,100,5", "c,LM,10,4,static,100,9"]
GAVEL = "ResNet-18 (batch size 64)\tpython3 main.py\timages\t--num_steps\t1\t4500\t{gang}\t1\t-1.000000\t17"


def write(folder: Path, lines, header=HEADER) -> Path:
    path = folder / "jobs.csv"
    path.write_text("\n".join([*([header] if header else []), *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("at", "line", "message"),
    [
        (2, "a,LM,10,1,static,100,9", r"job_id\[2\] = 'a': the same id as on line 2 \(jobs.csv, line 4\)"),
        (1, "b,LM,10,1,static,100,nan", r"arrival_time_s = nan: must be finite \(jobs.csv, line 3\)"),
        (1, "b,LM,10,1,static,100,-5", r"arrival_time_s = -5.0: at least 0 \(jobs.csv, line 3\)"),
        (0, "a,LM,10,-1,static,100,0", r"scale_factor = -1: at least 1 \(jobs.csv, line 2\)"),
        (0, "a,LM,10,1,static,-100,0", r"total_steps = -100: at least 1 \(jobs.csv, line 2\)"),
        (0, "a,LM,nan,1,static,100,0", r"batch_size = 'nan': must be a whole number \(jobs.csv, line 2\)"),
        (1, "b,LM,10,1,static,99999999999999999999,0", r"total_steps = 1e\+20: .*\(jobs.csv, line 3\)"),
    ],
)
def test_a_fault_of_the_file_names_column_value_and_line(tmp_path, at, line, message):
    lines = [*LINES[:at], line, *LINES[at + 1 :]]
    with pytest.raises(eq.InvalidInput, match=message):
        Trace.read(write(tmp_path, lines))


def test_a_fault_found_later_is_located_by_the_job_position(tmp_path):
    # A blank line and a line break within quotes: positions are not lines.
    path = write(tmp_path, [LINES[0], "", '"b\nb",LM,20,2,static,100,5', LINES[2]])
    trace = Trace.read(path)
    error = trace.locate(eq.InvalidInput("gang_gpus", 4, "wider than the cluster", index=2))
    assert str(error) == "scale_factor = 4: wider than the cluster (jobs.csv, line 6)"
    error = trace.select([2]).locate(eq.InvalidInput("batch_size, gang_gpus", (10, 4), "no rate", index=0))
    assert str(error) == "batch_size, scale_factor = (10, 4): no rate (jobs.csv, line 6)"


@pytest.mark.parametrize(
    ("field", "column"),
    [("model", "job_type"), ("batch_size", "job_type"), ("gang_gpus", "scale_factor"), ("arrival_s", "arrival_time")],
)
def test_columns_of_the_other_format_have_its_names(tmp_path, field, column):
    trace = Trace.read(write(tmp_path, [GAVEL.format(gang=1), "", GAVEL.format(gang=2)], header=None))
    assert str(trace.locate(eq.InvalidInput(field, 7, "no", index=1))) == f"{column} = 7: no (jobs.csv, line 3)"


def test_an_error_without_a_place_and_a_trace_without_a_file_stay_as_they_are(tmp_path):
    trace = Trace.read(write(tmp_path, LINES))
    for error in (eq.InvalidInput("gpus", 0, "at least 1"), eq.InvalidInput("shares", 0, "no", index=7)):
        assert trace.locate(error) is error
    made = generate_trace(np.random.default_rng(0), num_jobs=3)
    error = eq.InvalidInput("model", "x", "unknown", index=1)
    assert made.source is None
    assert made.locate(error) is error


@given(st.lists(st.integers(0, 19), min_size=1, max_size=20), st.integers(0, 2**32))
def test_every_selection_keeps_each_job_with_its_line(tmp_path_factory, chosen, seed):
    trace = generate_trace(np.random.default_rng(seed), num_jobs=20)
    path = tmp_path_factory.mktemp("trace") / "jobs.csv"
    write_shockwave(trace, path)
    part = pickle.loads(pickle.dumps(Trace.read(path).select(sorted(set(chosen)))))
    for index, name in enumerate(part.job_id):
        located = part.locate(eq.InvalidInput("job_id", name, "x", index=index))
        line = int(str(located).rsplit("line ", 1)[1].rstrip(")"))
        assert path.read_text().splitlines()[line - 1].split(",")[0] == str(name)
