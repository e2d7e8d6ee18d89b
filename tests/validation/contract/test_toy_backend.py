"""A toy backend: the module that docs/add-a-backend.md writes and its row in the registry, held to the contract."""

import json
import re

import pytest
from package_copy import ROOT, PackageCopy

USE = """
import json
import equipoise as eq
build = eq.ProgramBuilder(sense="max")
admit = build.add_binaries("admit", shape=(3,))
build.add_rows("capacity", shape=(1,), terms=[(0, admit, [4, 2, 2])], upper=5)
build.set_objective([(admit, [5.0, 3.0, 3.0])])
program = build.program()
result = eq.solve(program, backend="toy", rel_gap=0.0)
print(json.dumps({
    "objective": result.objective, "bound": result.bound, "termination": result.termination.reason.name,
    "listed": {row.name: row.classes for row in eq.backends()}.get("toy"),
}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    page = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
    backend, search = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    assert "class Toy(Backend)" in backend
    assert "class Search" in search
    copy = PackageCopy(tmp_path_factory.mktemp("site"))
    purpose = '"""The backend `toy`: branch and bound on linear relaxations."""'
    copy.write("solvers/external/toy.py", "\n\n".join([purpose, backend, search, "BACKEND = Toy()\n"]))
    copy.insert("solvers/registry.py", '    "highs": "external.highs",\n', '    "toy": "external.toy",\n')
    return copy


def test_a_backend_is_a_module_and_a_row(copy):
    assert len(copy.touched) == 2
    shown = json.loads(copy.python("-c", USE))
    assert shown["objective"] == shown["bound"] == 6.0
    assert shown["termination"] == "OPTIMAL"
    assert "MILP" in shown["listed"]


def test_it_is_held_to_the_contract_by_its_name(copy):
    """The page itself runs the whole contract."""
    check = 'print(check_backend("toy", cases=["optimal-MILP", "infeasible-MILP", "isolated-MILP"]))'
    report = copy.python("-c", f"from equipoise.validation import check_backend; {check}")
    assert re.search(r"toy: 3 passed, .*0 failed", report), report[-2000:]
