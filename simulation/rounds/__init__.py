"""The rounds engine: fixed GPUs for each job, time-shared in rounds."""
