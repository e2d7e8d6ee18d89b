"""Experiments of the papers, each compared with the printed results."""
