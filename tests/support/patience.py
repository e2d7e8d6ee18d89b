"""How long a test waits: far longer than a busy machine needs, far shorter than what the test rules out."""

from collections.abc import Callable
from typing import Any

import equipoise as eq

#: Seconds within which something ends that would otherwise go on for ten minutes or for ever.
SOON_S = 90.0


def until_incumbent(solve: Callable[[float], eq.Result[Any]], limit_s: float) -> eq.Result[Any]:
    """Return the result of `solve(time_limit)` with a limit that leaves an incumbent: twice as long until there is one.

    What a solver reaches in half a second depends on what else the machine does.
    """
    for doublings in range(6):
        result = solve(limit_s * 2**doublings)
        if result.plan is not None:
            return result
    raise AssertionError(f"no incumbent in {limit_s * 2**doublings:g} s: {result}")
