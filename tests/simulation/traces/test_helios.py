"""Helios traces: what is read of a file, which jobs are left out, and every fault with column, value, file and line."""

import gzip
import warnings

import pytest

from equipoise import InvalidInput
from equipoise.simulation import read_durations, read_helios, read_trace
from equipoise.simulation.fluid import virtual_cluster_jobs

HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
DAY = "2021-03-04"
LINES = [
    f"501,ua,vcX,1,4,1,COMPLETED,{DAY} 10:00:10,{DAY} 10:00:40,{DAY} 11:00:40,3600,30",
    f"502,ub,vcY,0,16,1,COMPLETED,{DAY} 09:00:00,{DAY} 09:00:00,{DAY} 09:00:09,9,0",
    f"503,ub,vcY,4,16,1,FAILED,{DAY} 10:00:00,{DAY} 10:00:00,{DAY} 10:01:00,60,0",
    f"504,uc,vcX,8,32,1,CANCELLED,{DAY} 09:30:00,,{DAY} 09:40:00,0,600",
    f"505,uc,vcX,8,32,1,CANCELLED,{DAY} 12:00:00,{DAY} 12:00:00,{DAY} 12:00:00,0,0",
    f"506,uc,vcX,16,64,2,TIMEOUT,{DAY} 23:59:59,2021-03-05 00:00:00,2021-03-06 00:00:00,86400,1",
    f"507,ud,vcX,2,8,1,SUSPENDED,{DAY} 10:00:00,{DAY} 10:00:00,{DAY} 13:00:00,7200,0",
]


def written(folder, *lines, header=HEADER, name="cluster_log.csv"):
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def changed(line=LINES[0], **cells):
    """Return a line with other cells."""
    values = dict(zip(HEADER.split(","), line.split(","), strict=True)) | cells
    return ",".join(values.values())


@pytest.mark.parametrize("zone", ["", "+08:00", "Z", "-0330"])
def test_jobs_that_ran_on_gpus_are_read_with_times_from_the_first_of_them(tmp_path, zone):
    # A date ends in its seconds, as no other cell does.
    lines = [",".join(cell + zone * (":" in cell) for cell in line.split(",")) for line in LINES]
    path = written(tmp_path, *lines)
    left = r"cluster_log\.csv: left out 1 job\(s\) without GPUs, and 2 with GPUs that never ran \(duration 0\)"
    for read in (read_helios, read_trace):
        with pytest.warns(UserWarning, match=left):
            trace = read(path)
        assert trace.job_id == (501, 503, 506, 507)
        assert trace.model == ("vcX", "vcY", "vcX", "vcX")
        assert trace.gang_gpus.tolist() == [1, 4, 16, 2]
        assert trace.arrival_s.tolist() == [10.0, 0.0, 13 * 3600 + 59 * 60 + 59.0, 0.0]
        assert trace.duration_s.tolist() == [3600.0, 60.0, 86400.0, 7200.0]
        assert trace.batch_size.tolist() == [1, 1, 1, 1]


def test_time_zones_of_one_file_may_differ_and_nothing_is_left_out_in_silence(tmp_path):
    lines = [
        f"1,u,vc,1,1,1,COMPLETED,{DAY} 10:00:00+08:00,{DAY} 10:00:00+08:00,{DAY} 10:00:05+08:00,5,0",
        f"2,u,vc,1,1,1,COMPLETED,{DAY} 03:00:00+00:00,{DAY} 03:00:00Z,{DAY} 03:00:05.5+00:00,5,0",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_helios(written(tmp_path, *lines)).arrival_s.tolist() == [0.0, 3600.0]


def test_a_packed_file_and_further_columns_are_read(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(f"{HEADER},jobname\n{LINES[0]},mine\n".encode()))
    assert read_trace(path).job_id == (501,)


def test_a_virtual_cluster_is_chosen_and_profiles_belong_to_the_durations(tmp_path):
    path = written(tmp_path, *(LINES[index] for index in (0, 2, 5)))
    assert virtual_cluster_jobs(read_trace(path), path, "vcX").job_id == (501, 506)
    with pytest.raises(InvalidInput, match=r"cluster = 'vcZ': .*cluster_log\.csv has vcX, vcY"):
        virtual_cluster_jobs(read_trace(path), path, "vcZ")
    trace, profiles = read_durations(path)
    assert trace.model[1] == "vcY on 4 GPUs"
    assert profiles.epoch_s(trace.model[1], 1, 4) == 1.0
    with pytest.raises(
        InvalidInput, match=r"profiles = 'Profiles': must be left out: cluster_log\.csv names no models"
    ):
        read_durations(path, profiles)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"job_id": ""}, r"job_id = '': must not be empty"),
        ({"user": ""}, r"user = '': must not be empty"),
        ({"vc": ""}, r"vc = '': must not be empty"),
        ({"gpu_num": "-1"}, r"gpu_num = -1: at least 0"),
        ({"gpu_num": "1.5"}, r"gpu_num = '1.5': must be a whole number"),
        ({"cpu_num": "many"}, r"cpu_num = 'many': must be a whole number"),
        ({"node_num": "-2"}, r"node_num = -2: at least 0"),
        ({"state": "DONE"}, r"state = 'DONE': must be one of COMPLETED, CANCELLED, FAILED"),
        ({"submit_time": "1614852010"}, r"submit_time = '1614852010': must be a date and time such as 2020-06-09"),
        ({"submit_time": "2021-02-30 10:00:10"}, r"submit_time = '2021-02-30 10:00:10': must be a date and time"),
        ({"submit_time": f"{DAY}"}, r"submit_time = '2021-03-04': must be a date and time"),
        ({"start_time": ""}, r"start_time = '': must not be empty"),
        ({"start_time": f"{DAY} 10:00:40+08:00"}, r"start_time = .*: .*must have a time zone, or none, as submit_time"),
        ({"end_time": "None"}, r"end_time = 'None': must be a date and time"),
        ({"duration": "-5"}, r"duration = -5.0: at least 0"),
        ({"duration": "inf"}, r"duration = inf: must be finite"),
        ({"duration": "3605"}, r"duration = 3605.0: must be end_time - start_time, 3600 s"),
        ({"queue": "-1"}, r"queue = -1.0: at least 0"),
        ({"queue": "90"}, r"queue = 90.0: must be start_time - submit_time, 30 s"),
        ({"job_id": "503"}, r"job_id\[1\] = 503: the same id as on line 2"),
    ],
)
def test_a_fault_has_column_value_file_and_line(tmp_path, cells, message):
    with pytest.raises(InvalidInput, match=rf"{message}.*\(cluster_log\.csv, line 3\)"):
        read_helios(written(tmp_path, LINES[2], changed(**cells)))
    # Lines of jobs that are left out are checked as well.
    if "gpu_num" not in cells:
        with pytest.raises(InvalidInput, match=rf"{message}.*\(cluster_log\.csv, line 3\)"):
            read_helios(written(tmp_path, LINES[2], changed(**cells | {"gpu_num": "0"})))


def test_dates_with_and_without_time_zone_do_not_mix(tmp_path):
    zoned = ",".join(cell + "+08:00" * (":" in cell) for cell in LINES[2].split(","))
    with pytest.raises(InvalidInput, match=r"submit_time = .*: has a time zone, unlike the lines above \(.*, line 3\)"):
        read_helios(written(tmp_path, LINES[0], zoned))


def test_a_short_line_a_missing_column_and_a_file_without_jobs_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"11 cells, the header has 12 \(cluster_log\.csv, line 2\)"):
        read_trace(written(tmp_path, LINES[0].rpartition(",")[0]))
    for column in HEADER.split(","):
        header = ",".join(name for name in HEADER.split(",") if name != column)
        with pytest.raises(InvalidInput, match=f"{column} = .*column missing from the header"):
            read_trace(written(tmp_path, LINES[0].rpartition(",")[0], header=header))
    for lines, jobs in (((), 0), (LINES[1:2], 1)):
        with pytest.raises(InvalidInput, match=f"of the {jobs} jobs of the file none ran on GPUs"):
            read_trace(written(tmp_path, *lines))
