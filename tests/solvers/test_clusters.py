"""Searches on local clusters of ray and dask, by joblib's contexts of those names."""

import json
import os
import subprocess
import sys

import pytest
from optional import needs_package

import equipoise as eq
from equipoise.validation.contract.fronts import schaffer_problem

# Each cluster belongs to a process of its own, which ends it.
SCRIPT = """
import json, os, sys
from functools import partial

import joblib
import equipoise as eq
from equipoise.validation.contract.fronts import problem_of
from search_cases import BOX, names_its_process


def search():
    problem = problem_of(partial(names_its_process, sys.argv[1]), **BOX)
    own = {"random": {"evaluations": 150}}
    result = eq.solve(problem, "random", seed=3, threads=2, backend_options=own)
    plan = result.require_plan()
    return {"vectors": plan.vectors.tolist(), "notes": result.notes, "caller": os.getpid()}

def dask():
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        with joblib.parallel_config(backend="dask"):
            return search()

def ray():
    import ray
    from ray.util.joblib import register_ray
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with joblib.parallel_config(backend="ray"):
            return search()
    finally:
        ray.shutdown()

if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[2]]()))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [False, True], ids=["whole", "lost-worker"])
@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param("dask", marks=needs_package("distributed", "dask")),
        pytest.param("ray", marks=needs_package("ray", "ray")),
    ],
)
def test_a_local_cluster_gives_the_front_of_one_process(cluster, ends, tmp_path):
    (tmp_path / "search.py").write_text(SCRIPT)
    folder = tmp_path / "processes"
    folder.mkdir()
    if ends:
        (folder / "ends").touch()
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, str(tmp_path / "search.py"), str(folder), cluster]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120)
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    one = eq.solve(schaffer_problem(), "random", seed=3, backend_options={"random": {"evaluations": 150}})
    assert found["vectors"] == one.plan.vectors.tolist()
    assert found["notes"] == []
    if ends:
        assert (folder / "ended").exists()
    else:
        processes = {int(each.name) for each in folder.iterdir()}
        assert processes
        assert found["caller"] not in processes
