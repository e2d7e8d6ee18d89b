"""Number of examples that a loop tries: what the test names in CI, a part of it by default."""

from hypothesis import settings


def examples(whole: int) -> int:
    """Scale `whole` as Hypothesis scales its examples, 100 of them being the whole, and never beyond it."""
    return max(1, whole * min(settings().max_examples, 100) // 100)
