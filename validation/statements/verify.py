"""`verify`: prove the theorems, and check the other statements on random problems; one verdict for each statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ..theorems.catalogue import THEOREMS
from ..theorems.proof import ProofFailed
from .examples import Failure, Kind, kinds_of, smallest_failure
from .sharing import SharingTally, sharing_statements

#: The subjects that can be verified, in the order of verification.
SUBJECTS = ("theorems", "market", "stochastic", "window", "gpu-sharing")
MOST_EXAMPLES = 100_000
# Shrinking solves a problem hundreds of times; further failures are shown as they were drawn.
MOST_SHRUNK = 3

Outcome = Literal["proved", "held", "reported", "fails", "not checked", "skipped"]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome for one statement.

    The subject is one of :data:`SUBJECTS`. The source is a paper, theorem or equation; "against" it where the statement
    refutes it. The verdict is "proved" symbolically; "held" on all examples; "reported" for a statement that is not
    promised, on however many examples it held; "fails" if a promised statement does not hold or a proof does not close;
    "not checked" where no installed solver solves such problems; "skipped" for one that is only reported, without
    data.

    There are 0 examples for proofs. The witness is the place and size of a violation, or the reason why a proof does
    not close, and the problem is that of the witness, as code that makes it again; "" if there is none. The steps are a
    proof, line by line.
    """

    subject: str
    statement: str
    source: str
    verdict: Outcome
    examples: int = 0
    held: int = 0
    witness: str = ""
    problem: str = ""
    steps: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether a promised statement does not hold."""
        return self.verdict == "fails"

    @property
    def text(self) -> str:
        """The verdict as text: "proved", "held on 25 examples", "reported: held on 61 of 100"."""
        if self.verdict == "held":
            return f"held on {self.examples} example{'' if self.examples == 1 else 's'}"
        if self.verdict == "reported":
            return f"reported: held on {self.held} of {self.examples}"
        if self.verdict == "fails" and self.examples:
            return f"fails on {self.examples - self.held} of {self.examples}"
        return self.verdict


@dataclass
class _Tally:
    """One statement over the examples so far."""

    subject: str
    source: str
    promised: bool
    examples: int = 0
    held: int = 0
    failure: Failure | None = None


def verify(
    subjects: Sequence[str] = (),
    *,
    examples: int = 100,
    seed: int = 0,
    interference: Path | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Verdict, ...]:
    """Verify the statements of the theory.

    Parameters
    ----------
    subjects : sequence of {"theorems", "market", "stochastic", "window", "gpu-sharing"}
        The default is all of them.
    examples : int
        The number of random problems of each kind (markets: static, and of each of four families); at least 1.
    seed : int
        The same seed draws the same problems.
    interference : Path, optional
        A table of measured pairs for gpu-sharing; see
        :func:`~equipoise.validation.instances.sharing.measured_ratios`.
    on_progress : callable, optional
        Called with the number of proofs and problems that are done, and with their total.

    Returns
    -------
    tuple of Verdict
        In the order of :data:`SUBJECTS`; within a subject, failures first.

    Raises
    ------
    InvalidInput
        For an unknown subject, or a number out of range.
    TheoryMissing
        If sympy, for theorems, or hypothesis, for the others, is not installed.
    """
    examples = as_integer("examples", examples, minimum=1, maximum=MOST_EXAMPLES)
    seed = as_integer("seed", seed, minimum=0)
    for index, subject in enumerate(subjects):
        if subject not in SUBJECTS:
            raise InvalidInput("subjects", subject, f"must be one of {', '.join(SUBJECTS)}", index=index)
    chosen = [subject for subject in SUBJECTS if not subjects or subject in subjects]
    kinds = [kind for subject in chosen for kind in kinds_of(subject)]
    # All are drawn before any is solved: what a solver imports must not change what is drawn.
    drawn = [(kind, kind.draw(examples, seed)) for kind in kinds]
    sharing = sharing_statements(examples, seed, interference) if "gpu-sharing" in chosen else []
    total = len(THEOREMS) * ("theorems" in chosen) + sum(len(problems) for _, problems in drawn) + len(sharing)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    if on_progress is not None:
        on_progress(0, total)
    verdicts = list(_proofs(step)) if "theorems" in chosen else []
    tallies: dict[tuple[str, str], _Tally] = {}
    for kind, problems in drawn:
        for problem in problems:
            _count(tallies, kind, problem)
            step()
    shrunk = 0
    for (_, statement), tally in tallies.items():
        if tally.failure is not None and tally.examples and tally.promised and shrunk < MOST_SHRUNK:
            shrunk += 1
            tally.failure = smallest_failure(tally.failure, statement, seed)
        verdicts.append(_verdict(statement, tally))
    for check in sharing:
        verdicts.append(_sharing_verdict(check()))
        step()
    return tuple(sorted(verdicts, key=lambda verdict: (SUBJECTS.index(verdict.subject), not verdict.fails)))


def _proofs(step: Callable[[], None]) -> list[Verdict]:
    verdicts = []
    for theorem in THEOREMS:
        try:
            proof = theorem()
        except ProofFailed as failed:
            name, witness = theorem.__name__.replace("_", " "), str(failed)
            verdict = Verdict(subject="theorems", statement=name, source="", verdict="fails", witness=witness)
        else:
            statement, source, steps = proof.statement, proof.source, tuple(str(proof).splitlines()[2:])
            verdict = Verdict(subject="theorems", statement=statement, source=source, verdict="proved", steps=steps)
        verdicts.append(verdict)
        step()
    return verdicts


def _count(tallies: dict[tuple[str, str], _Tally], kind: Kind, problem: Any) -> None:
    """Check a problem, and add to the tally of each statement."""
    for checked in kind.check(problem):
        result = checked.result
        place = (kind.subject, result.statement)
        tally = tallies.setdefault(place, _Tally(kind.subject, result.source, checked.promised))
        if checked.skipped:
            tally.failure = tally.failure or Failure(kind, None, f"{kind.name}: {result.witness}")
            continue
        tally.examples += 1
        tally.held += result.holds
        if not result.holds:
            failure = Failure(kind, problem, checked.violation)
            # The shortest to read.
            if tally.failure is None or len(failure.code) < len(tally.failure.code):
                tally.failure = failure


def _sharing_verdict(tally: SharingTally) -> Verdict:
    outcome: Outcome = "held" if tally.promised else "reported"
    if not tally.examples:
        outcome = "not checked" if tally.promised else "skipped"
    elif tally.promised and tally.held < tally.examples:
        outcome = "fails"
    return Verdict(
        subject="gpu-sharing", statement=tally.statement, source=tally.source, verdict=outcome,
        examples=tally.examples, held=tally.held, witness=tally.witness, problem=tally.problem,
    )  # fmt: skip


def _verdict(statement: str, tally: _Tally) -> Verdict:
    outcome: Outcome = "held"
    if not tally.examples:
        outcome = "not checked"
    elif not tally.promised:
        outcome = "reported"
    elif tally.held < tally.examples:
        outcome = "fails"
    witness, problem = (tally.failure.violation, tally.failure.code) if tally.failure is not None else ("", "")
    return Verdict(
        subject=tally.subject, statement=statement, source=tally.source, verdict=outcome, examples=tally.examples,
        held=tally.held, witness=witness, problem=problem,
    )  # fmt: skip
