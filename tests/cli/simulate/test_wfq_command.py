"""`--policy wfq:config=FILE`: the same file for the rounds and the fluid engine, weights by GPU type, and bad files."""

import json
import math

import pytest

from equipoise import WfqConfig
from equipoise.cli.main import run

PROFILES = {
    "throughputs.csv": "cluster,model,batch_size,scale_factor,steps_per_s\nold,LM,10,1,2\nnew,LM,10,1,8\n",
    "models.csv": "model,dataset_size,max_batch_size,scales\nLM,100,10,no\n",
    "accordion_rules.csv": "model,initial_batch_size,use,period,first_epoch,last_epoch\n",
    "gns_rules.csv": "model,initial_batch_size,scale_factor,first_epoch_of_segment,batch_size\n",
}
# The sizes are 6,000 s (jobs 0, 2, 4) and 3,000 s (jobs 1, 3) on the new GPUs.
JOBS = "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s\n" + "".join(
    f"{job},LM,10,1,static,{24000 if job % 2 else 48000},0\n" for job in range(5)
)
TYPED = {"new": ["3/4", "1/4"], "old": ["1/2", "1/2"]}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (PROFILES | {"jobs.csv": JOBS}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    configs = {"equal": ["1/2", "1/2"], "steep": ["3/4", "1/4"], "typed": TYPED, "new": {"new": TYPED["new"]}}
    for name, weights in configs.items():
        WfqConfig(thresholds=[4000.0, math.inf], weights=weights).to_json(tmp_path / f"{name}.json")
    WfqConfig(thresholds=[4000.0, math.inf], weights=["1/2", "1/2"], zeta=0.5).to_json(tmp_path / "capped.json")


def ends(capsys, policy, *arguments, engine="rounds"):
    """Return the end of each job, after a check of the engine."""
    words = ["simulate", "jobs.csv", "--policy", policy, *arguments, "--profiles", ".", "--json", "--per-job"]
    assert run(words) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == engine
    return [job["end_s"] for job in found["jobs"]]


def failing(capsys, policy, *arguments):
    assert run(["simulate", "jobs.csv", "--policy", policy, *arguments, "--profiles", "."]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_the_rounds_engine_reads_a_configuration(capsys):
    one_type = ["--cluster", "new", "--gpus", "1"]
    equal, steep = (ends(capsys, f"wfq:config={name}.json", *one_type) for name in ("equal", "steep"))
    assert equal == ends(capsys, "wfq:thresholds=4000", *one_type)
    assert steep == ends(capsys, f"wfq:thresholds=4000,decay={math.log(3.0)}", *one_type)
    assert steep[1] < equal[1]


def test_the_rounds_engine_reads_weights_by_type(capsys):
    two_types = ["--gpus", "new=1,old=1"]
    typed = ends(capsys, "wfq:config=typed.json", *two_types)
    assert typed == ends(capsys, f"wfq:thresholds=4000,decay=old:0/new:{math.log(3.0)}", *two_types)
    assert typed != ends(capsys, "wfq:config=equal.json", *two_types)


def test_the_fluid_engine_reads_the_same_configurations(capsys):
    one_type = ["--engine", "fluid", "--cluster", "new", "--gpus", "1"]
    equal, steep, new = (
        ends(capsys, f"wfq:config={name}.json", *one_type, engine="fluid") for name in ("equal", "steep", "new")
    )
    # Both queues are busy until job 3, which is the second of 3,000 s, ends.
    assert equal[3] == pytest.approx(6000.0 / 0.5)
    assert steep[3] == pytest.approx(6000.0 / 0.75)
    assert new == steep


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        ("wfq:config=capped.json", ["--gpus", "1"], "config.zeta = 0.5: must be 0"),
        ("wfq:config=equal.json,decay=1", ["--gpus", "1"], "decay = 1: not beside config"),
        ("wfq:config=equal.json,thresholds=1/2", ["--gpus", "1"], "thresholds = [1, 2]: not beside config"),
        ("wfq:config=7", ["--gpus", "1"], "config = 'int': must be a WfqConfig or the path of its file"),
        ("wfq:config=typed.json", ["--gpus", "1"], "config = 'new, old': must be for the GPU types of the cluster"),
        ("wfq:config=new.json", ["--gpus", "new=1,old=1"], "config = 'new': must be for the GPU types of the cluster"),
        ("wfq:config=typed.json", ["--gpus", "1", "--engine", "fluid"], "config = 'new, old': has weights of several"),
    ],
)
def test_what_is_refused(capsys, policy, arguments, message):
    cluster = [] if "=" in arguments[1] else ["--cluster", "new"]
    assert message in failing(capsys, policy, *arguments, *cluster)
