"""The test for drift: it rarely reports a workload that stays, and reports one that changes."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from equipoise.heuristics.search.workload_drift import ObservedJob, drift_report, kolmogorov_smirnov


def jobs(rng, count, *, scale=1.0, gap_s=10.0, demands=(1, 2, 4, 8)):
    arrivals = np.cumsum(rng.exponential(gap_s, count))
    sizes, widths = scale * rng.lognormal(8.0, 2.0, count), rng.choice(demands, count)
    rows = zip(arrivals, sizes, widths, strict=True)
    return [ObservedJob(arrival_s, size_s, np.arange(width + 1.0)) for arrival_s, size_s, width in rows]


def test_false_alarms_are_no_more_than_stated():
    """100 workloads that do not change, 8 looks each, at most 1 in 10 to be reported on average."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(100):
        earlier = jobs(rng, 200)
        reports = [drift_report(earlier, jobs(rng, 100), look=look, alarm_rate=0.1) for look in range(1, 9)]
        alarms += any(report.drifted for report in reports)
    # Three standard deviations beyond the bound of 10.
    assert alarms <= 19


@pytest.mark.parametrize(
    ("change", "quantity"), [({"scale": 3.0}, "sizes"), ({"gap_s": 20.0}, "gaps"), ({"demands": (1, 2)}, "demands")]
)
def test_a_change_is_reported_with_its_quantity(change, quantity):
    rng = np.random.default_rng(1)
    found = [
        drift_report(jobs(rng, 500), jobs(rng, 250, **change), look=look, alarm_rate=0.01) for look in (1, 5, 10) * 5
    ]
    assert all(report.drifted for report in found)
    assert {report.quantity for report in found} == {quantity}


def test_the_p_value_is_corrected_for_quantities_and_looks():
    rng = np.random.default_rng(2)
    earlier, recent = jobs(rng, 100), jobs(rng, 100, scale=2.0)
    for look in (1, 3):
        report = drift_report(earlier, recent, look=look, alarm_rate=0.01)
        assert report.corrected_p_value == pytest.approx(min(1.0, report.p_value * 3 * (np.pi * look) ** 2 / 6))
        assert report.drifted == (report.corrected_p_value < 0.01)


def test_the_statistic_is_the_usual_one():
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.2, 0.5):
        first, second = rng.normal(size=200), rng.normal(shift, size=100).round(1)
        statistic, p_value = kolmogorov_smirnov(first, second)
        known = ks_2samp(first, second, method="exact")
        assert statistic == pytest.approx(known.statistic, abs=1e-12)
        # The limit errs on the safe side.
        assert known.pvalue <= p_value * (1.0 + 1e-9) <= 2.0 * known.pvalue


def test_looks_spend_the_alarm_rate_once():
    assert sum(6.0 / (np.pi * look) ** 2 for look in range(1, 100_000)) == pytest.approx(1.0, abs=1e-4)
