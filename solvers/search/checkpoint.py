"""File of a search's evaluations, from which a search that was ended goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_reals
from ...formulations.errors import InvalidInput
from ...formulations.files import write_text
from ...formulations.search.problem import SearchProblem
from .archive import Archive

FORMAT = "equipoise search 1"


class Checkpoint:
    """The evaluations of one search in a JSON file, which always appears whole.

    A search resumes by replay: it is run again from its seed, and takes scores from the file while they are there, so
    that it ends as an unbroken one. The file names the search: its problem, method, seed and options. The evaluator is
    not in it; that it is the same is for the caller to see to.

    Parameters
    ----------
    field : str
        The option, for errors.
    path : path-like
    search : mapping
        Description of the search as JSON: values by field. A file of another one is refused.

    Attributes
    ----------
    known : dict of bytes to ndarray of float, shape (m,)
        Scores from the file by vector, as `Archive.key` names it.
    notes : list of str

    Raises
    ------
    InvalidInput
        If the file cannot be written or read, is damaged, or belongs to another search.
    """

    def __init__(self, field: str, path: Any, search: Mapping[str, Any], width: int) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InvalidInput(field, path, "must be the path of a file")
        self.notes: list[str] = []
        self.known: dict[bytes, Floats] = {}
        self._field, self._path, self._width = field, Path(path), width
        # What JSON makes of it, to compare it with what is read.
        self._search: dict[str, Any] = json.loads(json.dumps(dict(search)))
        if self._path.exists():
            self._read()
        try:
            self._write(self.known)
        except OSError as error:
            raise InvalidInput(field, str(path), f"cannot be written: {error.strerror or error}") from None

    def save(self, archive: Archive) -> None:
        """Write all evaluations so far; if that fails, the search goes on, and a note says so."""
        if len(archive) <= len(self.known):  # the file has more until the replay is done
            return
        try:
            self._write(archive.scores)
        except OSError as error:
            note = f"the checkpoint {self._path} could not be written: {error.strerror or error}"
            if note not in self.notes:
                self.notes.append(note)

    def _write(self, scores: Mapping[bytes, Floats]) -> None:
        evaluations = [
            [np.frombuffer(key).tolist(), None if np.isnan(found).any() else found.tolist()]
            for key, found in scores.items()
        ]
        # JSON has no nan: an infeasible vector has no scores.
        write_text(self._path, json.dumps({"format": FORMAT, "search": self._search, "evaluations": evaluations}))

    def _read(self) -> None:
        if not self._path.is_file():
            raise self._refused("is no regular file")
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            raise self._refused(f"cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise self._refused(f"is damaged ({error}): delete it to begin anew") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise self._refused("is no checkpoint of a search")
        found = content.get("search")
        if not isinstance(found, dict):
            raise self._refused("is damaged: it names no search")
        for name, own in self._search.items():
            if found.get(name) != own:
                why = f"the checkpoint {self._path} is of a search with {name} {_short(found.get(name))}"
                raise InvalidInput(name, _short(own), why)
        length = len(self._search["variables"])
        evaluations = content.get("evaluations")
        if not isinstance(evaluations, list):
            raise self._refused("is damaged: it has no evaluations")
        for row, evaluation in enumerate(evaluations):
            try:
                vector, scores = evaluation
                found_scores = np.full(self._width, np.nan) if scores is None else self._numbers(scores, self._width)
                self.known[Archive.key(self._numbers(vector, length))] = found_scores
            except (TypeError, ValueError, InvalidInput) as error:
                raise self._refused(f"is damaged: evaluation {row} cannot be read ({error})") from None
        if self.known:
            self.notes.append(f"{len(self.known)} evaluations were read from {self._path}")

    def _numbers(self, values: Any, count: int) -> Floats:
        return as_reals(self._field, values, shape=(count,))

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput(self._field, str(self._path), why)


def description(problem: SearchProblem, **search: Any) -> dict[str, Any]:
    """Return what names a search in its checkpoint: the problem without its evaluator, and what is given here."""
    return {
        "variables": [[each.name, float(each.lower), float(each.upper)] for each in problem.variables],
        "objectives": [str(each) for each in problem.objectives],
        "ideal": problem.ideal.tolist(),
        "reference": problem.reference.tolist(),
        "starts": {name: vector.tolist() for name, vector in problem.starts.items()},
        **search,
    }


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
