"""The shipped schemas are JSON Schema, our checks agree with jsonschema on them, and messages name the place."""

import copy
import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.cli.errors import CommandError
from equipoise.cli.json_text import json_text, json_value
from equipoise.cli.plan.schema import SCHEMAS, check_document, parse_json, schema_text

INSTANCE = {
    "format": "equipoise.window/1",
    "gpus": 8,
    "rounds": 4,
    "round_s": 120.0,
    "ftf_power": 5,
    "makespan_weight": 1e-3,
    "makespan_scale": None,
    "gang_weighted": True,
    "utility_floor": 1e-6,
    "restart_penalty": 0,
    "skip_wide": False,
    "running": ["a", 7],
    "jobs": [
        {
            "id": "a",
            "gpus": 2,
            "finished_epochs": 1.5,
            "total_epochs": 4,
            "regimes": [{"epochs": 2, "epoch_s": 60.0}, {"epochs": 0.5, "epoch_s": 30}],
            "ftf": 1.25,
            "weight": 2,
        },
        {"id": 7, "gpus": 1, "finished_epochs": 0, "total_epochs": 1, "regimes": [{"epochs": 1, "epoch_s": 300}]},
    ],
}
PLAN = {
    "format": "equipoise.window-plan/1",
    "termination": "FEASIBLE",
    "limit": "TIME",
    "message": "",
    "objective": -0.25,
    "bound": None,
    "gap": None,
    "residuals": {"bound": 0.0, "row": 0, "integrality": 1e-9},
    "wall_s": 0.01,
    "backend": "highs",
    "form": "counts",
    "notes": ["the bound holds for the counts form"],
    "rounds": 2,
    "round_s": 120.0,
    "gpus": 8,
    "gpus_in_use": [2, 0],
    "makespan_bound_s": 12.5,
    "restarts": 0,
    "skipped": [],
    "jobs": [{"id": "a", "gpus": 2, "rounds": [0], "regimes": [1], "utility": 0.5, "remaining_s": 0.0}],
}
DOCUMENTS = {"instance": INSTANCE, "plan": PLAN}
VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    1.0,
    2.5,
    -0.5,
    1e-9,
    1e14,
    1e300,
    2**53 + 2,
    10**400,
    "",
    "a",
    "é",
    [],
    {},
    [1, 1.0],
    ["a", "a"],
    [None],
    {"epochs": 1},
)


def places(document, path=()):
    yield path
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield from places(value, (*path, key))


@st.composite
def damaged(draw, name):
    document = copy.deepcopy(DOCUMENTS[name])
    for _ in range(draw(st.integers(0, 2))):
        *above, last = draw(st.sampled_from([path for path in places(document) if path]))
        holder = document
        for step in above:
            holder = holder[step]
        change = draw(st.sampled_from(["replace", "delete", "add", "double"]))
        if change == "replace":
            holder[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif change == "delete":
            del holder[last]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["gpu", "Jobs", "x"]))] = 1
        else:
            holder.append(copy.deepcopy(holder[last]))
    return document


def agrees(name, document):
    validator = jsonschema.Draft202012Validator(json.loads(schema_text(name)))
    allowed = validator.is_valid(document)
    try:
        check_document(name, document)
    except eq.InvalidInput:
        assert not allowed, document
    else:
        assert allowed, (document, [error.message for error in validator.iter_errors(document)])
    return allowed


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid_and_accept_the_good_document(name):
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text(name)))
    assert agrees(name, DOCUMENTS[name])


@given(damaged("instance"))
def test_instance_checks_agree_with_jsonschema(document):
    agrees("instance", document)


@given(damaged("plan"))
def test_plan_checks_agree_with_jsonschema(document):
    agrees("plan", document)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_place_refuses_a_value_of_the_wrong_type(name):
    for path in places(DOCUMENTS[name]):
        if path:
            document = copy.deepcopy(DOCUMENTS[name])
            holder = document
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = {"no": "such"}
            assert not agrees(name, document), path


BAD = [
    (("gpus",), 0, "gpus = 0: at least 1"),
    (("gpus",), 2.5, "gpus = 2.5: must be a whole number"),
    (("gpus",), True, "gpus = True: must be a whole number"),
    (("gpus",), "8", "gpus = '8': must be a whole number"),
    (("rounds",), 10**7, "rounds = 10000000: at most 10000"),
    (("round_s",), 0, "round_s = 0: must be greater than 0"),
    (("round_s",), math.nan, "round_s = nan: must be finite"),
    (("makespan_weight",), math.inf, "makespan_weight = inf: must be finite"),
    (("makespan_weight",), -math.inf, "makespan_weight = -inf: "),
    (("makespan_scale",), "big", "makespan_scale = 'big': must be a number or null"),
    (("gang_weighted",), 1, "gang_weighted = 1: must be true or false"),
    (("format",), "equipoise.window/2", 'must be "equipoise.window/1"'),
    (("running",), ["a", "a"], "running[1] = 'a': the same as [0]; must be unique"),
    (("jobs",), [], "jobs = []: must not be empty"),
    (("jobs", 1, "ftf"), math.nan, "jobs[1].ftf = nan: must be finite"),
    (("jobs", 1, "id"), "", "jobs[1].id = '': must not be empty"),
    (("jobs", 1, "id"), None, "jobs[1].id = None: must be text or a whole number"),
    (("jobs", 0, "regimes", 1, "epoch_s"), -30, "jobs[0].regimes[1].epoch_s = -30: must be greater than 0"),
    (("jobs", 0, "regimes"), {}, "jobs[0].regimes = {}: must be a list"),
    (("jobs", 0, "gpu"), 2, "jobs[0].gpu = 2: unknown key; did you mean 'gpus'?"),
    (("zzzz",), 2, "zzzz = 2: unknown key; known: format, gpus, "),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD)
def test_messages_name_path_and_value(path, value, message):
    document = copy.deepcopy(INSTANCE)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    with pytest.raises(eq.InvalidInput) as caught:
        check_document("instance", document)
    assert message in str(caught.value)
    assert caught.value.value is value or path == ("running",)


@pytest.mark.parametrize("path", [("jobs", 0, "gpus"), ("gpus",), ("jobs", 1, "regimes", 0, "epochs")])
def test_a_missing_key_is_named_by_its_path(path):
    document = copy.deepcopy(INSTANCE)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    with pytest.raises(eq.InvalidInput, match="is missing and required") as caught:
        check_document("instance", document)
    assert caught.value.field.endswith(f".{path[-1]}" if len(path) > 1 else path[-1])


@pytest.mark.parametrize("document", [[], 3, None, "x"])
def test_a_document_that_is_no_object_is_refused(document):
    with pytest.raises(eq.InvalidInput, match=r"document = .*must be an object"):
        check_document("instance", document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"gpus": 8,\n "jobs" [}', "not JSON at line 2, column 9"),
        ('{"gpus": 8, "gpus": 9}', "the key 'gpus' appears twice"),
        ("[" * 200_000, "nested too deeply"),
        ('{"gpus": ' + "9" * 5000 + "}", "5000 digits"),
    ],
)
def test_broken_json_says_where(text, message):
    with pytest.raises(CommandError) as caught:
        parse_json(text, "in.json")
    assert str(caught.value).startswith("in.json: ")
    assert message in str(caught.value)


@pytest.mark.thorough
@given(st.sampled_from(VALUES), st.text())
def test_json_text_reads_back_as_the_same_document(value, text):
    document = {"value": value, text: text, "rows": [{"a": value}, {"b": text}]}
    written = json_text(document)
    assert json.loads(written) == document
    assert written.isascii()


def test_json_text_never_writes_what_json_lacks():
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"bound": math.inf})
    assert [json_value(each) for each in (math.inf, -math.inf, math.nan, None, 2)] == [None, None, None, None, 2]
    assert [type(json_value(each)) for each in (np.float64(1.5), np.int64(3), np.bool_(True))] == [float, int, bool]
