"""Shockwave's tables and figures, made again."""
