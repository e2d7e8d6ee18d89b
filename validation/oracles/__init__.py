"""Slow, independent solutions of small instances, and relations between instances."""
