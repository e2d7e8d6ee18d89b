"""Markets of jobs whose speeds follow Markov chains."""
