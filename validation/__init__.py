"""Certificates of plans, the contract of backends, proofs and statements of the theory, benchmarks and experiments."""

import lazy_loader

# The public names stand in __init__.pyi; each is imported on first use: some need sympy, and most load solvers.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
