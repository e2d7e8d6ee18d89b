"""Benchmarks of the library's own methods beside their peers."""
