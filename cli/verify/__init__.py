"""The command `equipoise verify`: the theory, proved and tested on random instances."""
