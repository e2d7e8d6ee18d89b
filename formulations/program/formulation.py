"""Contract of a formulation: the members that `solve` uses, and their defaults."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from ..arrays import Floats
from ..errors import InvalidInput, UnsupportedProblem
from ..former_names import FormerName
from .data import ProblemClass, ProgramData, Residuals, Sense

PlanT = TypeVar("PlanT")
#: Applies a function to vectors, shape (B, n), row by row; the last argument is the width of its result.
Apply = Callable[[Callable[[Floats], Floats], Floats, int], Floats]


class Formulation(ABC, Generic[PlanT]):
    """A problem for `solve`: its programs, and the arithmetic that evaluates its plans.

    A subclass declares `sense` and, if it has programs, `forms` with `program`, `decode` and, for warm starts,
    `encode`. A problem without a program has no forms and defines `evaluate`. Everything else has a default. An
    intermediate abstract class lists `ABC` among its own bases and is exempt from these rules.

    Attributes
    ----------
    sense : {"max", "min"}
        Whether greater objectives are better. There is no default.
    forms : tuple of str
        Names of the programs, the default first. Without forms, only backends that read the formulation itself solve
        the problem.
    proves_bounds : bool
        Whether a plan includes a proof of its bound (`proved_bound`). If so, `solve` accepts no other bound.
    trusts_reports : bool
        Whether plans that a backend reports on the way are not evaluated: where that means simulation. The final plan
        always is.
    claims_optimality : bool
        Whether a closed gap is called OPTIMAL; not where the bound rests on a number that the caller gave.
    """

    sense: Sense
    forms: tuple[str, ...] = ()
    # Class of all programs, if it is the same for all data and forms; otherwise `class_of` is overridden.
    _declared_class: ClassVar[ProblemClass | None] = None
    proves_bounds: ClassVar[bool] = False
    trusts_reports: ClassVar[bool] = False
    claims_optimality: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if ABC in cls.__bases__:
            return
        own = [each for each in cls.__mro__ if each is not Formulation]
        if not any("sense" in vars(each) or "sense" in inspect.get_annotations(each) for each in own):
            raise TypeError(f"{cls.__name__} must declare its sense, 'max' or 'min'")
        sense = getattr(cls, "sense", "max")  # classes with a sense by instance check it there
        if sense not in ("max", "min"):
            raise TypeError(f"{cls.__name__}.sense must be 'max' or 'min', not {sense!r}")
        for method in ("program", "decode") if cls.forms else ():
            if getattr(cls, method) is getattr(Formulation, method):
                raise TypeError(f"{cls.__name__} has forms, and must define {method}")

    @property
    def kind(self) -> str:
        """The name under which backends list the formulation: by default the name of its type."""
        return type(self).__name__

    @property
    def sign(self) -> float:
        """1.0 if greater objectives are better, -1.0 if smaller ones are."""
        return 1.0 if self.sense == "max" else -1.0

    def check_form(self, form: str | None) -> str:
        """Return the form, or the default form for None.

        Raises InvalidInput if the formulation has no such form, UnsupportedProblem if none is given and it has none.
        """
        if form is not None:
            if form not in self.forms:
                listed = f"must be one of {', '.join(self.forms)}"
                why = listed if self.forms else f"a {self.kind} has no program: leave form out"
                raise InvalidInput("form", form, why)
            return form
        if not self.forms:
            raise UnsupportedProblem(f"no program states a {self.kind}")
        return self.forms[0]

    def class_of(self, form: str | None = None) -> ProblemClass | None:
        """Return the class of the program in a form; None if the problem has no program.

        Unless a subclass declares the class, the default builds the program.
        """
        if not self.forms:
            return None
        form = self.check_form(form)
        return self._declared_class or self.program(form).problem_class

    def program_size(self, form: str | None = None) -> int | None:
        """Return the number of entries of the program in a form, without building it; None if it is not known."""
        return None

    def program(self, form: str) -> ProgramData:
        """Return the program in a form."""
        raise UnsupportedProblem(f"no program states a {self.kind}")

    def decode(self, values: Floats, duals: Floats | None, form: str) -> PlanT:
        """Turn column values of the program in a form, shape (columns,), and duals, shape (rows,), into a plan."""
        raise UnsupportedProblem(f"no program states a {self.kind}")

    def encode(self, plan: PlanT, form: str) -> Floats:
        """Turn a plan into column values of the program in a form, for a warm start; nan where there is none."""
        raise UnsupportedProblem(f"a {self.kind} cannot turn plans into column values: leave the warm start out")

    def check_plan(self, plan: PlanT, field: str = "plan") -> None:
        """Raise InvalidInput, naming `field`, unless the plan fits this problem; the default checks nothing."""

    def evaluate(self, plan: PlanT) -> tuple[float, Residuals] | None:
        """Return the plan's objective and worst violations from the problem's own data.

        The default, None, leaves both to the arithmetic of the program. A problem that a backend solves without a
        program must define this method.
        """
        return None

    def evaluate_with(self, plan: PlanT, apply: Apply) -> tuple[float, Residuals] | None:
        """Return `evaluate(plan)`, whose work `apply` may share out among workers; the default does not use it.

        Parameters
        ----------
        apply : callable
            ``apply(function, vectors, width)`` returns ``function(vectors)``, of shape (B, width), for vectors of shape
            (B, n) and a function that can be pickled and works row by row.
        """
        return self.evaluate(plan)

    def gap_scale(self, objective: float) -> float:
        """Return the size of a relative gap of 1 in units of the objective; by default max(abs(objective), 1e-9)."""
        return max(abs(objective), 1e-9)

    def proved_bound(self, plan: PlanT) -> float | None:
        """Return the bound that the plan proves, for instance by its prices; None without `proves_bounds`."""
        return None

    def normalized(self, plan: PlanT) -> PlanT:
        """Return the plan with its derived parts recomputed; by default the plan unchanged."""
        return plan

    def improve(self, plan: PlanT, other: PlanT) -> PlanT:
        """Return the plan, improved by better proofs of another plan of this problem; by default the plan unchanged."""
        return plan

    bound_of = FormerName("proved_bound")
    problem_class = FormerName("class_of", was_property=True)
    program_entries = FormerName("program_size", was_property=True)
    restated = FormerName("normalized")
    with_better_prices = FormerName("improve")
