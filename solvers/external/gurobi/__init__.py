"""Linear, integer and logarithmic programs by Gurobi."""
