"""Members and parameters under their former names: both work, and give a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

TargetT = TypeVar("TargetT", bound=Callable[..., Any])


class FormerName:
    """Member of a class under its former name, with the value of the present member.

    Example: ``wanted = FormerName("in_demand")``. A method that was a property is called, with `was_property`.
    """

    def __init__(self, present: str, was_property: bool = False) -> None:
        self.present, self.was_property = present, was_property

    def __set_name__(self, owner: type, name: str) -> None:
        self.former = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        warnings.warn(f"{self.former} is now {self.present}", DeprecationWarning, stacklevel=2)
        value = getattr(instance, self.present)
        return value() if self.was_property else value


def former_parameters(**present: str) -> Callable[[TargetT], TargetT]:
    """Let a function, or a class when it is created, accept keyword arguments by their former names.

    Example: ``@former_parameters(gangs="gang_gpus")``. A TypeError is raised if a parameter is given by both names.
    """

    def decorated(target: TargetT) -> TargetT:
        call = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]

        @wraps(call)
        def renaming(*args: Any, **given: Any) -> Any:
            for former in present.keys() & given.keys():
                name = present[former]
                if name in given:
                    raise TypeError(f"{target.__qualname__}: {former} is the former name of {name}, which is given too")
                text = f"{target.__qualname__}: the parameter {former} is now {name}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                given[name] = given.pop(former)
            return call(*args, **given)

        if not isinstance(target, type):
            return renaming  # type: ignore[return-value]
        target.__init__ = renaming  # type: ignore[misc]
        return target

    return decorated
