"""Experiments of the papers, each compared with what the paper prints."""
