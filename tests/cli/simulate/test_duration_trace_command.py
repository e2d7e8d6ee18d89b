"""`equipoise simulate` and `compare` on a trace of durations: with its own profiles, and with those of --profiles."""

import json

import pytest

from equipoise.cli import main
from equipoise.heuristics.registry import make_policy
from equipoise.simulation import Profiles, read_durations, simulate_rounds

HEADER = "job_id,submit_time_s,duration_s,num_gpus,model,batch_size,work_gpu_s"
LINES = ["a,0,600,1,LM,10,600", "b,5,240,2,LM,20,480", "c,9,333.3,4,ResNet-18,32,1333.2"]


def write(folder, lines, header=HEADER):
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def document(capsys, *arguments):
    assert main.run([*map(str, arguments), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def fails(capsys, *arguments):
    assert main.run([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize("folder", [None, "builtin"])
def test_the_document_is_the_result_of_the_engine(tmp_path, capsys, folder):
    path = write(tmp_path, LINES)
    asked = [] if folder is None else ["--profiles", folder]
    found = document(capsys, "simulate", path, "--policy", "gandiva-fair", "--gpus", 4, "--per-job", *asked)
    trace, profiles = read_durations(path, None if folder is None else Profiles.builtin())
    result = simulate_rounds(trace, make_policy("gandiva-fair"), gpus=4, profiles=profiles)
    for key in ("makespan_s", "avg_jct_s", "worst_ftf", "unfair_pct", "utilisation"):
        assert found[key] == result.metrics[key]
    assert [row["jct_s"] for row in found["jobs"]] == result.jct_s.tolist()
    assert found["profiles"] == ("the trace's own" if folder is None else folder)
    assert found["cluster"] is None


def test_a_job_alone_takes_its_duration(tmp_path, capsys):
    path = write(tmp_path, ["a,1000,600,2,LM,10,1200"])
    found = document(capsys, "simulate", path, "--policy", "shockwave", "--gpus", 2, "--per-job")
    assert found["makespan_s"] == found["jobs"][0]["jct_s"] == 600.0
    assert found["jobs"][0]["start_s"] == 1000.0


def test_policies_are_compared_on_it_and_the_page_says_how_to_do_so_again(tmp_path, capsys):
    path = write(tmp_path, LINES)
    page = tmp_path / "page.html"
    arguments = ["compare", path, "--policies", "shockwave,fifo", "--gpus", 4, "--workers", 1, "--html", page]
    found = document(capsys, *arguments)
    assert [row["policy"] for row in found["policies"]] == ["shockwave", "fifo"]
    assert found["num_jobs"] == 3
    assert "--profiles" not in page.read_text(encoding="utf-8")
    document(capsys, *arguments, "--profiles", "builtin")
    assert "--profiles builtin" in page.read_text(encoding="utf-8")


def test_measured_rates_of_a_folder_serve_by_type_of_gpu(tmp_path, capsys):
    folder = tmp_path / "profiles"
    folder.mkdir()
    tables = {
        "throughputs.csv": "cluster,model,batch_size,scale_factor,steps_per_s\nold,LM,10,1,2\nnew,LM,10,1,8\n",
        "models.csv": "model,dataset_size,max_batch_size,scales\nLM,100,10,no\n",
        "accordion_rules.csv": "model,initial_batch_size,use,period,first_epoch,last_epoch\n",
        "gns_rules.csv": "model,initial_batch_size,scale_factor,first_epoch_of_segment,batch_size\n",
    }
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    path = write(tmp_path, ["a,0,400,1,LM,,400"])
    common = ("simulate", path, "--policy", "fifo", "--profiles", folder, "--rules", "round_s=1000")
    assert document(capsys, *common, "--gpus", 1, "--cluster", "new")["makespan_s"] == 400.0
    # The duration is that on the type named first: four times faster on the other one.
    assert document(capsys, *common, "--gpus", "old=1")["makespan_s"] == 400.0
    both = document(capsys, *common, "--gpus", "old=1,new=1")
    assert both["makespan_s"] == 100.0


def test_bad_traces_are_one_line_with_column_and_line(tmp_path, capsys):
    run = ["simulate", "--policy", "fifo", "--gpus", 4]
    path = write(tmp_path, [LINES[1], LINES[0]])
    told = fails(capsys, *run, path)
    assert "submit_time_s = 0.0: before the job above it, at 5" in told
    assert "(jobs.csv, line 3)" in told
    assert document(capsys, *run, path, "--sort")["num_jobs"] == 2
    path = write(tmp_path, [LINES[0], "b,5,nan,2,LM,20,480"])
    assert "duration_s = nan: must be finite (jobs.csv, line 3)" in fails(capsys, *run, path)
    path = write(tmp_path, [LINES[0], "b,5,90,8,LM,20,720"])
    assert "wider than the cluster of 4 GPUs" in fails(capsys, *run, path)
    path = write(tmp_path, [LINES[0], "b,5,90,2,BERT,20,180"])
    assert document(capsys, *run, path)["num_jobs"] == 2
    told = fails(capsys, *run, path, "--profiles", "builtin")
    assert "model = 'BERT'" in told
    assert "(jobs.csv, line 3)" in told


def test_a_snapshot_of_it_counts_epochs_in_seconds(tmp_path, capsys):
    run = ["snapshot", write(tmp_path, LINES), "--at", 120, "--gpus", 8]
    assert main.run([*map(str, run)]) == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    assert [job["total_epochs"] for job in jobs] == [600.0, 240.0, 333.0]
    assert all(regime["epoch_s"] == 1.0 for job in jobs for regime in job["regimes"])
    assert main.run([*map(str, run), "--profiles", "builtin"]) == 0
    builtin = json.loads(capsys.readouterr().out)["jobs"]
    assert [job["regimes"][0]["epoch_s"] > 1.0 for job in builtin] == [True] * 3
    assert "--cluster" in fails(capsys, *run, "--cluster", "tacc")
