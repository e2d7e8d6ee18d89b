"""The shortest schedule of jobs that each need a gang of GPUs."""
