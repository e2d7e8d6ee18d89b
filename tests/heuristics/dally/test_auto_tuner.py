"""The auto-tuner beside numpy on random histories, its two lists for each demand, and its options."""

import math

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.heuristics.dally.auto_tuner import MACHINE, PRESETS, RACK, AutoTuner, TunerSettings

HOUR_S = 3600.0


def reference(waits, tier, now_s, *, ddof, floor_s, cap_s, least_wait_s, history_s, empty_s):
    """Return the timer that follows from all (time, wait) of one tier and demand, by the definition."""
    kept = [wait for time_s, wait in waits if now_s - time_s <= history_s and wait >= least_wait_s]
    if not kept:
        return empty_s[tier]
    deviation = np.std(kept, ddof=ddof) if len(kept) > ddof else 0.0
    return float(np.clip(np.mean(kept) + 2 * deviation, floor_s[tier], cap_s[tier]))


# The presets as the specification states them, for leases of one hour and a history of a week.
WEEK_S = 168 * HOUR_S
DEFAULTS = {"least_wait_s": 0.0, "history_s": WEEK_S, "empty_s": (12 * HOUR_S, 24 * HOUR_S)}
SETTINGS = {
    "paper": {"ddof": 1, "floor_s": (0.0, 0.0), "cap_s": (math.inf, math.inf), **DEFAULTS},
    "released": {
        "ddof": 0, "floor_s": (6 * HOUR_S, 12 * HOUR_S), "cap_s": (0.8 * WEEK_S, WEEK_S), **DEFAULTS,
    },
    "patient": {
        "ddof": 1, "floor_s": (48 * HOUR_S, 96 * HOUR_S), "cap_s": (math.inf, math.inf), **DEFAULTS,
        "empty_s": (math.inf, math.inf),
    },
}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_timers_are_those_of_a_reference_on_random_histories(preset):
    rng = np.random.default_rng(17)
    limited = capped = emptied = dropped = 0
    for _ in range(1000):
        changes = {}
        if rng.random() < 0.5:
            changes["least_wait_s"] = float(rng.choice([1.0, HOUR_S]))
        if rng.random() < 0.5:
            changes["history_s"] = float(rng.choice([12, 24, 48])) * HOUR_S
        settings = TunerSettings.preset(preset, lease_s=HOUR_S, **changes)
        expected = {**SETTINGS[preset], **changes}
        if preset == "released":
            expected["cap_s"] = (0.8 * expected["history_s"], expected["history_s"])
        tuner, lists, now_s = AutoTuner(settings), {}, 0.0
        scale_s = float(rng.choice([600.0, 20 * HOUR_S, 80 * HOUR_S]))
        for _ in range(int(rng.integers(1, 25))):
            now_s += float(rng.choice([0.0, 1.0, HOUR_S, 30 * HOUR_S])) * rng.random()
            demand = int(rng.choice([1, 2, 8, 16]))
            if rng.random() < 0.7:
                tier, wait_s = int(rng.integers(2)), float(scale_s * rng.exponential() * (rng.random() < 0.8))
                tuner.record(tier, demand, now_s, wait_s)
                lists.setdefault((tier, demand), []).append((now_s, wait_s))
                continue
            found = tuner.timers(demand, now_s)
            for tier, timer_s in enumerate(found):
                waits = lists.get((tier, demand), [])
                assert timer_s == pytest.approx(reference(waits, tier, now_s, **expected), rel=1e-12, abs=1e-9)
                limited += timer_s in expected["floor_s"] and timer_s > 0.0
                capped += timer_s in expected["cap_s"] and math.isfinite(timer_s)
                emptied += bool(waits) and timer_s == expected["empty_s"][tier]
                dropped += any(now_s - time_s > expected["history_s"] for time_s, _ in waits)
    # The histories reach every option.
    assert emptied > 30
    assert dropped > 100
    assert limited > 100 if preset != "paper" else limited == 0
    assert capped > 10 if preset == "released" else capped == 0


def test_there_are_two_lists_for_each_demand():
    tuner = AutoTuner(TunerSettings(empty_s=(1.0, 2.0)))
    for tier, demand, wait_s in [(MACHINE, 8, 10.0), (RACK, 8, 20.0), (MACHINE, 4, 30.0)]:
        tuner.record(tier, demand, 0.0, wait_s)
    assert tuner.timers(8, 5.0) == (10.0, 20.0)
    assert tuner.timers(4, 5.0) == (30.0, 2.0)
    assert tuner.timers(16, 5.0) == (1.0, 2.0)


@pytest.mark.parametrize("history_s", [1.0, HOUR_S, WEEK_S])
def test_a_wait_leaves_at_the_history_limit_to_the_second(history_s):
    tuner = AutoTuner(TunerSettings(history_s=history_s, empty_s=(5.0, 6.0)))
    tuner.record(MACHINE, 8, 100.0, 40.0)
    tuner.record(MACHINE, 8, 110.0, 60.0)
    both_s = 50.0 + 2 * math.sqrt(200.0)
    for late_s, timer_s in [(0.0, both_s), (1.0, 60.0), (10.0, 60.0), (11.0, 5.0)]:
        if history_s > 10.0:
            assert tuner.timers(8, 100.0 + history_s + late_s).machine_s == pytest.approx(timer_s)
    if history_s == 1.0:
        assert [tuner.timers(8, now_s).machine_s for now_s in (110.0, 111.0, 112.0)] == [60.0, 60.0, 5.0]


@pytest.mark.parametrize(
    ("waits", "settings", "timer_s"),
    [
        ([], {}, 12 * HOUR_S),
        ([], {"empty_s": (0.0, 0.0)}, 0.0),
        ([], {"empty_s": (math.inf, math.inf)}, math.inf),
        ([], {"empty_s": (70.0, 80.0), "cap_s": (60.0, 60.0)}, 70.0),  # floor and cap are those of recorded waits
        ([30.0], {}, 30.0),
        ([30.0], {"ddof": 0}, 30.0),
        ([30.0, 50.0], {}, 40.0 + 2 * math.sqrt(200.0)),
        ([30.0, 50.0], {"ddof": 0}, 60.0),
        ([30.0, 50.0], {"cap_s": (45.0, 99.0)}, 45.0),
        ([30.0, 50.0], {"floor_s": (90.0, 0.0)}, 90.0),
        ([30.0, 50.0], {"least_wait_s": 30.0, "ddof": 0}, 60.0),
        ([30.0, 50.0], {"least_wait_s": 30.5}, 50.0),
        ([30.0, 50.0], {"least_wait_s": 51.0}, 12 * HOUR_S),
        ([0.0, 0.0], {}, 0.0),
    ],
)
def test_each_option(waits, settings, timer_s):
    tuner = AutoTuner(TunerSettings(**settings))
    for wait_s in waits:
        tuner.record(MACHINE, 2, 0.0, wait_s)
    assert tuner.timers(2, 1.0).machine_s == pytest.approx(timer_s, rel=1e-15)


def test_the_log_has_each_change_of_a_timer_once():
    tuner = AutoTuner(TunerSettings(history_s=100.0, empty_s=(5.0, 6.0)))
    tuner.timers(8, 0.0)
    tuner.record(MACHINE, 8, 1.0, 50.0)
    tuner.timers(8, 2.0)
    tuner.record(MACHINE, 8, 3.0, 50.0)  # the same timer
    tuner.timers(8, 4.0)
    tuner.timers(8, 101.5)  # the first wait has left, the second has not
    tuner.timers(8, 104.0)
    assert tuner.log == [
        (0.0, MACHINE, 8, 5.0), (0.0, RACK, 8, 6.0), (2.0, MACHINE, 8, 50.0), (104.0, MACHINE, 8, 5.0),
    ]  # fmt: skip


def test_the_released_preset_counts_in_leases():
    found = TunerSettings.preset("released", lease_s=100.0, history_s=2000.0)
    assert (found.ddof, found.floor_s, found.cap_s) == (0, (600.0, 1200.0), (1600.0, 2000.0))
    changed = TunerSettings.preset("released", lease_s=100.0, floor_s=(1.0, 2.0), ddof=1)
    assert (changed.ddof, changed.floor_s, changed.history_s) == (1, (1.0, 2.0), WEEK_S)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"ddof": 2}, "ddof = 2: at most 1"),
        ({"ddof": 0.5}, "ddof = 0.5: must be"),
        ({"ddof": True}, "ddof = True"),
        ({"floor_s": 5.0}, r"floor_s = 5.0: must be a pair of timers \(machine_s, rack_s\)"),
        ({"floor_s": (1.0, 2.0, 3.0)}, "floor_s = .*must be a pair"),
        ({"floor_s": "12"}, "floor_s = '12': must be a pair"),
        ({"floor_s": (1.0, -2.0)}, "floor_s.rack_s = -2.0: at least 0"),
        ({"cap_s": (math.nan, 2.0)}, "cap_s.machine_s = nan: must be finite"),
        ({"cap_s": (1.0, None)}, "cap_s.rack_s = None: must be"),
        ({"floor_s": (3.0, 5.0), "cap_s": (4.0, 4.0)}, "floor_s = 5.0: must not exceed its cap, 4"),
        ({"least_wait_s": -1.0}, "least_wait_s = -1.0: at least 0"),
        ({"history_s": 0.0}, "history_s = 0.0: must be greater than 0"),
        ({"history_s": math.inf}, "history_s = inf: must be finite"),
        ({"empty_s": [1.0]}, r"empty_s = \[1.0\]: must be a pair"),
    ],
)
def test_settings_out_of_range_are_refused(settings, why):
    with pytest.raises(InvalidInput, match=why):
        TunerSettings(**settings)


def test_presets_are_refused_by_name():
    with pytest.raises(InvalidInput, match="preset = 'artifact': must be one of paper, released"):
        TunerSettings.preset("artifact")
    with pytest.raises(InvalidInput, match=r"history_s = 3600\.0: at least 43200"):
        TunerSettings.preset("released", history_s=3600.0)
    with pytest.raises(InvalidInput, match=r"lease_s = 0\.0: must be greater than 0"):
        TunerSettings.preset("released", lease_s=0.0)
