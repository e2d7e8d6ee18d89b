"""Options of the policies of Dally: refused by name, and as text on the command line."""

import json
import math

import pytest

from equipoise import InvalidInput
from equipoise.cli.main import run
from equipoise.cli.simulate.policy_spec import read_policies
from equipoise.formulations.search.delay_timers import DelayTimers
from equipoise.heuristics import make_policy
from equipoise.heuristics.dally.auto_tuner import TunerSettings

NAMES = ["dally", "dally-manual", "dally-nowait", "dally-consolidated"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"lease_s": 0.0}, r"lease_s = 0\.0: at least"),
        ({"lease_s": -5}, "lease_s = -5: at least"),
        ({"lease_s": -math.inf}, "lease_s = -inf: must be finite"),
        ({"lease_s": None}, "lease_s = None: must be a number"),
        ({"offer_s": 0.0}, r"offer_s = 0\.0: at least"),
        ({"offer_s": 1e-6}, "offer_s = 1e-06: at least"),
        ({"offer_s": math.nan}, "offer_s = nan: must be finite"),
        ({"keep": 1}, "keep = 1"),
        ({"keep": "yes"}, "keep = 'yes'"),
        ({"lease": 5}, "lease = 5: no option of dally"),
    ],
)
def test_options_of_all_are_refused_by_name(name, options, why):
    with pytest.raises(InvalidInput, match=why):
        make_policy(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("dally", {"preset": "artifact"}, "preset = 'artifact': must be one of paper, released"),
        ("dally", {"ddof": 2}, "ddof = 2: at most 1"),
        ("dally", {"floor_s": 5.0}, r"floor_s = 5\.0: must be a pair"),
        ("dally", {"floor_s": [9.0, 9.0], "cap_s": [5.0, 99.0]}, r"floor_s = 9\.0: must not exceed its cap, 5"),
        ("dally", {"cap_s": (1.0, -1.0)}, r"cap_s\.rack_s = -1\.0: at least 0"),
        ("dally", {"empty_s": (1.0,)}, "empty_s = .*must be a pair"),
        ("dally", {"least_wait_s": -1.0}, r"least_wait_s = -1\.0: at least 0"),
        ("dally", {"history_s": 0}, "history_s = 0: must be greater than 0"),
        ("dally", {"preset": "released", "lease_s": 86400.0}, r"history_s = 604800\.0: at least 1.0368e\+06"),
        ("dally", {"machine_s": 5.0}, r"machine_s = 5\.0: no option of dally"),
        ("dally-manual", {"machine_s": -1.0}, r"machine_s = -1\.0: at least 0"),
        ("dally-manual", {"rack_s": math.nan}, "rack_s = nan: must be finite"),
        ("dally-manual", {"rack_s": "1 h"}, "rack_s = '1 h': must be a number"),
        ("dally-manual", {"timers": 12}, "timers = 'int': must be DelayTimers or the path of their file"),
        ("dally-manual", {"timers": "none.json"}, r"path = 'none\.json': No such file"),
        ("dally-manual", {"timers": DelayTimers.manual(), "rack_s": 5.0}, r"rack_s = 5\.0: leave it out with timers"),
        ("dally-nowait", {"rack_s": 5.0}, r"rack_s = 5\.0: no option of dally-nowait"),
        ("dally-consolidated", {"timers": "x"}, "timers = 'x': no option of dally-consolidated"),
    ],
)
def test_options_of_one_are_refused_by_name(name, options, why):
    with pytest.raises(InvalidInput, match=why):
        make_policy(name, **options)


def made(text):
    """Return the only policy of a list, after a check that its label names it again."""
    (spec,) = read_policies([text], 0, "placement")
    assert read_policies([spec.label], 0, "placement")[0].arguments == spec.arguments
    return spec.make({})


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("dally", TunerSettings()),
        ("dally:preset=released,lease_s=7200", TunerSettings.preset("released", lease_s=7200.0)),
        ("dally:floor_s=21600/43200", TunerSettings(floor_s=(21600.0, 43200.0))),
        ("dally:cap_s=5/inf,empty_s=inf/inf", TunerSettings(cap_s=(5.0, math.inf), empty_s=(math.inf, math.inf))),
        ("dally:ddof=0,least_wait_s=60,history_s=9e4", TunerSettings(ddof=0, least_wait_s=60.0, history_s=9e4)),
        ("dally:cap_s=none", TunerSettings()),
    ],
)
def test_the_auto_tuner_is_set_on_the_command_line(text, settings):
    assert made(text).settings == settings


def test_timers_are_set_on_the_command_line(tmp_path):
    assert made("dally-manual:machine_s=60,rack_s=inf").rule.rack_s == math.inf
    timers = DelayTimers(machine_s=60.0, rack_s=math.inf, by_demand={8: (1.0, 2.0)})
    timers.to_json(tmp_path / "timers.json")
    rule = made(f"dally-manual:timers={tmp_path}/timers.json,keep=false,offer_s=300").rule
    assert (rule.machine_s, rule.rack_s, rule.by_demand) == (60.0, math.inf, {8: (1.0, 2.0)})
    assert (rule.keep, rule.offer_s, rule.lease_s, rule.tuner) == (False, 300.0, 3600.0, None)


def test_rules_of_the_policies():
    assert [make_policy(name).rule.machine_s for name in NAMES[1:]] == [43200.0, 0.0, math.inf]
    assert [make_policy(name).rule.rack_s for name in NAMES[1:]] == [86400.0, 0.0, math.inf]
    rule = make_policy("dally", preset="released").rule
    assert rule.tuner.cap_s == make_policy("dally", preset="released").settings.cap_s
    assert rule.offer_s == math.inf


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "jobs.csv"
    lines = [f"{i},{100 * i},{4000 + 977 * i % 3000},{(2, 4, 8, 16)[i % 4]},vgg,32" for i in range(12)]
    path.write_text("\n".join(["job_id,submit_time_s,duration_s,num_gpus,model,batch_size", *lines]), encoding="utf-8")
    return path


CLUSTER = ["--gpus", "32", "--gpus-per-machine", "4", "--racks", "2"]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        *((name, {}) for name in NAMES),
        ("dally:floor_s=9/9,cap_s=60/inf", {"floor_s": "9/9", "cap_s": "60/inf"}),
        ("dally-manual:machine_s=0,rack_s=inf", {"machine_s": 0, "rack_s": "inf"}),
        ("dally-nowait:lease_s=inf", {"lease_s": "inf"}),
    ],
)
def test_the_command_simulates_them(capsys, trace, policy, options):
    assert run(["simulate", str(trace), "--policy", policy, *CLUSTER, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["engine"] == "placement"
    assert shown["policy"] == policy.partition(":")[0]
    assert shown["makespan_s"] > 4000.0
    assert shown["options"] == options


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("dally:floor_s=12", "floor_s = [12]: must be a pair of timers (machine_s, rack_s)"),
        ("dally:floor_s=a/b", "floor_s = 'a/b': must be NUMBER/NUMBER"),
        ("dally:preset=none", "preset = None: must be one of paper, released"),
        ("dally-manual:timers=none.json", "path = 'none.json': No such file"),
        ("dally-manual:rack_s=-1", "rack_s = -1: at least 0"),
        ("dally-nowait:rack=1", "rack = 1: no option of dally-nowait"),
    ],
)
def test_the_command_refuses_by_name(capsys, trace, policy, why):
    assert run(["simulate", str(trace), "--policy", policy, *CLUSTER]) == 2
    assert why in capsys.readouterr().err
