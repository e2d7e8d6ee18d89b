"""Agreement of all backends on random programs and markets."""
