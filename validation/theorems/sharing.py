"""Theorems of jobs that share GPUs: a pair, and a new job over several running ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..oracles.sharing import simulated_ends
from .proof import Argument, Proof
from .symbols import integers, nonnegative, positive, sp

THEOREM_1 = "SJF-BSBF, Theorem 1 (Eqs 22-25), put right"
AGAINST = "against SJF-BSBF, Theorem 1"
GROUPS = "SJF-BSBF, Algorithm 1 (a new job over several running ones)"
SUB_BATCHES = "SJF-BSBF, Algorithm 2"

# Running times, the waiting job's time, running ratios, waiting ratios.
Group = tuple[tuple[Any, ...], Any, tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True)
class _Pair:
    """A running job R (time a, ratio x), a waiting job W (time b, ratio y), and the ends of both.

    `first` has the ends of R and of W where W ends first, `second` those where R ends first, for a delay kappa.
    """

    a: Any
    b: Any
    x: Any
    y: Any
    delay: Any
    first: tuple[Any, Any]
    second: tuple[Any, Any]

    @property
    def meet(self) -> Any:
        """The delay at which both end together."""
        return self.a - self.y * self.b / self.x

    def at(self, expression: Any, delay: Any) -> Any:
        """Return an expression at another delay."""
        return expression.subs(self.delay, delay)


def _pair(speeds: Callable[[Any, Any], tuple[Any, Any]] | None = None, x: Any = None) -> _Pair:
    a, b, y = sp.symbols("a b y", positive=True)
    x = sp.Symbol("x", positive=True) if x is None else x
    delay = sp.Symbol("kappa", nonnegative=True)
    of_running, of_waiting = (1 / x, 1 / y) if speeds is None else speeds(x, y)
    shared = b / of_waiting  # W ends first: R has done of_running * shared, and is alone for the rest
    first = delay + shared + (a - delay - of_running * shared), delay + shared
    shared = (a - delay) / of_running
    second = delay + shared, delay + shared + (b - of_waiting * shared)
    return _Pair(a, b, x, y, delay, first, second)


def _mean(ends: tuple[Any, Any]) -> Any:
    return (ends[0] + ends[1]) / 2


def pair_pieces(speeds: Callable[[Any, Any], tuple[Any, Any]] | None = None) -> Proof:
    """Prove the two pieces of the mean JCT; `speeds` are others of R and W while they share, from x and y."""
    pair = _pair(speeds)
    a, b, x, y, delay = pair.a, pair.b, pair.x, pair.y, pair.delay
    rest = sp.Symbol("theta", nonnegative=True)
    proof = Argument()
    proof.equal("W ends first: R ends at a + y b (1 - 1/x)", pair.first[0], a + y * b * (1 - 1 / x))
    proof.equal("and W at kappa + y b", pair.first[1], delay + y * b)
    aside = proof.aside()
    aside.given("kappa is theta >= 0 below k = a - y b/x", a, delay + y * b / x + rest)
    aside.at_least("so R has work left when W ends", pair.first[0], pair.first[1])
    proof.include(aside)
    proof.equal("The mean JCT rises by 1/2", sp.Derivative(_mean(pair.first), delay), sp.Rational(1, 2))
    proof.equal("R ends first: it ends at kappa + x (a - kappa)", pair.second[0], delay + x * (a - delay))
    late = pair.second[0] + b - x * (a - delay) / y
    proof.equal("and W at that plus b - x (a - kappa)/y", pair.second[1], late)
    aside = proof.aside()
    aside.given("kappa is theta >= 0 above k", a, delay + y * b / x - rest)
    aside.at_least("so W has work left when R ends", pair.second[1], pair.second[0])
    proof.include(aside)
    slope = (x + 2 * y - 2 * x * y) / (2 * y)
    proof.equal("The slope of the mean JCT", sp.Derivative(_mean(pair.second), delay), slope)
    for name, one, two in zip("RW", pair.first, pair.second, strict=True):
        proof.equal(f"Both pieces meet at k: {name}", pair.at(one, pair.meet), pair.at(two, pair.meet))
    return proof.proof("The ends of a pair, and the two pieces of its mean JCT, for all x, y > 0", THEOREM_1)


def mean_jct_at_an_end(bend: Any = 0) -> Proof:
    """Prove that a delay of 0 or a has the least mean JCT; `bend` times kappa^2 is added to the second piece."""
    pair = _pair()
    second = _mean(pair.second) + bend * pair.delay**2
    return _at_an_end("mean JCT", pair, _mean(pair.first), second, pair.a + pair.b / 2)


def weighted_jct_at_an_end(weight: Any = None) -> Proof:
    """Prove the same of any weights of at least 0; `weight` is another one of W."""
    pair = _pair()
    of_running, of_waiting = sp.symbols("w_R w_W", nonnegative=True)
    of_waiting = of_waiting if weight is None else sp.sympify(weight)

    def weighted(ends: tuple[Any, Any]) -> Any:
        return of_running * ends[0] + of_waiting * ends[1]

    in_turn = of_running * pair.a + of_waiting * (pair.a + pair.b)
    return _at_an_end("weighted JCT", pair, weighted(pair.first), weighted(pair.second), in_turn)


def makespan_at_an_end(last: int = 0) -> Proof:
    """Prove the same of the makespan; `last` is the job, 0 or 1, that is taken to end last where W ends first."""
    pair = _pair()
    return _at_an_end("makespan", pair, pair.first[last], pair.second[1], pair.a + pair.b, pair.first[0])


def _at_an_end(name: str, pair: _Pair, first: Any, second: Any, in_turn: Any, constant: Any = None) -> Proof:
    """Prove that a delay of 0 or a is best, from the objective where W ends first and where R ends first."""
    proof = Argument()
    delay, start = pair.delay, sp.Symbol("k_1", nonnegative=True)
    if constant is not None:
        proof.equal("Where W ends first, the end of R is the same for all delays", first, pair.at(constant, 0))
    proof.at_least("Where W ends first, no delay is better than 0", first, pair.at(first, 0))
    proof.equal("The pieces meet at k", pair.at(first, pair.meet), pair.at(second, pair.meet))
    proof.equal("A delay of a runs one after the other", pair.at(second, pair.a), in_turn)
    part, other = sp.symbols("u v", positive=True)
    between = (part * start + other * pair.a) / (part + other)
    ends = pair.at(second, start), pair.at(second, pair.a)
    inside = (part * ends[0] + other * ends[1]) / (part + other)
    proof.equal("From k_1 = max(0, k) to a the objective is linear", pair.at(second, between), inside)
    _least_at_an_end(proof, part, other)
    assert delay not in inside.free_symbols
    return proof.proof(f"The least {name} of a pair is at the delay 0 or a, for all x, y > 0", THEOREM_1)


def _least_at_an_end(proof: Argument, part: Any, other: Any) -> None:
    """Add the step that what is linear is smallest at an end."""
    left, right, least = sp.symbols("J_p J_q M", real=True)
    more, most = sp.symbols("delta epsilon", nonnegative=True)
    aside = proof.aside()
    aside.given("M is the smaller of the values at both ends, here that at the first", left, least + more)
    aside.given("and at the second", right, least + most)
    aside.at_least("so no value between is smaller", (part * left + other * right) / (part + other), least)
    proof.include(aside)


def share_rule_running_first(criterion: Callable[..., Any] | None = None) -> Proof:
    """Prove the rule for x a <= y b; `criterion` is another one, of a, b, x and y."""
    pair = _pair()
    a, b, x, y = pair.a, pair.b, pair.x, pair.y
    proof = Argument()
    at_once = pair.at(_mean(pair.second), 0)
    proof.equal("The mean JCT without a delay", at_once, (x * a * (2 - 1 / y) + b) / 2)
    rule = 2 / x + 1 / y - 2 if criterion is None else criterion(a, b, x, y)
    proof.equal("What the delay a adds", a + b / 2 - at_once, x * a / 2 * rule)
    proof.exceeds("where the factor is positive", x * a / 2, 0)
    same = sp.Symbol("xi", positive=True)
    equal = rule.subs({x: same, y: same})
    proof.equal("At equal ratios", equal, 2 / same * (sp.Rational(3, 2) - same))
    return proof.proof("Where x a <= y b, sharing at once is best if and only if 2/x + 1/y >= 2", THEOREM_1)


def share_rule_waiting_first(criterion: Callable[..., Any] | None = None) -> Proof:
    """Prove the rule for x a > y b; `criterion` is another one, of a, b, x and y."""
    pair = _pair()
    a, b, x, y = pair.a, pair.b, pair.x, pair.y
    proof = Argument()
    at_once = pair.at(_mean(pair.first), 0)
    proof.equal("The mean JCT without a delay", at_once, (a + y * b * (2 - 1 / x)) / 2)
    rule = a - b * (2 * y - 1 - y / x) if criterion is None else criterion(a, b, x, y)
    proof.equal("What the delay a adds", a + b / 2 - at_once, rule / 2)
    same = sp.Symbol("xi", positive=True)
    proof.equal("At equal ratios", rule.subs({x: same, y: same}), a - 2 * (same - 1) * b)
    return proof.proof("Where x a > y b, sharing at once is best if and only if a >= b (2 y - 1 - y/x)", THEOREM_1)


def sign_test_errs(data: tuple[int, int, int, int] = (100, 1, 2, 2)) -> Proof:
    """Refute the sign test: the second piece falls, yet sharing at once is best; `data` are a, b, x and y."""
    a, b, x, y = (sp.Integer(each) for each in data)
    proof = Argument()
    proof.exceeds("The slope of the second piece is negative", 0, (x + 2 * y - 2 * x * y) / (2 * y))
    group = (data[0],), data[1], (data[2],), (data[3],)
    at_once, in_turn = (_mean(tuple(_ends(group, delay))) for delay in (0, a))
    proof.equal("The mean JCT at the delay 0", at_once, sp.Rational(103, 2))
    proof.equal("and at the delay a", in_turn, a + b / 2)
    proof.exceeds("is larger", in_turn, at_once)
    return proof.proof("The sign of the second slope does not decide: a = 100, b = 1, x = y = 2", AGAINST)


def group_candidates(shared: Callable[[Any, Any, Any], Any] | None = None) -> Proof:
    """Prove where the best delay over any number of running jobs lies.

    `shared` is another time that a running job takes beside the waiting one, of its ratio, its time, and the delay.
    """
    k, i, n, m = integers("k i n m")
    a, x, z, w = positive("a x z w")
    b, part, other = sp.symbols("b u v", positive=True)
    low, high = sp.symbols("p q", nonnegative=True)
    weight = sp.Symbol("lambda", nonnegative=True)
    delay = (1 - weight) * low + weight * high
    takes = shared or (lambda ratio, alone, after: ratio * (alone - after))

    def done(after: Any) -> Any:
        steps = (takes(x[k], a[k], after) - takes(x[k - 1], a[k - 1], after)) / z[k]
        return takes(x[1], a[1], after) / z[1] + sp.Sum(steps, (k, 2, n))

    def waiting_end(after: Any) -> Any:
        return after + takes(x[n], a[n], after) + z[n + 1] * (b - done(after))

    def later_end(after: Any) -> Any:
        end = waiting_end(after)
        return end + (a[i] - after) - (end - after) / x[i]

    proof = Argument()

    def linear(text: str, of: Callable[[Any], Any]) -> None:
        proof.equal(text, of(delay), (1 - weight) * of(low) + weight * of(high))

    linear("Linear in the delay: the end of a running job k beside W", lambda after: after + takes(x[k], a[k], after))
    linear("what W has done by the end of the n-th of them, z_k its ratio up to the k-th", done)
    linear("the end of W after the n-th, before the next", waiting_end)
    linear("and the end of a running job i after W", later_end)
    one, two, start, finish = nonnegative("d e s t")
    aside = proof.aside()
    aside.given("Job j ends d_j >= 0 after job i at p", start[2], start[1] + one[1])
    aside.given("and e_j >= 0 after it at q", finish[2], finish[1] + two[1])
    first, second = ((part * start[j] + other * finish[j]) / (part + other) for j in (1, 2))
    aside.at_least("so in between: jobs change order only where they end together", second, first)
    proof.include(aside)

    def total(of: Any) -> Any:
        return sp.Sum(w[k] * of[k], (k, 1, m + 1))

    mixed = sp.Sum(w[k] * (part * start[k] + other * finish[k]) / (part + other), (k, 1, m + 1))
    text = "A weighted sum of the ends is linear; so is the makespan, the end of one job all along"
    proof.equal(text, mixed, (part * total(start) + other * total(finish)) / (part + other))
    _least_at_an_end(proof, part, other)
    return proof.proof(
        "Over m running jobs, the best delay is 0, a time a_i, or one at which two jobs end together", GROUPS
    )


def group_jct_candidates(ratio: Any = None, loss: Any = None) -> Proof:
    """Prove that for completion times only common ends of running jobs matter; ratios are at least 1.

    `ratio` is another running ratio, and `loss` another c_l, of which W's speed loses by level.
    """
    k, n, m = integers("l L m")
    z, c = positive("z"), nonnegative("c") if loss is None else loss
    low, high, gap = nonnegative("f g h")  # min(T, E_l) at p and q, and how much more it is in between
    b, part, other = sp.symbols("b u v", positive=True)
    slack, more = sp.symbols("r eta", nonnegative=True)
    ratio = 1 + sp.Symbol("rho", nonnegative=True) if ratio is None else sp.sympify(ratio)
    alone, delay = sp.Symbol("a", positive=True), sp.symbols("p q", nonnegative=True)

    def mix(first: Any, second: Any) -> Any:
        return (part * first + other * second) / (part + other)

    def lost(of: Any) -> Any:
        return sp.Sum(c[k] * of(k), (k, 1, n))

    proof = Argument()
    text = "Each level c_l of speed that W loses while a ratio of z_(l+1) > z_l is beside it is at least 0"
    proof.at_least(text, 1 / z[k] - 1 / (z[k] + more), 0)
    ends = [ratio * (alone - each) for each in delay]
    text = "E_l, the last end beside W of a job with a ratio of z_l or more, is linear while jobs keep their order"
    proof.equal(text, ratio * (alone - mix(*delay)), mix(*ends))
    least = sp.symbols("m_p m_q", nonnegative=True)
    greater = mix(least[0] + slack, least[1] + more)
    proof.at_least("The smaller of two mixed values is at least the mix of the smaller ones", greater, mix(*least))
    # W takes the time T: T less the sum of c_l min(T, E_l) is b.
    times = [b + lost(low.__getitem__), b + lost(high.__getitem__)]
    text = "After the mix of the times that W takes at p and q, W has done at most b"
    done = mix(*times) - lost(lambda level: mix(low[level], high[level]) + gap[level])
    proof.equal(text, done, b - lost(gap.__getitem__))
    proof.at_least("so W takes no less than the mix", b, b - lost(gap.__getitem__))
    start, finish = sp.symbols("T_p T_q", positive=True)
    ended = mix(*delay) + mix(start, finish) + more
    proof.at_least("W ends no earlier than the mix of its ends", ended, mix(delay[0] + start, delay[1] + finish))
    rest = alone + (1 - 1 / ratio) * (mix(start, finish) + more)
    kept = mix(*(alone + (1 - 1 / ratio) * each for each in (start, finish)))
    text = "nor does a running job, which ends at a + (1 - 1/x) min(T, x (a - kappa)), T now that minimum"
    proof.at_least(text, rest, kept)
    w = nonnegative("w")
    total = sp.Sum(w[k] * gap[k], (k, 1, m + 1))
    proof.at_least("A weighted sum of the ends exceeds the mix by what the ends exceed theirs", total, 0)
    _least_at_an_end(proof, part, other)
    return proof.proof(
        "Over m running jobs with ratios of at least 1, the best delay for completion times is 0, a time a_i, or one "
        "at which two running jobs end together",
        GROUPS,
    )


def group_jct_needs_running_ends(ratio: Any = 10) -> Proof:
    """Refute the theorem for several running jobs: neither 0 nor the longest time is best; `ratio` is that of R_1."""
    group = (1, 100), 10, (ratio, Fraction(101, 100)), (ratio, Fraction(101, 100))
    proof = Argument()
    _best_inside(proof, group, _mean_of_all, 1, (0, 100))
    return proof.proof("The least mean JCT over two running jobs may be where the first one ends", AGAINST)


def group_jct_needs_common_ends(ratio: Any = Fraction(7, 5)) -> Proof:
    """Refute that 0 and the times of running jobs suffice for the mean JCT; `ratio` is that of R_1."""
    group = (2, Fraction(12, 5)), 10, (ratio, 1), (2, 2)
    proof = Argument()
    running = _ends(group, 1)[:2]
    proof.equal("At the delay 1 both running jobs end together", running[0], running[1])
    _best_inside(proof, group, _mean_of_all, 1, (0, 2, Fraction(12, 5)))
    return proof.proof("The least mean JCT over two running jobs may be where both end together", GROUPS)


def group_makespan_needs_common_ends(ratio: Any = 3) -> Proof:
    """Refute that 0 and the times of running jobs suffice for the makespan; `ratio` is that of R_1."""
    group = (3, 4), 3, (ratio, 1), (1, 2)
    proof = Argument()
    ends = _ends(group, Fraction(8, 5))
    proof.equal("At the delay 8/5 the first running job and the waiting one end together", ends[0], ends[2])
    proof.equal("at 29/5, the makespan", max(ends), sp.Rational(29, 5))
    _best_inside(proof, group, max, Fraction(8, 5), (0, 3, 4))
    return proof.proof("The least makespan over two running jobs may be where two jobs end together", GROUPS)


def _best_inside(
    proof: Argument, group: Group, objective: Callable[[Any], Any], inside: Any, others: tuple[Any, ...]
) -> None:
    best = objective(_ends(group, inside))
    for delay in others:
        text = f"The delay {delay} is worse than {inside}"
        proof.exceeds(text, objective(_ends(group, delay)), best)


def _mean_of_all(ends: list[Any]) -> Any:
    return sum(ends) / len(ends)


def _ends(group: Group, delay: Any) -> list[Any]:
    """Return the ends, by a simulation in exact fractions."""
    a, b, x, y = group
    exact = [Fraction(each) for each in a], Fraction(b), [Fraction(e) for e in x], [Fraction(e) for e in y]
    ends = simulated_ends(*exact, Fraction(str(delay)))
    return [sp.Rational(end.numerator, end.denominator) for end in ends]


def smaller_sub_batches_slow_pairs(x: Any = None) -> Proof:
    """Prove that a longer waiting job never lowers the mean JCT at a candidate; `x` is another running ratio."""
    x = 1 + sp.Symbol("r", nonnegative=True) if x is None else sp.sympify(x)
    pair = _pair(x=x)
    more = sp.Symbol("eta", nonnegative=True)
    at_once = [pair.at(_mean(ends), 0) for ends in (pair.first, pair.second)]
    in_turn = pair.a + pair.b / 2
    proof = Argument()
    for text, value in (("one after the other", in_turn), ("at once, W first", at_once[0]), ("R first", at_once[1])):
        grown = value.subs(pair.b, pair.b + more)
        proof.at_least(f"A W that takes eta >= 0 longer alone does not lower the mean JCT: {text}", grown, value)
    meet = x * pair.a / pair.y
    proof.equal(
        "and both pieces meet where both jobs end together",
        at_once[0].subs(pair.b, meet),
        at_once[1].subs(pair.b, meet),
    )
    return proof.proof(
        "A smaller sub-batch never lowers the best mean JCT of a pair whose ratios, x >= 1, do not depend on it",
        SUB_BATCHES,
    )
