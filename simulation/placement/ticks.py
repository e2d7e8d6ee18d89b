"""Times as whole numbers of ticks, in which rounding errors break no tie."""

#: Times closer than this are equal: 2^-20 s. Sums of floats differ from exact times by far less.
TICK_S = 2.0**-20


def ticks(seconds: float) -> int:
    """Return a time as the nearest whole number of ticks."""
    return round(seconds / TICK_S)
