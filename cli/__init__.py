"""The `equipoise` command: plan, snapshot, backends, demo, bench."""
