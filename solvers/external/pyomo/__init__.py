"""Programs by the solvers that Pyomo reaches."""
