"""Properties of the package as a whole: layout, imports, pages, wheel."""

import ast
import doctest
import errno
import functools
import importlib
import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.formulations.compiled import compiled
from equipoise.solvers.registry import BACKENDS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ["cli", "formulations", "heuristics", "simulation", "solvers", "validation"]
ROOT_FILES = [ROOT / "__init__.py", ROOT / "__main__.py"]
SOURCES = sorted([*ROOT_FILES, *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))])
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
WALKED = [found.name for found in pkgutil.walk_packages(eq.__path__, "equipoise.")]
MODULES = ["equipoise", *sorted(name for name in WALKED if name.split(".")[1] in FOLDERS)]
SOLVER_PACKAGES = ["highspy", "gurobipy", "pyomo", "pyscipopt", "clarabel", "ortools", "cvxpy", "scipy.optimize"]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def purpose_and_imports(path: Path) -> tuple[str | None, set[str]]:
    """Return a file's docstring and every name it imports, lazily or not, dotted; relative ones with their dots."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found.update({module, *(f"{module}.{alias.name}" for alias in node.names)})
    return ast.get_docstring(tree), found


def imports(path: Path) -> set[str]:
    """Return every name a file imports."""
    return purpose_and_imports(path)[1]


# -- Layout ------------------------------------------------------------------------------------------------------------


def packages() -> list[Path]:
    return sorted(path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py"))


def test_every_folder_of_modules_is_a_package_and_the_tests_are_none():
    holds_modules = {path.parent for path in SOURCES}
    assert holds_modules == {ROOT, *packages()}
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize("folder", packages(), ids=relative)
def test_a_folder_is_small_and_no_module_repeats_its_name(folder):
    modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    assert len(modules) <= 15
    assert not [name for name in modules if name == folder.name or name.startswith(f"{folder.name}_")]


def test_tests_mirror_the_package():
    """Every folder of tests is a folder of the package; a test file bears the name of a module or of a topic."""
    allowed = {ROOT / "tests", ROOT / "tests" / "support"}
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent not in allowed:
            assert (ROOT / path.parent.relative_to(ROOT / "tests")).is_dir(), relative(path)


def test_every_floor_has_its_place_in_the_contract_of_the_floors():
    floors = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    assert sorted(folder for floor in floors for folder in re.split(r"\s*\|\s*", floor)) == sorted(FOLDERS)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_has_a_purpose_and_a_readable_size(path):
    assert purpose_and_imports(path)[0], "the module's first line says what it is for"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert path.stem not in {"utils", "util", "helpers", "helper", "misc", "common", "base"}


def test_one_version_everywhere():
    version = PROJECT["project"]["version"]
    assert eq.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert (ROOT / "py.typed").is_file()


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path):
    setuptools = pytest.importorskip("setuptools", minversion="77", reason="building needs setuptools 77")
    assert setuptools.__version__
    import zipfile

    clone = tmp_path / "clone"
    skip = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "_build")
    shutil.copytree(ROOT, clone, ignore=skip)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=clone, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    packaged = {name for name in names if ".dist-info/" not in name}
    assert {name for name in packaged if name.endswith(".py")} == {f"equipoise/{relative(path)}" for path in SOURCES}
    assert "equipoise/py.typed" in packaged
    allowed = {"equipoise", *(f"equipoise/{relative(folder)}" for folder in packages())}
    assert {name.rsplit("/", 1)[0] for name in packaged if "/data/" not in name} <= allowed
    data_files = {
        f"equipoise/{relative(path)}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and path.suffix != ".py"
    }
    assert data_files <= packaged, "a data file that the package reads is left out of package-data"
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    installed = {**environment(), "PYTHONPATH": str(tmp_path / "site"), "NUMBA_DISABLE_JIT": "1"}
    solve = (
        "import equipoise as eq; assert 'site' in eq.__file__;"
        "job = eq.WindowJob(id='a', gpus=1, finished_epochs=1, total_epochs=4, regimes=[eq.Regime(3, 100.0)]);"
        "eq.solve(eq.ScheduleWindow([job], gpus=1, rounds=3)).require_optimal().to_html('plan.html')"
    )
    for arguments in (["-c", solve], ["-m", "equipoise", "schema"]):
        subprocess.run([sys.executable, "-P", *arguments], cwd=tmp_path, env=installed, check=True, capture_output=True)
    assert (tmp_path / "plan.html").stat().st_size > 1000


# -- Imports -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "allowed"), [("", set()), ("from equipoise import *;", {"numpy"})], ids=["import", "all public names"]
)
def test_importing_the_package_loads_nothing_beyond_numpy(use, allowed):
    script = (
        "import sys, lazy_loader; before = set(sys.modules); import equipoise;"
        + use
        + "print(*{name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment())
    assert set(run.stdout.split()) == {"equipoise"} | allowed


def environment() -> dict[str, str]:
    """The environment of a child that imports the same package as this process, from wherever it was found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_imports_on_its_own(name):
    assert importlib.import_module(name).__doc__


# Program.to_pyomo and Program.to_gurobi hand a program to a modelling layer, as to_scipy does; the types of what they
# return stand in model.py's annotations.
EXPORTS = {
    "formulations/program/model.py": {"pyomo", "gurobipy"},
    "formulations/program/to_pyomo.py": {"pyomo"},
    "formulations/program/to_gurobi.py": {"gurobipy"},
}


@pytest.mark.parametrize("path", sorted((ROOT / "formulations").rglob("*.py")), ids=relative)
def test_a_formulation_knows_no_solver_not_even_lazily(path):
    # import-linter sees scipy as one package, and a formulation may use its sparse arrays: so this is said here.
    foreign = set(SOLVER_PACKAGES) - EXPORTS.get(relative(path), set())
    for name in imports(path):
        assert not any(name == package or name.startswith(package + ".") for package in foreign), name


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_inside_the_package_imports_are_relative(path):
    assert not {name for name in imports(path) if name.split(".")[0] == "equipoise"}


# -- Compiled loops ----------------------------------------------------------------------------------------------------


def test_one_module_alone_calls_numba():
    """Elsewhere `njit(cache=True)` would raise where no folder is writable."""
    callers = {relative(path) for path in SOURCES if any(name.split(".")[0] == "numba" for name in imports(path))}
    assert callers == {"formulations/compiled.py"}


def halved(values):
    return values / 2.0


def saved(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_what_is_compiled_once_is_loaded_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    first, second = compiled(fastmath=True)(halved), compiled(fastmath=True)(halved)
    assert first(3.0) == second(3.0) == first.py_func(3.0) == 1.5
    assert (first.stats.cache_hits.total(), second.stats.cache_hits.total()) == (0, 1)
    assert len(saved(tmp_path)) == 1
    assert first.targetoptions["fastmath"] is True


INNER = """from equipoise.formulations.compiled import compiled

@compiled()
def inner(value):
    return value + {more}
"""
OUTER = """from equipoise.formulations.compiled import compiled
from inner_loop import inner

@compiled()
def outer(value):
    return 2 * inner(value)

print(outer(1), outer.stats.cache_hits.total())
"""


@pytest.mark.thorough
def test_a_change_of_an_inner_loop_compiles_the_outer_one_anew(tmp_path):
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "outer_loop.py").write_text(OUTER, encoding="utf-8")
    printed = []
    for more in (1, 1, 22):
        (tmp_path / "inner_loop.py").write_text(INNER.format(more=more), encoding="utf-8")
        os.utime(tmp_path / "inner_loop.py", (more, more))
        command = [sys.executable, "-B", "outer_loop.py"]
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        printed.append(run.stdout.split())
    assert printed == [["4", "0"], ["4", "1"], ["46", "0"]]


def test_without_a_writable_folder_a_loop_is_compiled_uncached(monkeypatch):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    kernel = compiled()(halved)
    assert kernel(3.0) == 1.5
    assert kernel.nopython_signatures
    assert kernel.stats.cache_path is None


def test_on_a_full_disk_a_loop_is_compiled_and_not_saved(tmp_path, monkeypatch):
    def full(cache, path):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", full)
    kernel = compiled()(halved)
    assert kernel(3.0) == 1.5
    assert kernel.nopython_signatures
    assert not saved(tmp_path)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_cache_file_cut_short_is_no_error(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    assert compiled()(halved)(3.0) == 1.5
    (file,) = tmp_path.rglob(f"*.{suffix}")
    file.write_bytes(file.read_bytes()[:-1] if suffix == "nbc" else b"")
    kernel = compiled()(halved)
    assert kernel(3.0) == 1.5
    assert kernel.stats.cache_hits.total() == 0


def test_a_user_who_may_write_nowhere_can_solve(tmp_path):
    """A service's user in a container: no home, and a package that belongs to somebody else."""
    if os.name != "posix":
        pytest.skip("file permissions are those of POSIX")
    without_rights: list[str] = []
    if os.geteuid() == 0:  # root may write anywhere unless it gives up its rights
        without_rights = ["setpriv", "--bounding-set=-all", "--"]
        if not shutil.which("setpriv") or subprocess.run([*without_rights, "true"], capture_output=True).returncode:
            pytest.skip("run by root, which cannot give up its rights here: setpriv is missing or refused")
    skip = shutil.ignore_patterns(".*", "build", "dist", "docs", "tests", "*.egg-info", "__pycache__")
    package = shutil.copytree(ROOT, tmp_path / "site" / "equipoise", ignore=skip)
    home = tmp_path / "home"
    home.mkdir()
    code = """if True:
        import equipoise as eq
        regimes = [eq.Regime(epochs=4, epoch_s=60.0)]
        job = eq.WindowJob(id="a", gpus=1, finished_epochs=0, total_epochs=4, regimes=regimes)
        result = eq.solve(eq.ScheduleWindow([job], gpus=2, rounds=4, round_s=60.0), backend="highs")
        print(eq.__path__[0], result.termination.reason.name)
        """
    child = {name: value for name, value in environment().items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    child |= {"HOME": str(home), "PYTHONPATH": f"{package.parent}{os.pathsep}{child['PYTHONPATH']}"}
    command = [*without_rights, sys.executable, "-c", code]
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    try:
        for folder in folders:
            folder.chmod(0o555)
        run = subprocess.run(command, env=child, cwd=home, capture_output=True, text=True)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(package), "OPTIMAL"]
    assert not [*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.pyc")]


# -- What is written about it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """Return the fenced blocks of a page: line number of the first line inside, language, text."""
    text = page.read_text(encoding="utf-8")
    fences = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, found.start(2)) + 1, found[1], found[2]) for found in fences.finditer(text)]


def require(text: str) -> None:
    """Skip the page unless the modules or programs that its block names in a first line `# requires: ...` are here."""
    named = re.match(r"# requires: (.*)", text)
    for name in named[1].split(",") if named else ():
        if importlib.util.find_spec(name.strip()) is None and shutil.which(name.strip()) is None:
            pytest.skip(f"the page needs {name.strip()}, which is not installed")


def scripts():
    """One test for each page with Python; the page that holds a new backend to the whole contract is a long one."""
    for page in PAGES:
        if any(kind == "python" for _, kind, _ in blocks(page)):
            marks = [pytest.mark.thorough] if page.stem == "add-a-backend" else []
            yield pytest.param(page, marks=marks, id=relative(page))


@pytest.mark.parametrize("page", list(scripts()))
def test_the_python_on_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    """The blocks of one page run in order, as one script; a `text` block right after a python one is its output."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.stem}
    found = blocks(page)
    source_lines = page.read_text(encoding="utf-8").splitlines()
    for position, (line, kind, text) in enumerate(found):
        if kind != "python":
            continue
        require(text)
        exec(compile("\n" * (line - 1) + text, str(page), "exec"), namespace)
        printed = capsys.readouterr().out
        end = line + text.count("\n")  # the line of the closing fence
        after = found[position + 1] if position + 1 < len(found) else None
        if after is not None and after[1] == "text" and not any(source_lines[end : after[0] - 2]):
            checker, options = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert checker.check_output(after[2], printed, options), f"line {after[0]} says otherwise:\n{printed}"


def test_the_readme_lists_every_backend():
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Backends")[2].partition("\n\nLinear")[0]
    listed = set(
        re.findall(r"`([\w:]+)`", "".join(line.split("|")[1] for line in table.splitlines() if line[:1] == "|"))
    )
    assert {name.partition(":")[0] for name in listed} == {name.partition(":")[0] for name in BACKENDS}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_project_speaks_of_itself_alone():
    """No path of one machine, and no note to self, in anything that is read by others."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git clone: there is no list of the project's own files")
    # Spelt in parts, so that this file does not find itself.
    foreign = re.compile(
        r"(?<![\w.~}])/(" + "|".join(["home", "root", "work", "Users"]) + r")/|\b(" + "TO" + "DO|FIX" + "ME)\\b"
    )
    found = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".json", ".yaml", ".cff", ".csv", ".html", ""}:
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if foreign.search(line):
                    found.append(f"{name}:{number}: {line.strip()[:80]}")
    assert not found
