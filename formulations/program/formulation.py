"""The contract of a formulation: what `solve` asks of a problem, and what it gets where nothing is said."""

from __future__ import annotations

import inspect
from abc import ABC
from typing import Any, ClassVar, Generic, TypeVar

from ..arrays import Floats
from ..errors import InvalidInput, UnsupportedProblem
from .data import ProblemClass, ProgramData, Residuals, Sense

PlanT = TypeVar("PlanT")


class Formulation(ABC, Generic[PlanT]):
    """A problem that `solve` takes: its programs, and the arithmetic by which its plans are judged.

    A subclass declares `sense` and, where programs state it, `forms` with `program`, `decode` and, for warm starts,
    `encode`. One that no program states has no forms and defines `evaluate`. Everything else has a default. A class
    between this one and the problems names `ABC` among its own bases: nothing is asked of it.

    Attributes
    ----------
    sense : {"max", "min"}
        Whether greater objectives are better. There is no default.
    forms : tuple of str
        The programs by name, the first one the default. Empty: no program states the problem, and only backends that
        read the formulation itself solve it.
    proves_bounds : bool
        Whether a plan carries the proof of its bound (`proved_bound`). Then no other bound is taken.
    """

    sense: Sense
    forms: tuple[str, ...] = ()
    proves_bounds: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if ABC in cls.__bases__:
            return
        own = [each for each in cls.__mro__ if each is not Formulation]
        if not any("sense" in vars(each) or "sense" in inspect.get_annotations(each) for each in own):
            raise TypeError(f"{cls.__name__} must declare its sense, 'max' or 'min'")
        sense = getattr(cls, "sense", "max")  # instances that have their own check it themselves
        if sense not in ("max", "min"):
            raise TypeError(f"{cls.__name__}.sense must be 'max' or 'min', not {sense!r}")
        for method in ("program", "decode") if cls.forms else ():
            if getattr(cls, method) is getattr(Formulation, method):
                raise TypeError(f"{cls.__name__} has forms, and must define {method}")

    @property
    def kind(self) -> str:
        """The name by which backends list the formulation: that of its type."""
        return type(self).__name__

    @property
    def sign(self) -> float:
        """1.0 if greater objectives are better, -1.0 if smaller ones are."""
        return 1.0 if self.sense == "max" else -1.0

    def check_form(self, form: str | None) -> str:
        """Return the form, the first for None.

        Raises
        ------
        InvalidInput
            If the formulation has no such form.
        UnsupportedProblem
            If no form is given and it has none.
        """
        if form is not None:
            if form not in self.forms:
                listed = f"must be one of {', '.join(self.forms)}"
                raise InvalidInput(
                    "form", form, listed if self.forms else f"a {self.kind} has no program: leave it out"
                )
            return form
        if not self.forms:
            raise UnsupportedProblem(f"no program states a {self.kind}")
        return self.forms[0]

    def class_of(self, form: str | None = None) -> ProblemClass | None:
        """Return the class of the program in a form, the first by default; None if no program states the problem.

        The default builds the program. A formulation that knows the class overrides this.
        """
        return self.program(self.check_form(form)).problem_class if self.forms else None

    def program_size(self, form: str | None = None) -> int | None:
        """Return how many entries the program in a form has, without building it; None if that is not known."""
        return None

    def program(self, form: str) -> ProgramData:
        """Return the program in a form."""
        raise UnsupportedProblem(f"no program states a {self.kind}")

    def decode(self, values: Floats, duals: Floats | None, form: str) -> PlanT:
        """Turn column values of the program in a form, shape (columns,), and duals, shape (rows,), into a plan."""
        raise UnsupportedProblem(f"no program states a {self.kind}")

    def encode(self, plan: PlanT, form: str) -> Floats:
        """Turn a plan into column values of the program in a form, for a warm start; nan where there is none."""
        raise UnsupportedProblem(f"a {self.kind} does not turn plans into column values: leave the warm start out")

    def check_plan(self, plan: PlanT, field: str = "plan") -> None:
        """Raise InvalidInput, naming `field`, unless the plan is one of this problem; by default nothing is checked."""

    def evaluate(self, plan: PlanT) -> tuple[float, Residuals] | None:
        """Return the plan's objective and worst violations from the problem's own data.

        None, the default, leaves both to the arithmetic of the program; a backend that reads the formulation itself
        needs them from here.
        """
        return None

    def gap_scale(self, objective: float) -> float:
        """Return what a relative gap of 1 is worth in units of the objective; by default its size, at least 1e-9."""
        return max(abs(objective), 1e-9)

    def proved_bound(self, plan: PlanT) -> float | None:
        """Return the bound that the plan itself proves, by its prices for instance; None without `proves_bounds`."""
        return None

    def normalized(self, plan: PlanT) -> PlanT:
        """Return the plan with all that follows from the rest of it computed anew; by default the plan as it is."""
        return plan

    def improve(self, plan: PlanT, other: PlanT) -> PlanT:
        """Return the plan with what the other one, of the same problem, proves better; by default the plan as it is."""
        return plan
