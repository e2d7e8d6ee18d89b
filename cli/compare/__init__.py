"""The command `equipoise compare`: several policies on one trace, side by side."""
