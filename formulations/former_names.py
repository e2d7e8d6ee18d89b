"""Members of classes under their former names."""

from __future__ import annotations

import warnings
from typing import Any


class FormerName:
    """Member of a class under its former name: a DeprecationWarning, and the value under the present name.

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
