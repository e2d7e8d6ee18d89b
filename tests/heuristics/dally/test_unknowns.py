"""What a policy of Dally cannot know changes no decision before it shows; and equal timers decide alike."""

import math

import numpy as np
import pytest
from dally_cases import MODELS, TierSpeeds, policies, setups
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.search.delay_timers import DelayTimers
from equipoise.heuristics import make_policy
from equipoise.simulation import Trace
from equipoise.simulation.placement import Wake, simulate_placement

pytestmark = pytest.mark.thorough


class Recorded:
    """Passes a policy's actions on, and keeps them with their times."""

    knows = frozenset()

    def __init__(self, policy):
        self.policy, self.name, self.actions = policy, policy.name, []

    def decide(self, state):
        for action in self.policy.decide(state):
            self.actions.append((state.time_s, action))
            yield action


def decisions(policy, setup, until_s=math.inf, **columns):
    """Return the actions before a time, and the result, on a trace with other columns."""
    trace, recorded = setup["trace"], Recorded(policy)
    names = ("job_id", "model", "gang_gpus", "arrival_s", "duration_s")
    changed = Trace(**{name: columns.get(name, getattr(trace, name)) for name in names})
    result = simulate_placement(policy=recorded, **{**setup, "trace": changed})
    return [(time_s, action) for time_s, action in recorded.actions if time_s < until_s], result


@given(setup=setups(), drawn=policies(), factor=st.sampled_from([1e-3, 0.37, 2.0, 30.0]), data=st.data())
def test_the_total_work_of_a_job_changes_no_decision_until_it_ends(setup, drawn, factor, data):
    index = data.draw(st.integers(0, len(setup["trace"]) - 1))
    scaled = np.where(np.arange(len(setup["trace"])) == index, factor, 1.0) * setup["trace"].duration_s
    _, one = decisions(drawn[0], setup)
    _, other = decisions(drawn[0], setup, duration_s=scaled)
    until_s = min(one.end_s[index], other.end_s[index])
    assert decisions(drawn[0], setup, until_s)[0] == decisions(drawn[0], setup, until_s, duration_s=scaled)[0]


@given(setup=setups(), drawn=policies(), factor=st.sampled_from([0.37, 3.0]))
def test_run_times_change_no_decision_until_a_job_ends(setup, drawn, factor):
    """All jobs are longer or shorter."""
    durations = setup["trace"].duration_s * factor
    runs = decisions(drawn[0], setup)[1], decisions(drawn[0], setup, duration_s=durations)[1]
    until_s = min(run.end_s.min() for run in runs)
    assert decisions(drawn[0], setup, until_s)[0] == decisions(drawn[0], setup, until_s, duration_s=durations)[0]


@given(setup=setups(), drawn=policies(), data=st.data())
def test_arrivals_and_demands_to_come_change_no_decision(setup, drawn, data):
    """Jobs that arrive after a time come later, ask for other GPUs, and run other models, or do not come at all."""
    trace = setup["trace"]
    until_s = data.draw(st.sampled_from([5.0, 20.0, 60.0, 100.0]))
    late = trace.arrival_s > until_s
    expected, _ = decisions(drawn[0], setup, until_s)
    changed = {
        "arrival_s": trace.arrival_s + 13.0 * late,
        "gang_gpus": np.where(late, 1 + trace.gang_gpus % setup["cluster"].gpus, trace.gang_gpus),
        "model": ["heavy" if each else model for each, model in zip(late, trace.model, strict=True)],
        "duration_s": trace.duration_s * np.where(late, 2.5, 1.0),
    }
    assert decisions(drawn[0], setup, until_s, **changed)[0] == expected
    if not late.all():
        fewer = {
            name: [value for value, each in zip(getattr(trace, name), late, strict=True) if not each]
            for name in ("job_id", "model", "gang_gpus", "arrival_s", "duration_s")
        }
        kept = np.flatnonzero(~late).tolist()
        found, _ = decisions(drawn[0], setup, until_s, **fewer)
        for time_s, action in found:
            if not isinstance(action, Wake):
                action = action._replace(trace_index=kept[action.trace_index])
            assert (time_s, action) == expected.pop(0)
        assert not expected


@given(setup=setups(), drawn=policies())
def test_a_tier_that_no_job_has_run_on_changes_no_decision(setup, drawn):
    """The speed across racks changes what a policy does only after a job has run there."""
    _, one = decisions(drawn[0], setup)
    racks = setup["cluster"].gpus // setup["cluster"].racks
    across = [len({gpu // racks for gpu in ids.tolist()}) > 1 for ids in one.stretches.ids()]
    # At the start itself nothing is known yet, and the next call comes later.
    first_s = min(one.stretches.start_s[across], default=math.inf)
    until_s = np.nextafter(first_s, math.inf)
    slower = TierSpeeds(**{model: [*shares[:2], 0.9] for model, shares in MODELS.items()})
    expected = decisions(drawn[0], setup, until_s)[0]
    # Work counts in seconds of computation here, in every tier alike.
    assert decisions(drawn[0], {**setup, "speeds": slower}, until_s)[0] == expected


def same(one, other):
    assert one[0] == other[0]
    for name in ("start_s", "end_s", "tier", "machines", "preemptions"):
        assert getattr(one[1], name).tobytes() == getattr(other[1], name).tobytes()
    assert one[1].stretches.gpu_ids.tobytes() == other[1].stretches.gpu_ids.tobytes()


OPTIONS = st.fixed_dictionaries(
    {"lease_s": st.sampled_from([20.0, 45.5]), "offer_s": st.sampled_from([None, 7.3]), "keep": st.booleans()}
)


@pytest.mark.parametrize(("timer_s", "name"), [(0.0, "dally-nowait"), (math.inf, "dally-consolidated")])
@given(setup=setups(), options=OPTIONS)
def test_manual_timers_of_0_and_infinity_are_the_other_policies(timer_s, name, setup, options):
    manual = make_policy("dally-manual", machine_s=timer_s, rack_s=timer_s, **options)
    same(decisions(manual, setup), decisions(make_policy(name, **options), setup))


@given(setup=setups(), options=OPTIONS, scale=st.sampled_from([1.0, 1000.0]))
def test_manual_timers_of_12_and_24_h_are_the_default(setup, options, scale):
    """Longer durations make jobs wait for as long as the timers."""
    setup["trace"] = Trace(
        **{name: getattr(setup["trace"], name) for name in ("job_id", "model", "gang_gpus", "arrival_s")},
        duration_s=setup["trace"].duration_s * scale,
    )
    options = {**options, "lease_s": scale * options["lease_s"]}
    if options["offer_s"]:
        options["offer_s"] *= scale
    expected = decisions(make_policy("dally-manual", **options), setup)
    same(decisions(make_policy("dally-manual", machine_s=43200.0, rack_s=86400.0, **options), setup), expected)
    by_demand = DelayTimers(machine_s=0.0, rack_s=0.0, by_demand=dict.fromkeys(range(1, 13), (43200.0, 86400.0)))
    same(decisions(make_policy("dally-manual", timers=by_demand, **options), setup), expected)
