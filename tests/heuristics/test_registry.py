"""The registry of policies: what it says of each is what the policy is, and the pages name what it holds."""

import re
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.heuristics import POLICIES, engines_of, find_policy, make_policy, policies_of
from equipoise.simulation import ENGINES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_of_the_engine_of_its_row(name):
    policy = make_policy(name)
    assert policy.name == name
    assert getattr(policy, "engine", "rounds") == POLICIES[name].engine
    assert POLICIES[name] is find_policy(name, POLICIES[name].engine)


def test_engines_and_policies_find_each_other():
    assert engines_of("gavel") == ("rounds",)
    assert engines_of("fifo") == ("rounds", "placement", "fluid")
    assert engines_of("none") == ()
    assert {*policies_of("rounds"), *policies_of("placement"), *policies_of("fluid")} == set(POLICIES)
    assert {entry.engine for entry in POLICIES.values()} == set(ENGINES)


def test_what_is_unknown_is_named_with_the_nearest():
    with pytest.raises(eq.InvalidInput, match="name = 'gavell': did you mean 'gavel'"):
        make_policy("gavell")
    with pytest.raises(eq.InvalidInput, match="engine = 'round': did you mean 'rounds'"):
        make_policy("gavel", "round")
    with pytest.raises(eq.InvalidInput, match="backfil = True: no option of fifo: did you mean 'backfill'"):
        make_policy("fifo", backfil=True)


def first_cells(page, heading):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def test_the_pages_list_every_policy_and_every_engine():
    assert first_cells("policies.md", "The policies") == list(policies_of("rounds"))
    assert first_cells("policies.md", "Policies of the placement engine") == list(policies_of("placement"))
    assert first_cells("fluid.md", "Policies") == list(policies_of("fluid"))
    assert first_cells("simulation.md", "Engines") == list(ENGINES)
    command = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    listed = re.search(r"\nThe policies are (.*?);", command, flags=re.DOTALL)
    assert re.findall("`([^`]+)`", listed[1]) == list(POLICIES)
    row = next(line for line in command.splitlines() if line.startswith("| `--engine` |"))
    assert re.findall("`([^`]+)`", row.rsplit("|", 2)[1]) == list(ENGINES)


@pytest.mark.parametrize("page", ["README.md", "docs/policies.md"])
def test_the_pages_count_the_policies(page):
    words = {13: "Thirteen", 14: "Fourteen", 15: "Fifteen", 16: "Sixteen", 17: "Seventeen", 18: "Eighteen"}
    text = (ROOT / page).read_text(encoding="utf-8").lower()
    assert f"{words[len(policies_of('rounds'))].lower()} policies" in text
