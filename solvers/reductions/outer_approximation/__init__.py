"""Programs with logarithms by tangent cuts on a linear solver."""
