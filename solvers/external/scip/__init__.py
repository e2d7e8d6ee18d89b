"""Linear, integer and logarithmic programs by SCIP."""
