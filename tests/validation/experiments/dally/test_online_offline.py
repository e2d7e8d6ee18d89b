"""The distance of the auto-tuner from the offline optimum: what is compared on which samples, and the claims."""

import math

import numpy as np
import pytest
from optional import needs_package

from equipoise.heuristics import make_policy
from equipoise.simulation.network import TableSpeeds
from equipoise.simulation.placement import PlacementRules, simulate_placement
from equipoise.validation.experiments.dally import online_offline as experiment
from equipoise.validation.experiments.dally.run import LEASE_S, Case
from equipoise.validation.experiments.experiment import ExperimentSettings

SETTINGS = ExperimentSettings(jobs=60, racks=2, repeats=2, evaluations=24)


@needs_package("pymoo", "search")
def test_everything_is_scored_on_the_held_out_samples(monkeypatch):
    for name in ("SAMPLES", "HELD_OUT"):
        monkeypatch.setattr(experiment, name, 1)
    steps = []
    settings = ExperimentSettings(**{**vars(SETTINGS), "on_step": lambda *step: steps.append(step)})
    outcome = experiment.online_offline(settings)
    assert steps == [(done, 8) for done in range(1, 9)]
    labels = [*experiment.ONLINE, *experiment.FIXED, experiment.OFFLINE, experiment.OPTIMUM]
    assert [row["timers"] for row in outcome.rows] == 2 * labels
    rows = {(row["arrivals"], row["timers"]): row for row in outcome.rows}
    for arrivals in ("batch", "poisson"):
        # Seeds 0 and 2 are of the searches, 1 and 3 held out.
        found = []
        for seed in (1, 3):
            case = Case(arrivals=arrivals, racks=2, seed=seed, policy="dally", jobs=60)
            result = simulate_placement(
                case.trace, make_policy("dally", lease_s=LEASE_S), cluster=case.cluster,
                speeds=TableSpeeds(cluster=case.cluster), rules=PlacementRules(checkpoint_s_per_gpu=1.0),
            )  # fmt: skip
            found.append(result.jct_s.mean() / 86400.0)
        assert rows[arrivals, "dally"]["jct d"] == pytest.approx(np.mean(found), rel=1e-12)
        for name in (*experiment.FIXED, experiment.OFFLINE):
            assert rows[arrivals, name]["above optimum %"] >= 0.0
        assert rows[arrivals, experiment.OPTIMUM]["above optimum %"] == 0.0
    assert len(outcome.claims) == 3


def scores(**above):
    """Return scores of two seeds, in percent above an optimum of 100."""
    names = [*experiment.ONLINE, *experiment.FIXED, experiment.OFFLINE, experiment.OPTIMUM]
    return [{name: 100.0 + above.get(name.replace(", ", "_").replace(" ", "_"), 0.0) + seed * (name == "dally")
             for name in names} for seed in (0, 1)]  # fmt: skip


def holds(found):
    return [claim.holds for claim in experiment.distance_claims(found)]


def test_the_claims_compare_means_over_the_seeds():
    expected = {"dally": 3.0, "tuned_offline": 0.9, "dally_patient": 2.0, "nowait": 5.0}
    np.testing.assert_allclose(experiment.above_pct(scores(**expected), "dally"), [3.0, 4.0])
    cluster = ("poisson", 8)
    assert holds({cluster: scores(**expected)}) == [True, True, True]
    for place, (name, above) in enumerate((("tuned_offline", 3.6), ("nowait", 3.4), ("dally_patient", 3.6))):
        wrong = [True, True, True]
        wrong[place] = False
        assert holds({cluster: scores(**{**expected, name: above})}) == wrong
        assert holds({cluster: scores(**expected), ("batch", 8): scores(**{**expected, name: above})}) == wrong
    assert holds({}) == [False, False, False]
    assert not any(holds({cluster: scores(**dict.fromkeys(expected, math.nan))}))
