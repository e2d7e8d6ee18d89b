"""Theorems of gradient accumulation: a batch in several sub-batches."""

from __future__ import annotations

from typing import Any

from .proof import Argument, Proof
from .symbols import integers, sp

SOURCE = "SJF-BSBF, Eq. 7"


def equal_sub_batches_are_the_full_batch(size: Any = None) -> Proof:
    """Prove that the mean over s equal sub-batches is that over the batch; `size` is what each divides by."""
    k, i, s, n = integers("k i s n")
    g = sp.IndexedBase("g", real=True)
    size = n if size is None else size(k)
    proof = Argument()
    by_sub_batch = sp.Sum(sp.Sum(g[k, i], (i, 1, n)) / size, (k, 1, s)) / s
    whole = sp.Sum(g[k, i], (i, 1, n), (k, 1, s)) / (s * n)
    proof.equal("The mean of the means of s sub-batches of n samples", by_sub_batch, whole)
    return proof.proof("Gradients accumulated over equal sub-batches are the gradient of the full batch", SOURCE)


def unequal_sub_batches_are_not(gradients: tuple[int, int, int] = (0, 0, 1)) -> Proof:
    """Refute the same of unequal sub-batches: two samples, and one; `gradients` are those of the three samples."""
    one, two, three = (sp.Integer(each) for each in gradients)
    proof = Argument()
    proof.differ(
        "The mean of the means of sub-batches of 2 and 1", ((one + two) / 2 + three) / 2, (one + two + three) / 3
    )
    return proof.proof("Gradients accumulated over unequal sub-batches differ from that of the full batch", SOURCE)


def smaller_sub_batches_take_longer(excess: Any = None) -> Proof:
    """Prove that more sub-batches never shorten an iteration; `excess` is what delta exceeds 1 by."""
    alpha, beta = sp.symbols("alpha beta", nonnegative=True)
    batch, s, u, ratio = sp.symbols("B s u r", positive=True)
    excess = sp.Symbol("d", nonnegative=True) if excess is None else sp.sympify(excess)
    delta = 1 + excess
    proof = Argument()
    comm = sp.Symbol("c", positive=True)
    last = u * (1 + (comm / u) ** delta) ** (1 / delta)
    text = "The last sub-batch takes f(u) = (u^delta + c^delta)^(1/delta), u = t_comp(B/s), c = t_comm"
    proof.equal(text, last**delta, u**delta + comm**delta)
    rest = 1 + ratio**delta
    proof.equal("Its slope, for c = r u", sp.diff(last, u).subs(comm, ratio * u), rest ** (1 / delta - 1))
    proof.at_least("The logarithm of the slope is at most 0", 0, -excess / delta * sp.log(rest))
    short = sp.Symbol("theta", nonnegative=True)
    takes = alpha + beta * batch / s
    text = "The slope is 1 - theta, theta >= 0, so t_iter = (s - 1) u + f(u) has in s the slope"
    by_s = takes + (s - 1) * sp.diff(takes, s) + (1 - short) * sp.diff(takes, s)
    proof.equal(text, by_s, alpha + beta * batch * short / s**2)
    proof.at_least("which is never negative", alpha + beta * batch * short / s**2, 0)
    return proof.proof("A smaller sub-batch never shortens an iteration of a job alone, for one delta >= 1", SOURCE)
