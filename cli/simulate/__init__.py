"""The command `equipoise simulate`: one policy on one trace."""
