"""The command `equipoise plan`: a window instance as JSON in, a plan as JSON out."""
