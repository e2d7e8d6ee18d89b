"""The shortest schedule of an open shop, with or without preemption."""
