"""Decision problems as data, each with its program; this package imports no solver."""
