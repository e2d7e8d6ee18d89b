"""The frame of experiments: the experiments of another paper are a folder and a row, and the command runs them."""

import json

import pytest
from package_copy import PackageCopy

from equipoise.formulations.errors import InvalidInput
from equipoise.validation.experiments.experiment import Experiment, ExperimentOutcome, PaperClaim
from equipoise.validation.experiments.papers import EXPERIMENTS

CATALOGUE = '''"""The experiments of a toy paper."""

from types import MappingProxyType

from ..experiment import Experiment, ExperimentOutcome, PaperClaim, PaperExperiments


def figure_1(settings):
    """Return a row for each seed."""
    rows = [{"seed": seed, "twice": 2 * seed} for seed in settings.seeds]
    claim = PaperClaim(statement="twice is no less", holds=True, numbers=f"{len(rows)} seeds")
    return ExperimentOutcome(rows=rows, claims=(claim,))


TOY = PaperExperiments(
    paper="Toy",
    experiments=MappingProxyType(
        {"1": Experiment(name="1", label="Figure 1", title="doubling", module=__name__, function="figure_1")}
    ),
    cluster_gpus=lambda settings: settings.gpus or 8,
)
'''


def test_another_paper_is_a_folder_and_a_row(tmp_path):
    copy = PackageCopy(tmp_path)
    (copy.root / "validation/experiments/toy").mkdir()
    copy.write("validation/experiments/toy/__init__.py", '"""The experiments of a toy paper."""\n')
    copy.write("validation/experiments/toy/catalogue.py", CATALOGUE)
    copy.insert("validation/experiments/papers.py", "\n#: The experiments", "from .toy.catalogue import TOY\n")
    copy.insert("validation/experiments/papers.py", '"shockwave": SHOCKWAVE', '"toy": TOY, ')
    assert len(copy.touched) == 3
    listed = json.loads(copy.python("-m", "equipoise", "bench", "toy", "--json"))
    assert listed == [{"figure": "1", "of": "doubling"}]
    page = tmp_path / "toy.html"
    arguments = ("--figure", "all", "--seed", "3", "--repeats", "2", "--gpus", "9", "--json", "--html", str(page))
    shown = json.loads(copy.python("-m", "equipoise", "bench", "toy", *arguments))
    assert shown["1"]["in_shape"] is True
    assert shown["1"]["rows"] == [{"seed": 3, "twice": 6}, {"seed": 4, "twice": 8}]
    text = page.read_text(encoding="utf-8")
    assert "Toy&#39;s experiments" in text
    assert "9 GPUs" in text
    assert "Figure 1: doubling" in text


def test_every_experiment_is_listed_under_its_own_name_and_can_be_loaded():
    for catalogue in EXPERIMENTS.values():
        assert all(name == each.name for name, each in catalogue.experiments.items())
        assert all(catalogue.find(alias).name == name for alias, name in catalogue.aliases.items())
        with pytest.raises(InvalidInput, match=next(iter(catalogue.experiments))):
            catalogue.find("no such figure")


def test_an_outcome_is_in_shape_only_if_every_claim_holds():
    holds, fails = (PaperClaim(statement="s", holds=each, numbers="") for each in (True, False))
    assert ExperimentOutcome(rows=[], claims=(holds,)).in_shape is True
    assert ExperimentOutcome(rows=[], claims=(holds, fails)).in_shape is False
    assert Experiment(name="x", title="title", module="m", function="f").heading == "title"
