"""Trace files: both formats are read, faults name column and line, and what is written reads back."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import SHOCKWAVE

import equipoise as eq
from equipoise.simulation import Trace, generate_trace, read_gavel, read_shockwave, write_shockwave

DATA = SHOCKWAVE
HEADER = "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s,num_epochs,profile_bs_schedule_rle"
LINE = "0,LM,10,2,gns,100,3.5,4,10x1 20x3"
GAVEL = "ResNet-18 (batch size 64)\tpython3 main.py\timages\t--num_steps\t1\t4500\t2\t1\t-1.000000\t17"
LONG = "LM (batch size 10)\tpython3 main.py\tlm\t--steps\t1\t13458\t1\tgns\t2.5\t-1.000000\t1418\t55.5"


def write(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_shockwave_columns(tmp_path):
    trace = Trace.read(write(tmp_path, f"{HEADER}\n{LINE}\n\nx,ResNet-18,32,1,static,7,0,1,32x1\n"))
    assert trace.job_id == (0, "x")
    assert trace.model == ("LM", "ResNet-18")
    assert trace.batch_size.tolist() == [10, 32]
    assert trace.gang_gpus.tolist() == [2, 1]
    assert trace.mode == ("gns", "static")
    assert trace.total_steps.tolist() == [100, 7]
    assert trace.arrival_s.tolist() == [3.5, 0.0]
    assert trace.total_epochs.tolist() == [4, 1]
    assert trace.schedule == (((10, 1), (20, 3)), ((32, 1),))
    assert trace.weight.tolist() == [1.0, 1.0]


def test_columns_may_come_in_any_order_and_the_optional_ones_may_lack(tmp_path):
    text = "arrival_time_s,total_steps,mode,scale_factor,batch_size,model,job_id,note\n2,9,static,1,8,LM,7,hello\n"
    trace = read_shockwave(write(tmp_path, text))
    assert trace.job_id == (7,)
    assert trace.arrival_s.tolist() == [2.0]
    assert trace.total_epochs is None
    assert trace.schedule is None


@pytest.mark.parametrize("name", HEADER.split(",")[:7])
def test_a_missing_column_is_named(tmp_path, name):
    header, line = HEADER.split(","), LINE.split(",")
    at = header.index(name)
    text = ",".join(header[:at] + header[at + 1 :]) + "\n" + ",".join(line[:at] + line[at + 1 :]) + "\n"
    with pytest.raises(eq.InvalidInput, match=f"{name} = .*column missing from the header of jobs.csv"):
        Trace.read(write(tmp_path, text))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("job_id", "", "job_id = '': must not be empty"),
        ("model", "", "model = '': must not be empty"),
        ("batch_size", "0", "batch_size = 0: at least 1"),
        ("batch_size", "ten", "batch_size = 'ten': must be a whole number"),
        ("scale_factor", "0", "scale_factor = 0: at least 1"),
        ("mode", "dynamic", "mode = 'dynamic': must be one of"),
        ("total_steps", "1e9", "total_steps = '1e9': must be a whole number"),
        ("total_steps", "-1", "total_steps = -1: at least 1"),
        ("arrival_time_s", "-0.5", "arrival_time_s = -0.5: at least 0"),
        ("arrival_time_s", "nan", "arrival_time_s = nan: must be finite"),
        ("arrival_time_s", "noon", "arrival_time_s = 'noon': must be a number"),
        ("num_epochs", "5", "profile_bs_schedule_rle = .*must add up to num_epochs, 5"),
        ("num_epochs", "0", "num_epochs = 0: at least 1"),
        ("profile_bs_schedule_rle", "10x1 20*3", r"profile_bs_schedule_rle = '20\*3': must be such as 32x28"),
        ("profile_bs_schedule_rle", "", "profile_bs_schedule_rle = '': must not be empty"),
        ("profile_bs_schedule_rle", "20x4", "profile_bs_schedule_rle = .*must start at batch size 10"),
    ],
)
def test_a_bad_cell_names_column_value_file_and_line(tmp_path, column, value, message):
    cells = dict(zip(HEADER.split(","), LINE.split(","), strict=True)) | {column: value}
    text = f"{HEADER}\n{LINE.replace('0,LM', '9,LM')}\n{','.join(cells.values())}\n"
    with pytest.raises(eq.InvalidInput, match=rf"{message}.*\(jobs.csv, line 3\)"):
        Trace.read(write(tmp_path, text))


def test_epochs_must_agree_with_steps(tmp_path):
    text = f"{HEADER},steps_per_epoch,priority_weight\n{LINE},25,2\n"
    assert Trace.read(write(tmp_path, text)).weight.tolist() == [2.0]
    with pytest.raises(
        eq.InvalidInput, match=r"num_epochs = 4: 100 steps at 20 per epoch are 5 epochs \(jobs.csv, line 2\)"
    ):
        Trace.read(write(tmp_path, text.replace(",25,", ",20,")))
    with pytest.raises(eq.InvalidInput, match=r"priority_weight = 0.0: must be greater than 0 \(jobs.csv, line 2\)"):
        Trace.read(write(tmp_path, text.replace(",25,2", ",25,0")))


def test_a_truncated_line_is_named_by_its_number(tmp_path):
    with pytest.raises(eq.InvalidInput, match=r"3 cells, the header has 9 \(jobs.csv, line 3\)"):
        Trace.read(write(tmp_path, f"{HEADER}\n{LINE}\n1,LM,10\n"))
    with pytest.raises(eq.InvalidInput, match=r"6 columns, a trace has 10 or 12 \(jobs.csv, line 3\)"):
        Trace.read(write(tmp_path, f"{GAVEL}\n\n{GAVEL.rsplit(chr(9), 4)[0]}\n"))
    with pytest.raises(eq.InvalidInput, match=r"12 columns, the lines above have 10 \(jobs.csv, line 2\)"):
        Trace.read(write(tmp_path, f"{GAVEL}\n{LONG}\n"))


def test_duplicate_ids_and_columns_are_refused(tmp_path):
    with pytest.raises(eq.InvalidInput, match=r"job_id\[1\] = 0: the same id"):
        Trace.read(write(tmp_path, f"{HEADER}\n{LINE}\n{LINE}\n"))
    with pytest.raises(eq.InvalidInput, match=r"model = .*column given twice"):
        Trace.read(write(tmp_path, f"{HEADER},model\n{LINE},LM\n"))


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_refused(tmp_path, text):
    with pytest.raises(eq.InvalidInput, match="the file is empty"):
        Trace.read(write(tmp_path, text))


def test_files_without_jobs_or_text_are_refused(tmp_path):
    with pytest.raises(eq.InvalidInput, match="the file holds no job"):
        Trace.read(write(tmp_path, HEADER + "\n"))
    with pytest.raises(eq.InvalidInput, match="No such file"):
        Trace.read(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(eq.InvalidInput, match="not a text file in UTF-8"):
        Trace.read(tmp_path / "bytes.csv")


def test_gavel_ten_columns(tmp_path):
    trace = Trace.read(write(tmp_path, f"{GAVEL}\nA3C\tpython3 main.py\trl\t--max-steps\t0\t9\t1\t2\t-1\t20.25\n"))
    assert trace.job_id == (0, 1)
    assert trace.model == ("ResNet-18", "A3C")
    assert trace.batch_size.tolist() == [64, 4]
    assert trace.gang_gpus.tolist() == [2, 1]
    assert trace.mode == ("static", "static")
    assert trace.total_steps.tolist() == [4500, 9]
    assert trace.weight.tolist() == [1.0, 2.0]
    assert trace.arrival_s.tolist() == [17.0, 20.25]
    assert trace.total_epochs is None


def test_gavel_twelve_columns(tmp_path):
    trace = Trace.read(write(tmp_path, LONG + "\n"))
    assert (trace.model, trace.batch_size.tolist(), trace.mode) == (("LM",), [10], ("gns",))
    assert (trace.weight.tolist(), trace.arrival_s.tolist(), trace.gang_gpus.tolist()) == ([2.5], [55.5], [1])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, "ResNet-18", "job_type = 'ResNet-18': names no batch size"),
        (0, "ResNet-18 (batch size 0)", "job_type = .*names no batch size of at least 1"),
        (0, "ResNet-18 (size 64)", "job_type = .*must be such as"),
        (0, "", "job_type = '': must not be empty"),
        (5, "many", "total_steps = 'many': must be a whole number"),
        (6, "0", "scale_factor = 0: at least 1"),
        (7, "fast", "mode = 'fast': must be one of"),
        (8, "nan", "priority_weight = nan: must be finite"),
        (8, "-1", "priority_weight = -1.0: must be greater than 0"),
        (11, "-3", "arrival_time = -3.0: at least 0"),
    ],
)
def test_bad_gavel_cells_name_column_and_line(tmp_path, column, value, message):
    cells = LONG.split("\t")
    cells[column] = value
    with pytest.raises(eq.InvalidInput, match=rf"{message}.*\(jobs.csv, line 2\)"):
        read_gavel(write(tmp_path, LONG + "\n" + "\t".join(cells) + "\n"))


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_what_is_written_reads_back_to_the_last_bit(tmp_path_factory, seed, num_jobs):
    path = tmp_path_factory.mktemp("trace") / "jobs.csv"
    trace = generate_trace(np.random.default_rng(seed), num_jobs=num_jobs)
    write_shockwave(trace, path)
    pd.testing.assert_frame_equal(Trace.read(path).to_frame(), trace.to_frame(), check_exact=True)
    assert [each.name for each in path.parent.iterdir()] == ["jobs.csv"]


def test_an_id_that_would_read_back_changed_is_refused(tmp_path):
    trace = generate_trace(np.random.default_rng(0), num_jobs=2)
    renamed = Trace(
        **{name: getattr(trace, name) for name in trace.__dataclass_fields__ if name != "job_id"}, job_id=["a", "7"]
    )
    with pytest.raises(eq.InvalidInput, match=r"job_id\[1\] = '7': would read back as another id"):
        write_shockwave(renamed, tmp_path / "jobs.csv")
    assert not (tmp_path / "jobs.csv").exists()


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "jobs.csv"
    path.write_text("old", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_shockwave(generate_trace(np.random.default_rng(0), num_jobs=3), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["jobs.csv"]


@pytest.mark.skipif(not DATA.is_dir(), reason="the published traces are not beside this checkout")
def test_the_published_trace():
    trace = Trace.read(DATA / "trace_120.csv")
    assert len(trace) == 120
    assert sorted(set(trace.gang_gpus.tolist())) == [1, 2, 4]
    assert trace.arrival_s[-1] == trace.arrival_s.max()
    assert trace.schedule[1] == ((32, 28), (256, 64))
