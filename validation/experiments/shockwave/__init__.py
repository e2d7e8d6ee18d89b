"""The experiments of the Shockwave paper, reproduced."""
