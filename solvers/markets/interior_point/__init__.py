"""Linear Fisher markets by an interior-point method."""
