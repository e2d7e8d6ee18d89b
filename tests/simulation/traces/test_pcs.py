"""PCS's traces: the columns that are read, and every fault with column, value, file and line."""

import pytest
from shared_data import DATA

from equipoise import InvalidInput
from equipoise.simulation import read_pcs, read_trace

HEADER = "app_id,submit_time,service,num_jobs,sleep_time,model_name"


def written(folder, *lines, header=HEADER):
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_the_columns_of_a_file(tmp_path):
    path = written(tmp_path, "0,0.0,16482.25,1,0.0,TransformerModel256", "7,6.5,0.25,4,,Vgg")
    for trace in (read_pcs(path), read_trace(path)):
        assert trace.job_id == (0, 7)
        assert trace.model == ("TransformerModel256", "Vgg")
        assert trace.size_s.tolist() == [16482.25, 0.25]
        assert trace.gang_gpus.tolist() == [1, 4]
        assert trace.arrival_s.tolist() == [0.0, 6.5]
        assert trace.min_gpus.tolist() == [1, 1]
        assert trace.duration_s is None
        assert trace.total_steps.tolist() == [16482, 1]


def test_the_least_gpus_of_a_file(tmp_path):
    path = written(tmp_path, "0,0,16,4,0,a,3", "1,0,16,4,0,a,", header=f"{HEADER},min_gpus")
    assert read_trace(path).min_gpus.tolist() == [3, 1]
    path = written(tmp_path, "0,0,16,4,0,a,5", header=f"{HEADER},min_gpus")
    with pytest.raises(InvalidInput, match=r"min_gpus = 5: .* line 2"):
        read_trace(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,-1,5,1,0,m", r"submit_time = -1.0: at least 0 \(jobs.csv, line 2\)"),
        ("0,1,0,1,0,m", r"service = 0.0: must be greater than 0 \(jobs.csv, line 2\)"),
        ("0,1,x,1,0,m", r"service = 'x': must be a number \(jobs.csv, line 2\)"),
        ("0,1,5,0,0,m", r"num_jobs = 0: at least 1 \(jobs.csv, line 2\)"),
        ("0,1,5,1,0,", r"model_name = '': must not be empty \(jobs.csv, line 2\)"),
        (",1,5,1,0,m", r"app_id = '': must not be empty \(jobs.csv, line 2\)"),
        ("0,1,5,1,0,m\n0,1,5,1,0,m", r"app_id\[1\] = 0: the same id as on line 2 \(jobs.csv, line 3\)"),
        ("", "the file holds no job"),
    ],
)
def test_a_fault_has_column_value_file_and_line(tmp_path, line, message):
    with pytest.raises(InvalidInput, match=message):
        read_pcs(written(tmp_path, line))


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="model_name"):
        read_trace(written(tmp_path, "0,1,5,1", header="app_id,submit_time,service,num_jobs"))


@pytest.mark.parametrize(("name", "jobs"), [("0e4a51", 2465), ("2869ce", 956)])
def test_the_published_traces_are_read(name, jobs):
    path = DATA / "pcs" / "traces" / f"trace_{name}.csv"
    if not path.exists():
        pytest.skip("the published traces are not there")
    assert len(read_trace(path)) == jobs
