"""Virtual clusters of a trace of durations: their jobs, with models by seed; Philly's own where its data is."""

import numpy as np
import pytest
from shared_data import DATA

import equipoise as eq
from equipoise.simulation import read_trace
from equipoise.simulation.fluid import Speedups, read_virtual_cluster, virtual_cluster_jobs

PHILLY = DATA / "philly" / "philly_82k.csv.gz"
TABLES = DATA / "pcs" / "speedups.json"
needs_philly = pytest.mark.skipif(not (PHILLY.exists() and TABLES.exists()), reason="no shared data")

# Virtual cluster: jobs, first and last arrival (s), most GPUs of a job.
FACTS = {
    "0e4a51": (1435, 1943638, 9307446, 4),
    "b436b2": (7423, 1276559, 9272460, 24),
    "6214e9": (41226, 235696, 9407432, 8),
    "6c71a0": (9953, 1638901, 9381743, 16),
    "2869ce": (422, 1743412, 9396823, 32),
    "ee9e8c": (1511, 1460508, 9389644, 128),
}

ROWS = """job_id,submit_time_s,duration_s,num_gpus,model,batch_size,work_gpu_s
7,100,60,2,6214e9,,120

8,150,30,64,other,,1920
9,170,90,8,6214e9,,720
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def read(path, cluster, seed=0, speedups=None):
    tables = Speedups.builtin() if speedups is None else speedups
    return read_virtual_cluster(path, cluster, rng=np.random.default_rng(seed), speedups=tables)


def test_its_jobs_keep_their_ids_arrivals_and_lines(small):
    trace = read(small, "6214e9")
    assert trace.job_id == (7, 9)
    assert trace.arrival_s.tolist() == [100, 170]
    assert trace.duration_s.tolist() == [60, 90]
    assert trace.source.lines == [2, 5]
    assert set(trace.model) <= {"light", "medium", "heavy"}
    tables = Speedups.builtin().tables
    assert trace.size_s.tolist() == [60 * tables[trace.model[0]][1], 90 * tables[trace.model[1]][7]]


def test_an_unknown_virtual_cluster_is_refused_with_those_there_are(small):
    with pytest.raises(eq.InvalidInput) as caught:
        read(small, "6214e8")
    assert (caught.value.field, caught.value.value) == ("cluster", "6214e8")
    assert caught.value.why == "did you mean '6214e9'? small.csv has 6214e9, other"


def test_another_format_has_no_virtual_clusters(tmp_path):
    path = tmp_path / "pcs.csv"
    path.write_text("app_id,submit_time,service,num_jobs,model_name\n0,0,5,1,light\n", encoding="utf-8")
    with pytest.raises(eq.InvalidInput, match=r"pcs\.csv is no CSV of durations"):
        virtual_cluster_jobs(read_trace(path), path, "light")


@pytest.mark.thorough
@needs_philly
def test_the_virtual_clusters_of_philly():
    every = read_trace(PHILLY)
    assert len(every) == 82_247
    for cluster, (jobs, first, last, gpus) in FACTS.items():
        trace = virtual_cluster_jobs(every, PHILLY, cluster)
        found = len(trace), trace.arrival_s.min(), trace.arrival_s.max(), trace.gang_gpus.max()
        assert found == (jobs, first, last, gpus), cluster


@pytest.mark.thorough
@needs_philly
def test_models_of_philly_are_realistic_evenly_drawn_and_bound_its_demands():
    speedups = Speedups.read(TABLES)
    trace = read(PHILLY, "ee9e8c", speedups=speedups)
    models = speedups.groups["realistic"]
    assert set(trace.model) == set(models)
    assert len(models) == 9
    for model in models:
        share = 1 / 9
        assert trace.model.count(model) / len(trace) == pytest.approx(share, abs=5 * np.sqrt(share / len(trace)))
        assert max(trace.gang_gpus[np.array(trace.model) == model]) <= len(speedups.tables[model])
    assert trace.gang_gpus.max() <= 52 < 128
    assert (trace.size_s == speedups.sizes_s(trace)).all()
    assert (trace.size_s >= trace.duration_s).all()
    assert read(PHILLY, "ee9e8c", speedups=speedups).model == trace.model
    assert read(PHILLY, "ee9e8c", seed=1, speedups=speedups).model != trace.model
