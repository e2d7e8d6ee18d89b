"""Sequences and mappings as options of policies on the command line: as text, from files, and bad ones."""

import json

import pytest

from equipoise.cli.main import run
from equipoise.cli.simulate.policy_arguments import read_argument
from equipoise.cli.simulate.policy_spec import read_policies
from equipoise.heuristics.placement.service_distribution import ServiceDistribution
from equipoise.heuristics.placement.tiresias import TiresiasGittinsPolicy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import DurationSpeeds, ModelTable, simulate_placement

HEADER = "job_id,submit_time_s,duration_s,num_gpus,model,batch_size"


@pytest.fixture
def trace(tmp_path):
    """Return a CSV of durations in which queues, skews, scores and indices all change what happens."""
    path = tmp_path / "jobs.csv"
    models = ["vgg", "bert", "ncf"]
    lines = [f"{i},{200 * i},{400 + 977 * i % 3000},{1 + 2 * (i % 3)},{models[i // 3 % 3]},32" for i in range(30)]
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return path


def made(text, engine="placement"):
    """Return the only policy of a list, after a check that its label names it again."""
    (spec,) = read_policies([text], 0, engine)
    assert read_policies([spec.label], 0, engine)[0].arguments == spec.arguments
    return spec.make({})


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("tiresias:thresholds=3250/7200,promote=none", "thresholds", (3250, 7200)),
        ("tiresias:promote=none,thresholds=500", "thresholds", (500,)),
        ("tiresias:thresholds=1e3/2.5e3/9000", "thresholds", (1000, 2500, 9000)),
        ("tiresias:skew=bert:0.5/ncf:1", "skew", {"bert": 0.5, "ncf": 1}),
        ("tiresias:skew=a model:0.5/x:y:0.25,skew_threshold=0.4", "skew", {"a model": 0.5, "x:y": 0.25}),
        ("tiresias:skew=none", "skew", ModelTable.builtin().skews),
        ("lucid:scores=bert:2/ncf:0,capacity=1", "scores", {"bert": 2, "ncf": 0}),
        ("lucid:scores=none", "scores", None),
        ("gandiva:adaptive=bert/a model,quantum_s=30", "adaptive", ["bert", "a model"]),
        ("gandiva:adaptive=7", "adaptive", ["7"]),
        ("gandiva:utilization=bert:0.5", "utilization", {"bert": 0.5}),
    ],
)
def test_sequences_and_mappings_are_written_with_slashes(text, option, value):
    assert getattr(made(text), option) == value


def test_a_distribution_is_the_services_of_past_jobs():
    policy = made("tiresias-gittins:service=3600/7200/7200,thresholds=5000")
    assert policy.service.values == [3600, 7200, 7200]
    assert policy.thresholds == (5000,)
    assert made("tiresias-gittins:service=none").service is None


def test_a_policy_of_the_rounds_engine_takes_a_mapping():
    assert made("mst:costs_per_s=v100:3/k80:1,budget_per_s=2", "rounds").costs_per_s == {"v100": 3, "k80": 1}


@pytest.mark.parametrize(
    ("text", "thresholds", "decay"),
    [
        ("wfq:thresholds=3600,decay=-1.5", 3600, -1.5),
        ("wfq:thresholds=3600/7200,decay=2", [3600, 7200], 2),
        ("wfq:thresholds=3600/inf,decay=v100:1/k80:0", [3600, float("inf")], {"v100": 1, "k80": 0}),
    ],
)
def test_an_option_may_be_a_number_or_several(text, thresholds, decay):
    policy = made(text, "rounds")
    assert (policy.thresholds, policy.decay) == (thresholds, decay)


def test_a_truth_value_is_no_number(trace, capsys):
    assert run(["simulate", str(trace), "--policy", "wfq:decay=true", "--gpus", "8"]) == 2
    assert "decay = 'True': must be NAME:NUMBER/" in capsys.readouterr().err


def test_files_hold_the_same(tmp_path):
    files = {
        "thresholds": "thresholds\n3250\n7200\n",
        "skew": 'model,source,skew\nbert,a,0.5\n"names/with:all, x",b,0.25\n',
        "scores": "name,scores\nbert,2\nncf,0\n",
        "service": "job,service\n1,3600\n2,7200\n3,7200\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert made(f"tiresias:thresholds={tmp_path}/thresholds").thresholds == (3250, 7200)
    assert made(f"tiresias:skew={tmp_path}/skew").skew == {"bert": 0.5, "names/with:all, x": 0.25}
    assert made(f"lucid:scores={tmp_path}/scores").scores == {"bert": 2, "ncf": 0}
    assert made(f"tiresias-gittins:service={tmp_path}/service").service.values == [3600, 7200, 7200]


def test_a_file_is_read_once(tmp_path):
    path = tmp_path / "scores"
    path.write_text("model,scores\nbert,2\n", encoding="utf-8")
    (spec,) = read_policies([f"lucid:scores={path}"], 0, "placement")
    path.unlink()
    assert spec.make({}).scores == {"bert": 2}
    assert spec.label == f"lucid:scores={path}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiresias:thresholds=a/3", "thresholds = 'a/3': must be NUMBER/NUMBER/..., or a CSV file with a column thr"),
        ("tiresias:thresholds=3250//7200", "thresholds = '3250//7200': must be NUMBER/"),
        ("tiresias:thresholds=true", "thresholds = 'True': must be NUMBER/"),
        ("tiresias:thresholds=7200/3250", "thresholds[1] = 3250.0: must be above the one before"),
        ("tiresias:thresholds=none", "thresholds = None: "),
        ("tiresias:skew=bert", "skew = 'bert': must be NAME:NUMBER/NAME:NUMBER/..., or a CSV file with the names and"),
        ("tiresias:skew=bert:high", "skew = 'bert:high': must be NAME:NUMBER/"),
        ("tiresias:skew=:0.5", "skew = ':0.5': must be NAME:NUMBER/"),
        ("tiresias:skew=bert:1.5", "skew of bert = 1.5: at most 1"),
        ("lucid:scores=bert:1/bert:2", "scores = 'bert': is given twice"),
        ("lucid:scores=bert:3", "scores['bert'] = 3: at most 2"),
        ("lucid:scores=bert:nan", "scores['bert'] = nan: "),
        ("tiresias-gittins:service=5/0", "service[1] = 0.0: "),
        ("lucid:score=bert:2", "no option of lucid: did you mean"),
    ],
)
def test_bad_values_are_refused_by_name(trace, text, said, capsys):
    assert run(["simulate", str(trace), "--engine", "placement", "--policy", text, "--gpus", "8"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("model,score\nbert,2\n", "scores = 'model,score': column missing from the header of own.csv"),
        ("model,scores\nbert,high\n", "scores = 'high': must be a number (own.csv, line 2)"),
        ("model,scores\nbert,\n", "scores = '': must not be empty (own.csv, line 2)"),
        ("model,scores\n,2\n", "model = '': must not be empty (own.csv, line 2)"),
        ("model,scores\nbert,2\nbert,1\n", "scores = 'bert': is given twice (own.csv, line 3)"),
        ("scores,model\n2,bert\n", "scores = 'scores,model': the first column must hold the names (own.csv)"),
    ],
)
def test_bad_files_are_refused_by_column_and_line(tmp_path, trace, content, said, capsys):
    path = tmp_path / "own.csv"
    path.write_text(content, encoding="utf-8")
    arguments = ["simulate", str(trace), "--engine", "placement", "--policy", f"lucid:scores={path}", "--gpus", "8"]
    assert run(arguments) == 2
    assert said in capsys.readouterr().err


def test_options_without_sequences_remain_as_written():
    for value in ("a/b", "a:1", 3, None, True):
        assert read_argument("backend", value, "str") is value


def test_the_command_gives_the_result_of_the_policy(trace, capsys):
    written = "tiresias-gittins:thresholds=900/4000,service=800/2500/9000,skew=vgg:0.8/bert:0.3"
    arguments = [str(trace), "--gpus", "12", "--machines", "3", "--json"]
    assert run(["simulate", *arguments, "--policy", written]) == 0
    found = json.loads(capsys.readouterr().out)
    policy = TiresiasGittinsPolicy(
        thresholds=(900, 4000), service=ServiceDistribution([800, 2500, 9000]), skew={"vgg": 0.8, "bert": 0.3}
    )
    cluster = Cluster(gpus_by_type={"gpu": 12}, machines=3)
    result = simulate_placement(Trace.read(trace), policy, cluster=cluster, speeds=DurationSpeeds())
    assert found["avg_jct_s"] == pytest.approx(result.metrics["avg_jct_s"], rel=1e-12)
    assert found["preemptions"] == result.metrics["preemptions"] > 0
    assert found["options"]["skew"] == "vgg:0.8/bert:0.3"
    # Each of the options matters, and they are compared as well.
    others = [
        "tiresias-gittins:service=800/2500/9000,skew=vgg:0.8/bert:0.3",
        "tiresias-gittins:thresholds=900/4000,skew=vgg:0.8/bert:0.3",
        "tiresias-gittins:thresholds=900/4000,service=800/2500/9000",
    ]
    assert run(["compare", *arguments, "--engine", "placement", "--policies", ",".join([written, *others])]) == 0
    rows = json.loads(capsys.readouterr().out)["policies"]
    assert rows[0]["avg_jct_s"] == found["avg_jct_s"]
    assert len({row["avg_jct_s"] for row in rows}) == 4
