"""List the packages: the root, which is `equipoise` itself, and every folder below it with an `__init__.py`."""

from setuptools import find_packages, setup

# A module beside the root's own would be packaged but for `script_name`, by which setuptools leaves this file out.
setup(script_name="setup.py", packages=["equipoise", *(f"equipoise.{name}" for name in find_packages())])
