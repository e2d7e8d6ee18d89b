"""The `equipoise` command: plan, snapshot, simulate, compare, backends, verify, demo, bench."""
