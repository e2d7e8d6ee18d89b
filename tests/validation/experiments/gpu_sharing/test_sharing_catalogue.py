"""The experiments of SJF-BSBF: exact figures of equal jobs, what printed figures imply, and small runs without data."""

import re
from dataclasses import replace

import numpy as np
import pytest
from shared_data import DATA

from equipoise.cli.main import run
from equipoise.validation.experiments.experiment import Experiment, ExperimentOutcome, ExperimentSettings
from equipoise.validation.experiments.gpu_sharing.paper import TABLE_2, TABLE_3, TABLE_4, cluster_gpus
from equipoise.validation.experiments.gpu_sharing.run import (
    SharingCase,
    cluster_workload,
    drawn_ratios,
    hours,
    reduction,
    source_of_ratios,
    table_rows,
)
from equipoise.validation.experiments.papers import EXPERIMENTS

SHARING = EXPERIMENTS["gpu-sharing"]
SMALL = ExperimentSettings(jobs=16, repeats=2)
NEED_DATA = ("table3-pollux", "table4-philly")
needs_data = pytest.mark.skipif(not (DATA / "pollux").is_dir(), reason="shared/data is not here")


def test_equal_jobs_on_one_gpu_are_exact():
    outcome = SHARING.find("equal-jobs").run(SMALL)
    assert outcome.in_shape, [claim for claim in outcome.claims if not claim.holds]
    forty = next(row for row in outcome.rows if (row["jobs"], row["ratio"]) == (40, 1.6))
    # Twenty pairs of 32 s and, on average, ten such pairs and a half before the end; and 40 jobs one after the other.
    assert forty["sjf-ffs s"] == pytest.approx(16.0 * 10.5)
    assert forty["sjf-bsbf s"] == pytest.approx(10.0 * 20.5)


def test_the_share_of_large_jobs_that_the_tables_imply():
    # All = share * large + (1 - share) * small; the generated workload has this share.
    shares = [(row.jct_h - row.small_h) / (row.large_h - row.small_h) for row in TABLE_3.values()]
    assert np.allclose(shares, 0.122, atol=0.005)
    run_h = [TABLE_3[name].jct_h - TABLE_3[name].queue_h for name in ("fifo", "sjf", "tiresias")]
    run_h += [TABLE_4[name].jct_h - TABLE_4[name].queue_h for name in ("sjf", "tiresias")]
    assert np.allclose(run_h, 0.69, atol=0.011)
    assert set(TABLE_2) < set(TABLE_3) == set(TABLE_4)


def test_the_cluster_grows_with_the_jobs():
    assert [cluster_gpus(replace(SMALL, jobs=jobs)) for jobs in (4, 60, 240, 480)] == [8, 16, 64, 128]
    assert cluster_gpus(replace(SMALL, gpus=24)) == 24


def test_ratios_without_data_are_quantiles_and_gangs_fit():
    assert source_of_ratios(SMALL) == "quantiles"
    assert {ratio for pair in drawn_ratios(SMALL, 0).pairs for ratio in pair} == {1.0, 1.19, 1.47, 2.07, 4.84}
    assert cluster_workload(SMALL, 200, 0).gang_gpus.max() == 8


@needs_data
def test_ratios_with_data_are_measured():
    assert source_of_ratios(replace(SMALL, data=DATA)) == "measured pairs"


def test_rows_and_reductions_by_hand():
    trace = cluster_workload(SMALL, 16, 0)
    ratios = drawn_ratios(SMALL, 0)
    results = {
        (name, 0): SharingCase(trace=trace, gpus=8, policy=name, ratios=ratios).run() for name in ("fifo", "sjf-bsbf")
    }
    rows = table_rows(results, TABLE_3)
    result = results["sjf-bsbf", 0]
    large = trace.gang_gpus > 4
    assert rows[1]["jct h"] == rows[1]["from"] == pytest.approx(result.jct_s.mean() / 3600)
    assert rows[1]["large h"] == pytest.approx(result.jct_s[large].mean() / 3600)
    assert rows[1]["small queue h"] == pytest.approx(result.waited_s[~large].mean() / 3600)
    assert (rows[0]["printed jct"], rows[0]["printed queue"]) == (2.34, 1.65)
    ours = 1.0 - result.jct_s.mean() / results["fifo", 0].jct_s.mean()
    assert reduction(rows, "fifo") == pytest.approx(ours)
    assert reduction(rows, "fifo", "printed jct") == pytest.approx(1 - 1.01 / 2.34)
    assert np.isnan(hours([result], "jct", "large")) == (not large.any())


@pytest.mark.parametrize("name", NEED_DATA)
def test_experiments_that_need_data_say_so(name, tmp_path):
    assert "--data" in SHARING.find(name).run(SMALL).skipped
    assert "--data" in SHARING.find(name).run(replace(SMALL, data=tmp_path)).skipped


def test_the_command_lists_the_experiments_and_prints_their_seconds(capsys):
    assert run(["bench", "gpu-sharing"]) == 0
    assert "table4-philly" in capsys.readouterr().out
    assert run(["bench", "gpu-sharing", "--figure", "table3-pollux"]) == 0
    assert re.match(r"table3-pollux: .* \(0 s\)\nskipped: needs pollux/", capsys.readouterr().out)


@pytest.mark.parametrize(("paper", "jobs", "repeats"), [("shockwave", 120, 3), ("gpu-sharing", 240, 5)])
def test_each_paper_has_its_own_size(paper, jobs, repeats, monkeypatch):
    seen = []
    monkeypatch.setattr(Experiment, "run", lambda self, settings: seen.append(settings) or ExperimentOutcome(rows=[]))
    name = next(iter(EXPERIMENTS[paper].experiments))
    for more in ([], ["--jobs", "9", "--repeats", "2"]):
        assert run(["bench", paper, "--figure", name, "--json", *more]) == 0
    assert [(each.jobs, each.repeats) for each in seen] == [(jobs, repeats), (9, 2)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in SHARING.experiments if name not in (*NEED_DATA, "equal-jobs")])
def test_every_experiment_runs_small_without_data(name):
    steps = []
    settings = replace(SMALL, repeats=1, on_step=lambda done, total: steps.append((done, total)))
    outcome = SHARING.find(name).run(settings if name != "rules" else replace(settings, jobs=8))
    assert steps[-1][0] == steps[-1][1]
    assert outcome.rows
    assert all(claim.numbers for claim in outcome.claims)
    assert all(plot.svg().startswith("<svg") for plot in outcome.plots)


@pytest.mark.thorough
@needs_data
@pytest.mark.parametrize("name", NEED_DATA)
def test_experiments_with_data_run_small(name):
    outcome = SHARING.find(name).run(replace(SMALL, repeats=1, data=DATA))
    assert not outcome.skipped
    assert {row["policy"] for row in outcome.rows} == set(TABLE_3)
