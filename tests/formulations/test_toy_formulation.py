"""A toy formulation: a module and its row in `__init__`; general backends solve it, with a certificate and a page."""

import json

from package_copy import PackageCopy

FORMULATION = '''"""JobChoice: the jobs to admit now, for the most value within the free GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats
from ..checks import as_integer, as_integers, as_reals, same_length
from ..program.builder import ProgramBuilder
from ..program.formulation import Formulation
from ..program.model import Program


@dataclass(frozen=True, kw_only=True, eq=False)
class JobChoice(Formulation[Floats]):
    """The choice of jobs with the most value whose gangs fit the free GPUs.

    Parameters
    ----------
    value : array_like of float, shape (N,)
    gang_gpus : array_like of int, shape (N,)
    gpus : int
    """

    value: ArrayLike
    gang_gpus: ArrayLike
    gpus: int

    sense = "max"
    forms = ("binary",)
    reference: ClassVar[str] = "Dantzig 1957"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", as_reals("value", self.value))
        object.__setattr__(self, "gang_gpus", as_integers("gang_gpus", self.gang_gpus, minimum=1))
        same_length(value=self.value, gang_gpus=self.gang_gpus)
        as_integer("gpus", self.gpus, minimum=1)

    def program(self, form: str = "binary") -> Program:
        self.check_form(form)
        build = ProgramBuilder(sense="max")
        admit = build.add_binaries("admit", shape=np.shape(self.value))
        build.add_rows("capacity", shape=(1,), terms=[(0, admit, self.gang_gpus)], upper=self.gpus)
        build.set_objective([(admit, self.value)])
        return build.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "binary") -> Floats:
        return np.rint(values)

    def encode(self, plan: Floats, form: str = "binary") -> Floats:
        return np.asarray(plan, dtype=np.float64)
'''

USE = """
import itertools, json
import equipoise as eq
value, gang_gpus = [5.0, 4.0, 3.0, 7.0], [3, 2, 2, 4]
problem = eq.JobChoice(value=value, gang_gpus=gang_gpus, gpus=6)
best = max(
    sum(v * x for v, x in zip(value, admit))
    for admit in itertools.product((0, 1), repeat=4)
    if sum(g * x for g, x in zip(gang_gpus, admit)) <= 6
)
result = eq.solve(problem, backend="highs", rel_gap=0.0)
warm = eq.solve(problem, backend="highs", rel_gap=0.0, warm_start=result.plan)
certificate = result.certificate()
page = result.to_html()
try:
    eq.JobChoice(value=value, gang_gpus=[3, 2, 0, 4], gpus=6)
except eq.InvalidInput as error:
    refused = str(error)
try:
    eq.solve(problem, form="ternary")
except eq.InvalidInput as error:
    no_form = str(error)
print(json.dumps({
    "best": best, "objective": certificate.objective, "bound": certificate.bound, "gap": certificate.gap,
    "termination": certificate.termination, "residual": certificate.residuals.worst, "plan": result.plan.tolist(),
    "warm": warm.objective, "auto": eq.solve(problem).objective, "exported": "JobChoice" in eq.__all__,
    "usable": [row.name for row in eq.backends(problem, usable=True)],
    "candidates": [each.name for each in eq.candidates(problem)], "refused": refused, "no_form": no_form, "page": page,
}))
"""


def test_a_formulation_is_a_module_and_a_row(tmp_path):
    copy = PackageCopy(tmp_path)
    copy.write("formulations/assignment/job_choice.py", FORMULATION)
    copy.insert(
        "__init__.pyi",
        "from .formulations.errors import",
        "from .formulations.assignment.job_choice import JobChoice\n",
    )
    copy.insert("__init__.pyi", '    "JobChain",\n', '    "JobChoice",\n')
    assert len(copy.touched) == 2  # its test or its page would be the third
    shown = json.loads(copy.python("-c", USE))
    assert shown["best"] == shown["objective"] == shown["bound"] == shown["warm"] == shown["auto"] == 11.0
    assert (shown["termination"], shown["gap"]) == ("OPTIMAL", 0.0)
    assert shown["residual"] <= 1e-9
    assert shown["plan"] == [0.0, 1.0, 0.0, 1.0]
    assert "[0., 1., 0., 1.]" in shown["page"]
    assert "OPTIMAL" in shown["page"]
    assert shown["exported"]
    assert "highs" in shown["usable"]
    assert "highs" in shown["candidates"]
    assert "gang_gpus[2]" in shown["refused"]
    assert "binary" in shown["no_form"]
