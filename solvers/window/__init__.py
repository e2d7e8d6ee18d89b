"""The window program by a Lagrangian dual with rounding and branching."""
