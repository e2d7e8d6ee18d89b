"""Backends and packages that may be absent: what is there, and a skip with the reason for what is not."""

import importlib.util

import pytest

import equipoise as eq


def usable(*names: str) -> list[str]:
    """Return which of these backends can run here, in order."""
    able = {row.name for row in eq.backends(usable=True)}
    return [name for name in names if name in able]


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where a backend cannot run, with the reason that its probe gives."""
    row = next(row for row in eq.backends() if row.name == name)
    return pytest.mark.skipif(not row.usable, reason=row.reason)


def needs_package(name: str, extra: str) -> pytest.MarkDecorator:
    """Skip a test where a package is not installed, and say which extra brings it."""
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing, reason=f"{name} is not installed: pip install 'equipoise[{extra}]'")
