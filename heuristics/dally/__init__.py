"""Dally: delay scheduling of jobs by their network sensitivity, with tuned or fixed delays."""
