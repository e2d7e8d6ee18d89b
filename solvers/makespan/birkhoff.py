"""The birkhoff backend: optimal preemptive open shops by decomposition of the work into matchings."""

from __future__ import annotations

from ...formulations.makespan.open_shop.construction import preemptive_schedule
from ...formulations.makespan.open_shop.problem import OpenShop
from ..backend import Answer, Claim, OwnMethod, Progress, Task
from ..options import Options


class Birkhoff(OwnMethod):
    """The makespan is the largest load of a job or machine; the schedule is a sum of matchings."""

    name = "birkhoff"
    formulations = frozenset({"PreemptiveOpenShop"})
    supported_options = frozenset({"seed"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Return the optimum; nothing is drawn, so every seed gives the same result."""
        self.backend_options(options)
        shop: OpenShop = task.problem
        plan = preemptive_schedule(shop.times)
        on_progress(plan.makespan, shop.lower_bound, plan)
        notes = ("bound: the most work of one job or one machine",)
        return Answer(claim=Claim.SOLVED, plan=plan, bound=shop.lower_bound, notes=notes)


BACKEND = Birkhoff()
