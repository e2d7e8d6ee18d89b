"""A temporary copy of the package, to which a test adds files as a contributor would."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("cli", "formulations", "heuristics", "simulation", "solvers", "validation")


class PackageCopy:
    """A copy of the package in a temporary folder, which counts the files that are written or changed in it."""

    def __init__(self, folder):
        self.root = Path(folder) / "equipoise"
        self.touched = []
        ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, self.root / name, ignore=ignored)
        for name in ("__init__.py", "__init__.pyi", "__main__.py", "py.typed"):
            shutil.copy(ROOT / name, self.root / name)

    def write(self, path, text):
        """Add a file."""
        target = self.root / path
        assert not target.exists(), path
        target.write_text(text, encoding="utf-8")
        self.touched.append(path)

    def insert(self, path, before, text):
        """Insert text before the only place where `before` stands."""
        old = (self.root / path).read_text(encoding="utf-8")
        assert old.count(before) == 1, (path, before)
        (self.root / path).write_text(old.replace(before, text + before), encoding="utf-8")
        if path not in self.touched:
            self.touched.append(path)

    def python(self, *arguments):
        """Run Python with the copy as the package; return its standard output."""
        environment = {**os.environ, "PYTHONPATH": str(self.root.parent)}
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=self.root.parent, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
