"""Speeds by the network on the command line: runs, files, clusters stated by racks, and what is refused."""

import json

import pytest

from equipoise.cli.main import run
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, read_trace
from equipoise.simulation.network import AllReduceSpeeds, CommunicationTable, Network, PenaltySpeeds, TableSpeeds
from equipoise.simulation.placement import simulate_placement

MODELS = CommunicationTable.builtin().models
PAPER = Cluster(gpus_by_type={"gpu": 128}, machines=16, gpus_per_machine=8, racks=2)
KINDS = {"table": TableSpeeds, "all-reduce": AllReduceSpeeds, "penalties": PenaltySpeeds}
MEASURED = "model,machine,rack,network,gradient_mb,layers,skew\n" + "".join(f"{m},1,2,3,10,2,0.5\n" for m in MODELS)
LINK = {"topology": "ring", "bandwidth_gb_s": 1, "latency_ns": 0}
FILES = {
    "table": MEASURED,
    "all-reduce": json.dumps(dict.fromkeys(("machine", "rack", "network"), LINK)),
    "penalties": '{"machine": 2, "rack": 3, "network": 4}',
}


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "jobs.csv"
    lines = [f"{k},{40 * k},{900 + 7 * k},{(1, 4, 8, 24, 70)[k % 5]},{MODELS[k % 6]}" for k in range(24)]
    path.write_text("\n".join(["job_id,submit_time_s,duration_s,num_gpus,model", *lines]))
    return str(path)


def document(capsys, *arguments):
    assert run(["simulate", *arguments, "--policy", "sjf:placement=least_loaded", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", KINDS)
def test_racks_alone_are_the_paper_s_cluster(capsys, trace, name):
    found = document(capsys, trace, "--racks", "2", "--speeds", name)
    assert [found[key] for key in ("gpus", "machines", "gpus_per_machine", "racks")] == [128, 16, 8, 2]
    assert [found[key] for key in ("engine", "speeds", "network")] == ["placement", name, None]
    policy, speeds = make_policy("sjf", "placement", placement="least_loaded"), KINDS[name](cluster=PAPER)
    wanted = simulate_placement(read_trace(trace), policy, cluster=PAPER, speeds=speeds).metrics
    assert found["makespan_s"] == pytest.approx(wanted["makespan_s"])
    assert found["avg_jct_s"] == pytest.approx(wanted["avg_jct_s"])


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_the_user_s_replaces_the_data(capsys, tmp_path, trace, name):
    file = tmp_path / "network.file"
    file.write_text(FILES[name])
    found = document(capsys, trace, "--racks", "2", "--speeds", name, "--network", str(file))
    assert found["network"] == str(file)
    speeds = {
        "table": lambda: TableSpeeds(CommunicationTable.read(file), cluster=PAPER),
        "all-reduce": lambda: AllReduceSpeeds(Network.read(file, cluster=PAPER), cluster=PAPER),
        "penalties": lambda: PenaltySpeeds(2, 3, 4, cluster=PAPER),
    }[name]()
    wanted = simulate_placement(
        read_trace(trace), make_policy("sjf", "placement", placement="least_loaded"), cluster=PAPER, speeds=speeds
    )
    assert found["avg_jct_s"] == pytest.approx(wanted.metrics["avg_jct_s"])
    assert found["makespan_s"] != document(capsys, trace, "--racks", "2", "--speeds", name)["makespan_s"]


def test_policies_are_compared_and_take_the_skews_of_the_table(capsys, trace):
    options = ["--racks", "2", "--speeds", "table", "--policies", "sjf,tiresias"]
    assert run(["compare", trace, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["gpus"], found["machines"], found["speeds"]) == (128, 16, "table")
    cluster_speeds = TableSpeeds(cluster=PAPER)
    policy = make_policy("tiresias", "placement", skew=cluster_speeds.table.skews)
    wanted = simulate_placement(read_trace(trace), policy, cluster=PAPER, speeds=cluster_speeds).metrics
    by_policy = {each["policy"]: each for each in found["policies"]}
    assert by_policy["tiresias"]["avg_jct_s"] == pytest.approx(wanted["avg_jct_s"])


def test_the_page_repeats_the_options(capsys, tmp_path, trace):
    options = ["--racks", "2", "--speeds", "penalties", "--policy", "sjf", "--out", str(tmp_path / "out")]
    assert run(["simulate", trace, *options]) == 0
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "128 GPUs on 16 machines in 2 racks" in page
    assert "--racks 2 --speeds penalties" in page
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--speeds", "tables"], "--speeds = 'tables': must be one of"),
        (["--speeds", "table", "--slowdown", "2"], "--slowdown = '2': --speeds table states the time between machines"),
        (["--speeds", "penalties", "--slowdown", "2"], "--slowdown = '2': --speeds penalties states the time"),
        (["--speeds", "all-reduce", "--models", "x.csv"], "--models x.csv: read by --speeds models only"),
        (["--speeds", "durations", "--network", "x.csv"], "--network x.csv: read by --speeds table, all-reduce and"),
        (["--network", "x.csv"], "--network x.csv: read by --speeds table, all-reduce and penalties only"),
        (["--speeds", "table", "--network", "x.csv"], "path = 'x.csv': No such file"),
        (["--speeds", "all-reduce", "--network", "x.json"], "path = 'x.json': No such file"),
        (["--engine", "rounds", "--network", "x.csv"], "--network: not an option of the engine rounds"),
    ],
)
def test_bad_options_are_refused_by_name(capsys, trace, options, message):
    assert run(["simulate", trace, "--policy", "sjf", "--skip-wide", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_traces_without_durations_or_with_other_models_are_refused(capsys, tmp_path):
    assert run(["simulate", "generated:5", "--policy", "sjf", "--speeds", "table"]) == 2
    assert "--speeds = 'table': the trace has no durations" in capsys.readouterr().err
    path = tmp_path / "other.csv"
    path.write_text("job_id,submit_time_s,duration_s,num_gpus,model\na,0,60,2,VGG11\nb,0,60,2,VGG-11\n")
    assert run(["simulate", str(path), "--policy", "sjf", "--speeds", "table"]) == 2
    message = capsys.readouterr().err
    assert "model = 'VGG-11': did you mean 'VGG11'?" in message
    assert "other.csv, line 3" in message
