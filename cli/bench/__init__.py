"""Commands `equipoise bench ...`: benchmarks and the experiments of the papers."""
