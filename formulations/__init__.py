"""Decision problems as data, each with its program; no solver is known here."""
