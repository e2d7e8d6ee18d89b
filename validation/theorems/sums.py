"""A normal form of sums over any number of terms, in which equal sums are identical."""

from __future__ import annotations

from functools import cache
from typing import Any

from .symbols import sp


def canonical(expression: Any, *, merge: bool = False) -> Any:
    """Return an equal expression whose sums have one form: split by terms, factors outside, indices renamed.

    With `merge` a sum of sums becomes one over all their indices, so that their order does not matter.
    """
    expression = sp.sympify(expression)
    if isinstance(expression, sp.Sum):
        function = expression.function
        for index, low, high in expression.limits:
            function = _sum(canonical(function, merge=merge), index, low, high, merge)
        return function
    if not expression.args or isinstance(expression, sp.Indexed):
        return expression
    return expression.func(*(canonical(each, merge=merge) for each in expression.args))


def replaced(expression: Any, left: Any, right: Any) -> Any:
    """Return the expression with `left` replaced by `right`; an indexed `left` stands for all its indices."""
    if isinstance(left, sp.Sum):
        # A sum of sums is one with several indices to sympy: the left side may be a part of it.
        def holds(each: Any) -> bool:
            return isinstance(each, sp.Sum) and each.function == left.function and set(left.limits) <= set(each.limits)

        def rest(each: Any) -> Any:
            limits = [limit for limit in each.limits if limit not in left.limits]
            return sp.Sum(right, *limits) if limits else right

        return expression.replace(holds, rest)
    if not isinstance(left, sp.Indexed):
        return expression.xreplace({left: right})
    return expression.replace(
        lambda each: isinstance(each, sp.Indexed) and each.base == left.base,
        lambda each: fresh(right).xreplace(dict(zip(left.indices, each.indices, strict=True))),
    )


def fresh(expression: Any) -> Any:
    """Return the expression with an index of its own for every sum, which nothing put into it can meet."""
    if isinstance(expression, sp.Sum):
        new = {limit[0]: sp.Dummy(integer=True, positive=True) for limit in expression.limits}
        limits = [(new[index], low, high) for index, low, high in expression.limits]
        return sp.Sum(fresh(expression.function).xreplace(new), *limits)
    if not expression.args or isinstance(expression, sp.Indexed):
        return expression
    return expression.func(*(fresh(each) for each in expression.args))


def without_sums(expression: Any) -> Any:
    """Return the expression with a symbol for every sum, of the sign that all its terms share, if they do."""
    return _hidden(sp.sympify(expression), {})


def _sum(function: Any, index: Any, low: Any, high: Any, merge: bool) -> Any:
    """Return the sum of a canonical function over one index, itself canonical."""
    from sympy.concrete.delta import deltasummation

    if any(delta.has(index) for delta in function.atoms(sp.KroneckerDelta)):
        # The other index is one of the sum's own: it stands for any of its terms.
        names: dict[Any, Any] = {}
        function = sp.expand(_hidden(function, names)).xreplace(names)
        collapsed = deltasummation(function, (index, low, high), no_piecewise=True)
        if not any(delta.has(index) for delta in collapsed.atoms(sp.KroneckerDelta)):
            return canonical(collapsed, merge=merge)
    # Inner sums are hidden meanwhile: sympy would neither know their sign nor leave them whole.
    names = {}
    function = sp.expand_power_base(sp.powdenest(sp.expand_log(_hidden(function, names))))
    terms = [
        _with_neat_powers(sp.expand_power_base(sp.powsimp(term))) for term in sp.Add.make_args(sp.expand(function))
    ]
    return sp.Add(*(_sum_of_product(term.xreplace(names), index, low, high, merge) for term in terms))


def _with_neat_powers(term: Any) -> Any:
    def is_sum_of_fractions(each: Any) -> bool:
        return isinstance(each, sp.Pow) and isinstance(each.exp, sp.Add)

    return term.replace(is_sum_of_fractions, lambda each: each.base ** sp.cancel(each.exp))


def _sum_of_product(term: Any, index: Any, low: Any, high: Any, merge: bool) -> Any:
    outside, inside = term.as_independent(index, as_Add=False)
    if inside == 1:
        return outside * (high - low + 1)
    limits = [(index, low, high)]
    sums = [each for each in sp.Mul.make_args(inside) if isinstance(each, sp.Sum)]
    if merge and len(sums) == 1 and not (inside / sums[0]).has(sp.Sum):
        inside = inside / sums[0] * sums[0].function
        limits += [tuple(limit) for limit in sums[0].limits]
        limits.sort(key=lambda limit: str(limit[2]))
    taken: dict[str, int] = {}
    renamed = []
    own = {old: sp.Dummy(integer=True, positive=True) for old, _, _ in limits}  # no two of them may ever meet
    inside = inside.xreplace(own)
    for old, start, end in limits:
        # Named after what they run to, and by how many such sums lie inside, so that equal sums get equal names.
        depth = max((_depth(each, end) for each in inside.atoms(sp.Sum)), default=0) + taken.get(str(end), 0)
        taken[str(end)] = taken.get(str(end), 0) + 1
        new = sp.Symbol(f"_{end}{depth or ''}", integer=True, positive=True)
        inside = inside.xreplace({own[old]: new})
        renamed.append((new, start, end))
    return outside * sp.Sum(inside, *renamed)


def _depth(inner: Any, end: Any) -> int:

    below = max((_depth(each, end) for each in inner.function.atoms(sp.Sum)), default=0)
    return int(below + sum(limit[2] == end for limit in inner.limits))


def _hidden(expression: Any, names: dict[Any, Any]) -> Any:
    """Return the expression with a symbol for every sum, and note in `names` what each stands for."""
    if isinstance(expression, sp.Sum):
        name = _stand_in(_hidden(expression.function, {}), expression.limits)
        names[name] = expression
        return name
    if not expression.has(sp.Sum):
        return expression
    return expression.func(*(_hidden(each, names) for each in expression.args))


@cache
def _stand_in(function: Any, limits: Any) -> Any:
    """Return the symbol for a sum whose inner sums are symbols already: the same for the same sum."""
    signs: dict[str, bool] = {"real": True} if function.is_real else {}
    some = all(low == 1 and high.is_positive for _, low, high in limits)  # a sum of nothing is 0
    for sign in ("positive", "nonnegative", "negative", "nonpositive"):
        if getattr(function, f"is_{sign}") and (some or sign.startswith("non")):
            signs = {sign: True}
            break
    return sp.Dummy(f"sum of {function}", **signs)
