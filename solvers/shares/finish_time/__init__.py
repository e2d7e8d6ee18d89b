"""Finish-time fairness by bisection over prices."""
