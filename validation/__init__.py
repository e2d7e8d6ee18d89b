"""What must hold: strategies for tests and benchmarks of solvers."""
