"""Numbers of examples: that of a loop, all in CI and a part of it by default, and that of a slow property."""

from hypothesis import settings


def examples(whole: int) -> int:
    """Scale `whole` as Hypothesis scales its examples, 100 of them being the whole, and never beyond it."""
    return max(1, whole * min(settings().max_examples, 100) // 100)


def fewer(divisor: int) -> settings:
    """Return the settings of a property whose examples take long: a part of the profile's examples, at least 10."""
    return settings(max_examples=max(10, settings().max_examples // divisor))
