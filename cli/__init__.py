"""The `equipoise` command: plan, snapshot, simulate, compare, tune, front, backends, verify, demo, bench."""
