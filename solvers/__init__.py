"""One `solve` for every problem, and the backends behind it."""
