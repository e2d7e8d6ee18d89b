"""Sphinx's configuration: Markdown pages, numpydoc docstrings, warnings as errors (see `make docs`)."""

from importlib.metadata import version as installed_version

project = "equipoise"
author = "The equipoise authors"
copyright = author
release = installed_version("equipoise")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True}
napoleon_google_docstring = False
# An attribute described in its class is not described again as a member.
napoleon_use_ivar = True
# Attributes of several classes share a name; a reference to one of them inside its own class is clear to a reader.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"equipoise {release}"
