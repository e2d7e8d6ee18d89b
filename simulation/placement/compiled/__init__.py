"""Compiled form of the placement engine, for the policies of Dally."""
