"""The guides agree with the package: paths in CONTRIBUTING exist, and words that the glossary rules out do not."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from equipoise.formulations.former_names import FormerName
from equipoise.formulations.program.formulation import Formulation

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "naming.md").read_text(encoding="utf-8")
# Folders whose names and docstrings are free of the words that the glossary rules out. Add a folder when it is.
CLEAN = ("cli", "formulations", "heuristics", "simulation", "solvers", "validation")
# In capitals: a name that the contributor chooses.
CHOSEN = re.compile(r"[A-Z]{2,}")
SUFFIXES = (".py", ".md", ".toml", ".html", "/")


def named():
    """Return what CONTRIBUTING shows as code or links to."""
    return sorted({*re.findall(r"`([^`\n]+)`", GUIDE), *re.findall(r"\]\(([^)#\n]+)(?:#[^)]*)?\)", GUIDE)})


def paths():
    """Return every file and folder that CONTRIBUTING names."""
    return [name for name in named() if name.endswith(SUFFIXES) and " " not in name and name != "__init__.py"]


def test_contributing_names_files():
    assert len(paths()) > 40


@pytest.mark.parametrize("path", paths())
def test_a_path_in_contributing_exists(path):
    chosen = CHOSEN.search(path.replace("CONTRIBUTING", "").replace("CHANGELOG", ""))
    known = path[: chosen.start()].rpartition("/")[0] if chosen else path
    assert (ROOT / known).exists(), path


@pytest.mark.parametrize(
    "module", [name for name in named() if re.fullmatch(r"(solvers|formulations)(\.[a-z_]+)+\.[A-Z]\w+", name)]
)
def test_a_class_in_contributing_exists(module):
    home, _, name = module.rpartition(".")
    assert hasattr(importlib.import_module(f"equipoise.{home}"), name)


def test_the_table_of_a_formulation_lists_its_members():
    table = GUIDE[GUIDE.index("lists everything that `solve` uses") :]
    table = table[: table.index("Nothing in `solvers/` changes")]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    members = {name for name in {*vars(Formulation), *Formulation.__annotations__} if not name.startswith("_")}
    assert listed == {name for name in members if not isinstance(vars(Formulation).get(name), FormerName)}


# -- Words -------------------------------------------------------------------------------------------------------------


def ruled_out():
    """Return the words of the glossary's last table."""
    table = GLOSSARY[GLOSSARY.index("## Words not to use") :]
    cells = re.findall(r"^\| ([a-z, ]+) \|", table, re.MULTILINE)
    return [word for cell in cells[1:] for word in cell.split(", ")]


WORDS = re.compile(rf"(?<![a-z])({'|'.join(ruled_out())})(s|ed|ing)?(?![a-z])")


def words_in(path):
    """Yield every ruled-out word of a file's names and docstrings, with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        texts = []
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            texts.append(ast.get_docstring(node) or "")
        for field in ("name", "id", "arg", "attr"):
            text = getattr(node, field, None)
            if isinstance(text, str):
                texts.append(text.replace("_", " "))
        for text in texts:
            for found in WORDS.finditer(text.lower()):
                yield f"line {getattr(node, 'lineno', 1)}: {found.group()}"


def test_ruled_out_words_are_found(tmp_path):
    assert {"door", "house", "hear", "believe", "fate", "tell", "nobody"} <= set(ruled_out())
    path = tmp_path / "module.py"
    path.write_text('"""A door to the roommate; it believes."""\n\n\ndef _last_crumb(ear, heart):\n    doors = 1\n')
    assert {each.split(": ")[1] for each in words_in(path)} == {"door", "believes", "crumb", "doors", "ear"}


@pytest.mark.parametrize("path", sorted(path for folder in CLEAN for path in (ROOT / folder).rglob("*.py")), ids=str)
def test_a_clean_folder_stays_clean(path):
    assert list(words_in(path)) == []
