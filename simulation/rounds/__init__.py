"""Rounds engine: gangs of fixed size that share GPUs over time, in rounds."""
