"""The decision problems behind GPU-cluster scheduling: solver-agnostic models, certified answers.

>>> import equipoise as eq
>>> jobs = [eq.WindowJob(id="a", gpus=2, finished_epochs=0, total_epochs=4, regimes=[eq.Regime(4, 60.0)]),
...         eq.WindowJob(id="b", gpus=1, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 120.0)])]
>>> result = eq.solve(eq.ScheduleWindow(jobs, gpus=2, rounds=4))
>>> result.termination.reason.name, result.plan.rounds_granted.tolist()
('OPTIMAL', [2, 2])
"""

import lazy_loader

# The public names stand in __init__.pyi; each is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
