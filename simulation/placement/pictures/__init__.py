"""Pictures of what the speeds of the placement engine are made of: throughputs, and ratios of pairs."""
