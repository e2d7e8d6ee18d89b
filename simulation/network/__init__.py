"""Communication of jobs over tiers of a network, as speeds of the placement engine: measured, modelled or penalties."""
