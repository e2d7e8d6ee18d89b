"""Tables, metrics and plots of a simulated run."""
