"""JobChain: its checks, and the chains that regimes make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq

GOOD = {
    "initial": [0.5, 0.5],
    "transitions": [[[1, 0], [0, 1]], [[0.25, 0.75], [0, 1]]],
    "utilities": [[0, 0], [1, 2]],
    "demands": [0, 1],
}


def with_entry(field, index, value):
    table = np.array(GOOD[field], dtype=float)
    table[index] = value
    return table.tolist()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("initial", [0.5, 0.4], "initial = 0.9: the probabilities must sum to 1"),
        ("initial", [1.5, -0.5], r"initial\[1\] = -0.5: at least 0"),
        ("initial", [np.nan, 1.0], r"initial\[0\] = nan: must be finite"),
        ("initial", [1.0], r"transitions = 'array of shape \(2, 2, 2\)': must have shape \(2, 1, 1\)"),
        ("initial", [], "initial = '\\[\\]': must not be empty"),
        ("transitions", with_entry("transitions", (1, 0, 0), 0.5), r"transitions\[1, 0\] = 1.25: the probabilities of"),
        ("transitions", with_entry("transitions", (1, 0, 0), -0.5), r"transitions\[1, 0, 0\] = -0.5: at least 0"),
        ("transitions", with_entry("transitions", (0, 1, 0), np.nan), r"transitions\[0, 1, 0\] = nan: must be finite"),
        ("transitions", [np.eye(2)], r"transitions = 'array of shape \(1, 2, 2\)': must have shape \(2, 2, 2\)"),
        ("transitions", [[1, 0], [0, 1]], r"transitions = .*must have 3 dimension"),
        ("utilities", with_entry("utilities", (1, 1), -1), r"utilities\[1, 1\] = -1.0: at least 0"),
        ("utilities", with_entry("utilities", (1, 1), np.inf), r"utilities\[1, 1\] = inf: must be finite"),
        ("utilities", [[0, 0, 0], [1, 2, 3]], r"utilities = 'array of shape \(2, 3\)': must have shape \(2, 2\)"),
        ("demands", [1, 0], r"demands\[0\] = 1.0: the first action must take nothing"),
        ("demands", [0, -1], r"demands\[1\] = -1.0: at least 0"),
        ("demands", [0, 0], r"demands\[1\] = \[0.0\]: the same amounts as action 0"),
        ("demands", [[0, 1], [1, 1]], r"demands\[0, 1\] = 1.0: the first action must take nothing"),
        ("demands", [[0, 0], [1, np.nan]], r"demands\[1, 1\] = nan: must be finite"),
        ("demands", [0, 1, 2], r"transitions = 'array of shape \(2, 2, 2\)': must have shape \(3, 2, 2\)"),
        ("demands", "01", "demands = '01': must be a sequence of numbers"),
        ("demands", 1.0, "demands = .*must have"),
    ],
)
def test_bad_input_is_named(field, value, message):
    assert eq.JobChain(**GOOD).num_states == 2
    with pytest.raises(eq.InvalidInput, match=message):
        eq.JobChain(**{**GOOD, field: value})


def test_the_same_amounts_of_all_resources_are_one_action_and_of_some_are_not():
    three = {**GOOD, "transitions": [*GOOD["transitions"], np.eye(2)], "utilities": [*GOOD["utilities"], [1, 1]]}
    assert eq.JobChain(**{**three, "demands": [[0, 0], [1, 0], [1, 1]]}).num_actions == 3
    with pytest.raises(eq.InvalidInput, match=r"demands\[2\] = \[1.0, 2.0\]: the same amounts as action 1"):
        eq.JobChain(**{**three, "demands": [[0, 0], [1, 2], [1, 2]]})


def test_sums_that_only_rounding_keeps_from_one_are_made_exact():
    third = 1 / 3
    chain = eq.JobChain(
        initial=[third] * 3, transitions=[[[third] * 3] * 3] * 2, utilities=[[0] * 3, [1] * 3], demands=[0, 1]
    )
    np.testing.assert_allclose(chain.transitions.sum(axis=2), 1.0, rtol=1e-15)


# -- From regimes ------------------------------------------------------------------------------------------------------

SPEEDS = [[0, 1.0, 1.8], [0, 1.5, 3.0]]


def run_alone(chain, rounds, action=-1):
    """Expected utility of always taking one action."""
    here, total = chain.initial, 0.0
    for _ in range(rounds):
        total += float(here @ chain.utilities[action])
        here = here @ chain.transitions[action]
    return total


def test_whole_speeds_train_whole_epochs_until_the_job_ends():
    chain = eq.JobChain.from_regimes(epochs=7, epochs_per_round=[[0, 3]], change_probability=[], demands=[0, 1])
    assert chain.num_states == 8
    assert [run_alone(chain, rounds) for rounds in (1, 2, 3, 4)] == [3, 6, 7, 7]
    assert run_alone(chain, 5, action=0) == 0


def test_a_regime_that_ends_for_certain_and_one_that_never_does():
    sure = eq.JobChain.from_regimes(epochs=9, epochs_per_round=[[0, 1], [0, 4]], change_probability=1, demands=[0, 1])
    never = eq.JobChain.from_regimes(epochs=9, epochs_per_round=[[0, 1], [0, 4]], change_probability=0, demands=[0, 1])
    assert [run_alone(sure, n) for n in (1, 2, 3, 4)] == [1, 5, 9, 9]
    assert [run_alone(never, n) for n in (1, 2, 3)] == [1, 2, 3]


def test_a_job_starts_where_it_stands():
    chain = eq.JobChain.from_regimes(
        epochs=10, epochs_per_round=SPEEDS, change_probability=0.2, demands=[0, 1, 2], finished_epochs=4, regime=1
    )
    assert chain.initial.argmax() == 14
    assert run_alone(chain, 3) == 6
    done = eq.JobChain.from_regimes(
        epochs=10, epochs_per_round=SPEEDS, change_probability=0.2, demands=[0, 1, 2], finished_epochs=10
    )
    assert done.initial.argmax() == 20
    assert run_alone(done, 3) == 0


@given(
    st.integers(1, 6),
    st.lists(st.lists(st.integers(0, 14), min_size=2, max_size=2), min_size=1, max_size=3),
    st.integers(0, 4),
    st.integers(1, 5),
)
def test_the_chain_tells_the_story_of_its_docstring(epochs, quarters, chance, rounds):
    """The expected epochs of a job that always runs, against the story told epoch by epoch."""
    speeds = [[0.0, *(quarter / 4 for quarter in row)] for row in quarters]
    ends = chance / 4
    chain = eq.JobChain.from_regimes(epochs=epochs, epochs_per_round=speeds, change_probability=ends, demands=[0, 1, 2])
    beliefs, expected = {(0, 0): 1.0}, 0.0  # (regime, epochs done): probability
    for _ in range(rounds):
        after = {}
        for (regime, done), probability in beliefs.items():
            whole, part = divmod(speeds[regime][-1], 1)
            for wanted, share in ((whole, 1 - part), (whole + 1, part)):
                trained, stays = 0, 1.0
                while trained < wanted and done + trained < epochs:
                    trained += 1
                    if regime + 1 < len(speeds):
                        stays *= 1 - ends
                expected += probability * share * trained
                for to, odds in ((regime, stays), (regime + 1, 1 - stays)):
                    if odds > 0:
                        key = (to, done + trained)
                        after[key] = after.get(key, 0.0) + probability * share * odds
        beliefs = after
    assert run_alone(chain, rounds) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("epochs", 0, "epochs = 0: at least 1"),
        ("epochs", 2.5, "epochs = 2.5: must be a whole number"),
        ("epochs_per_round", [[0.5, 1, 2], [0, 1, 2]], r"epochs_per_round\[0, 0\] = 0.5: the first action trains"),
        ("epochs_per_round", [[0, -1, 2], [0, 1, 2]], r"epochs_per_round\[0, 1\] = -1.0: at least 0"),
        ("epochs_per_round", [0, 1, 2], "epochs_per_round = .*must have 2 dimension"),
        ("change_probability", 1.5, "change_probability = 1.5: at most 1"),
        ("change_probability", [-0.5], r"change_probability\[0\] = -0.5: at least 0"),
        ("change_probability", [0.5, 0.5], r"change_probability = .*must have shape \(1,\)"),
        ("change_probability", "often", "change_probability = 'often': must be a number"),
        ("demands", [0, 1], r"transitions = 'array of shape \(3, 21, 21\)': must have shape \(2, 21, 21\)"),
        ("finished_epochs", 11, "finished_epochs = 11: at most 10"),
        ("regime", 2, "regime = 2: at most 1"),
    ],
)
def test_bad_regimes_are_named(field, value, message):
    good = {"epochs": 10, "epochs_per_round": SPEEDS, "change_probability": 0.2, "demands": [0, 1, 2]}
    assert eq.JobChain.from_regimes(**good).num_states == 21
    with pytest.raises(eq.InvalidInput, match=message):
        eq.JobChain.from_regimes(**{**good, field: value})
