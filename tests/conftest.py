"""Hypothesis profiles: how many examples a property is tried on, and never a deadline."""

import os

from hypothesis import settings

settings.register_profile("dev", max_examples=25, deadline=None)
# The same examples every time: a run in CI fails for the change at hand, not by the luck of the draw.
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("nightly", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
