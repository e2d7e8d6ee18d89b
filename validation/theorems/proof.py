"""Proofs whose every step is verified by sympy: equations and signs, with sums over any number of terms.

The verifier is small on purpose. It brings sums into one form, replaces what is given, lets sympy simplify the
difference of two sides to 0, and reads a sign off sums and products of terms of known sign. What it cannot close
raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from ...formulations.errors import EquipoiseError
from .sums import canonical, fresh, replaced, without_sums
from .symbols import sp


class ProofFailed(EquipoiseError):  # noqa: N818 - the name users read
    """A step that sympy cannot close: the statement is false as put, or needs another argument."""


@dataclass(frozen=True)
class Proof:
    """A statement, for how many buyers and goods, with its source and the steps that prove it; prints them all.

    A step, (text, sympy relation), whose text starts with "Given" is a hypothesis, a definition, or what a theorem that
    it names proves; every other one was verified.
    """

    statement: str
    source: str
    steps: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        lines = [self.statement, f"({self.source})"]
        for number, (text, formula) in enumerate(self.steps, 1):
            lines += [f"{number:>3}. {text}:", f"       {formula_text(formula)}"]
        return "\n".join(lines)


class Argument:
    """A proof in the making: what is given, and the steps verified so far."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Any]] = []
        self._rules: list[tuple[Any, Any, tuple[Any, ...]]] = []

    def given(self, text: str, left: Any, right: Any, *each: Any) -> None:
        """Take ``left = right`` as a hypothesis or a definition: from here on `left` is replaced by `right`.

        The left side is a symbol, a sum, or an indexed symbol as ``p[k]``, which stands for all its indices; `each` are
        indices, free in a sum, for all of whose values the hypothesis is meant.
        """
        self._steps.append((f"Given: {text}", sp.Eq(left, right, evaluate=False)))
        self._rules.append((canonical(left), sp.sympify(right), each))

    def equal(self, text: str, left: Any, right: Any, *each: Any, rule: bool = False) -> None:
        """Verify that two expressions are the same under what is given; as a `rule`, use it like something given.

        ProofFailed if sympy does not simplify their difference to 0.
        """
        rest = self._reduced(left - right)
        if rest != 0:
            raise ProofFailed(f"{text}: {formula_text(left)} = {formula_text(right)} leaves {formula_text(rest)}")
        self._steps.append((text, sp.Eq(left, right, evaluate=False)))
        if rule:
            self._rules.append((canonical(left), sp.sympify(right), each))

    def differ(self, text: str, left: Any, right: Any) -> None:
        """Verify that two exact numbers differ."""
        rest = self._reduced(left - right)
        if rest.free_symbols or rest.is_zero is not False:
            raise ProofFailed(f"{text}: {formula_text(left)} and {formula_text(right)} do not differ for certain")
        self._steps.append((text, sp.Ne(left, right, evaluate=False)))

    def at_least(self, text: str, left: Any, right: Any) -> None:
        """Verify ``left >= right``: their difference is made of terms of known sign."""
        self._ordered(text, left, right, "nonnegative")

    def exceeds(self, text: str, left: Any, right: Any) -> None:
        """Verify ``left > right``."""
        self._ordered(text, left, right, "positive")

    def _ordered(self, text: str, left: Any, right: Any, sign: str) -> None:
        # As it is written first: expanding would hide a square.
        if not _is(without_sums(left - right), sign):
            rest = self._reduced(left - right)
            if not _is(rest, sign):
                raise ProofFailed(f"{text}: the sign of {formula_text(rest)} is not known")
        shown = sp.Ge if sign == "nonnegative" else sp.Gt
        self._steps.append((text, shown(left, right, evaluate=False)))

    def aside(self) -> Argument:
        """Return an argument that starts from what is given here; `include` takes back its steps alone."""
        other = Argument()
        other._rules = list(self._rules)
        return other

    def include(self, other: Argument) -> None:
        """Append the steps of an argument that was made aside."""
        self._steps += other._steps

    def proof(self, statement: str, source: str) -> Proof:
        """Return the proof; ProofFailed if nothing was verified: what is given proves nothing by itself."""
        if all(text.startswith("Given") for text, _ in self._steps):
            raise ProofFailed(f"{statement}: no step")
        return Proof(statement, source, tuple(self._steps))

    def _reduced(self, expression: Any) -> Any:
        """Return the expression after what is given, in one form, simplified, with a symbol for every sum."""
        late = (sp.Limit, sp.Derivative, sp.Min)  # stated, and worked out only here
        expression = sp.sympify(expression).replace(lambda each: isinstance(each, late), lambda each: each.doit())
        expression = expression.replace(
            lambda each: isinstance(each, sp.log) and isinstance(each.args[0], sp.Product), sp.expand_log
        )
        expression = canonical(expression)
        for _ in range(len(self._rules) + 1):  # what is given may lead to the left side of something else given
            before = expression
            for left, right, each in self._rules:
                bound = {limit[0] for total in left.atoms(sp.Sum) for limit in total.limits}
                symbols = sorted(expression.atoms(sp.Symbol) - bound, key=str) if each else []
                for indices in product(symbols, repeat=len(each)):
                    at = dict(zip(each, indices, strict=True))
                    expression = replaced(expression, left.xreplace(at), fresh(right).xreplace(at))
                expression = canonical(expression)
            if expression == before:
                break
        short = sp.simplify(sp.expand_log(without_sums(canonical(expression, merge=True))))
        return short if short == 0 else sp.simplify(sp.powsimp(sp.expand(sp.powdenest(short))))


def formula_text(formula: Any) -> str:
    """Return a formula on one line, sums as ``sum_j(...)``."""

    class Printer(sp.StrPrinter):  # type: ignore[misc]  # sympy has no types
        def _print_Sum(self, total: Any) -> str:  # noqa: N802 - the names that sympy calls
            indices = [str(limit[0]) for limit in total.limits]
            under = indices[0] if len(indices) == 1 else "{" + ",".join(indices) + "}"
            name = "prod" if isinstance(total, sp.Product) else "sum"
            return f"{name}_{under}({self._print(total.function)})"

        _print_Product = _print_Sum  # noqa: N815

        def _print_KroneckerDelta(self, delta: Any) -> str:  # noqa: N802
            return "[{} = {}]".format(*delta.args)

        def _print_Derivative(self, slope: Any) -> str:  # noqa: N802
            (variable, count), *_ = slope.variable_count
            times = "" if count == 1 else f"^{count}"
            return f"d{times}/d{self._print(variable)}{times} ({self._print(slope.expr)})"

        def _print_Limit(self, limit: Any) -> str:  # noqa: N802
            function, variable, end, side = limit.args
            side = "" if str(side) == "+-" or end.is_infinite else side
            return f"lim_({variable} -> {end}{side}) ({self._print(function)})"

        def _print_Relational(self, relation: Any) -> str:  # noqa: N802
            sign = "=" if relation.rel_op == "==" else relation.rel_op
            return f"{self._print(relation.lhs)} {sign} {self._print(relation.rhs)}"

    return str(Printer().doprint(formula)).replace("**", "^")


def _is(expression: Any, sign: str) -> bool:
    return any(getattr(form(expression), f"is_{sign}") is True for form in (sp.sympify, sp.factor, sp.expand))
