"""Jobs that share their GPUs: when to start a waiting job beside running ones."""
