"""Finish-time fairness on several GPU types, after Themis as Gavel states it."""
