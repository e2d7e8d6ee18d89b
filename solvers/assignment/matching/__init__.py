"""AlloX's matching by shortest augmenting paths."""
