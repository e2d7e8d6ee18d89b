"""Leontief markets by an interior-point method."""
