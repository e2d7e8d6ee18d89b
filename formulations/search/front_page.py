"""The operator's page: a front as pictures and a table, in which points are chosen, compared and saved."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any
from urllib.parse import quote

from ..plotting import html
from ..plotting.svg import short
from ..text import figure_text
from .front_picture import Front, front_picture, picks_by_index
from .front_point import FrontPoint
from .wfq_config import WfqConfig

_LONGEST_NAME = 120
_LONGEST_VALUE = 2_000
_UNITS_S = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))


def front_page(front: Front, *, title: str = "Pareto front", evidence: Mapping[str, object] | None = None) -> str:
    """Return the page of a front as ASCII text; equal arguments give equal text.

    The page needs neither a network nor a library. Pictures, table and the files of configurations are in its HTML; a
    script adds the choice of points, their details and the comparison of two.

    Parameters
    ----------
    front : ParetoFront
    title : str
    evidence : mapping of str to object, optional
        Facts of the search by name, such as backend, seed, evaluations and wall time.
    """
    picks = picks_by_index(front)
    pairs = list(combinations(range(len(front.objectives)), 2))
    return html.render(
        "formulations/search/front_page.html",
        title=title,
        lead=_lead(front, evidence or {}),
        tiles=_tiles(front),
        pairs=[f"{front.objectives[x]} and {front.objectives[y]}" for x, y in pairs],
        pictures=[
            (pair, int(held_out), html.picture(front_picture(front, *pair_of, held_out=held_out)))
            for pair, pair_of in enumerate(pairs)
            for held_out in ((False,) if front.held_out is None else (False, True))
        ],
        picks=[(name, point.index) for name, point in front.named_picks.items()],
        heads=_heads(front),
        rows=[_row(front, index, picks.get(index, [])) for index in range(len(front))],
        data=_data(front, picks),
    )


def size_text(size_s: float) -> str:
    """Return a size on one GPU in its two largest units, such as 45 s, 2 h 30 min or 3 d 4 h."""
    if not math.isfinite(size_s):
        return "\N{INFINITY}"
    for (name, unit), (smaller, part) in pairwise(_UNITS_S):
        parts = round(size_s / part)
        if parts * part >= unit:
            whole, left = divmod(parts, round(unit / part))
            return f"{whole:,} {name} {left} {smaller}" if left else f"{whole:,} {name}"
    return f"{size_s:.3g} s"


def _lead(front: Front, evidence: Mapping[str, object]) -> str:
    facts = [f"{name} {short(_value(value), _LONGEST_NAME)}" for name, value in evidence.items()]
    return (
        f"{len(front):,} configuration{'' if len(front) == 1 else 's'} of which none is at least as good as another one"
        f" in {_listed([str(each) for each in front.objectives])}; less is better."
        + (f" Search: {', '.join(facts)}." if facts else "")
    )


def _tiles(front: Front) -> list[tuple[str, str, str]]:
    """Return the headline figures as (name, figure, explanation)."""
    tiles = [
        ("Hypervolume", f"{front.hypervolume:.4f}", "share of the box from ideal to reference"),
        ("Points", f"{len(front):,}", "held-out scores given" if front.held_out is not None else "no held-out scores"),
    ]
    for column, objective in enumerate(front.objectives):
        scores = front.scores[:, column]
        least, most = objective.text(float(scores.min())), objective.text(float(scores.max()))
        tiles.append((f"Least {short(str(objective), _LONGEST_NAME)}", least, f"at most {most} on the front"))
    return tiles


def _heads(front: Front) -> list[tuple[str, bool]]:
    """Return the headings of the table, and whether it can be sorted by them."""
    names = [short(str(each), _LONGEST_NAME) for each in front.objectives]
    held_out = [f"{name} held out" for name in names] if front.held_out is not None else []
    variables = [short(name, _LONGEST_NAME) for name in front.variables]
    return [("point", True), ("pick", False), *((name, True) for name in (*names, *held_out, *variables))]


def _row(front: Front, index: int, picks: Sequence[str]) -> dict[str, Any]:
    """Return a row of the table: cells as text, and the configuration's file as an address that contains it."""
    point = front[index]
    scored = (point.scores, point.held_out) if point.held_out else (point.scores,)
    return {
        "cells": [
            str(index),
            ", ".join(picks),
            *(each.text(score) for some in scored for each, score in zip(front.objectives, some.values(), strict=True)),
            *(figure_text(value) for value in point.vector.values()),
        ],
        "name": f"{'wfq' if isinstance(point.configuration, WfqConfig) else 'point'}-{index}.json",
        "address": "data:application/json;charset=utf-8," + quote(point.to_json(), safe=""),
    }


def _data(front: Front, picks: Mapping[int, Sequence[str]]) -> dict[str, Any]:
    """Return what the page's script reads; numbers serve sorting and differences, text is shown."""
    return {
        "objectives": [short(str(each), _LONGEST_NAME) for each in front.objectives],
        "variables": [short(name, _LONGEST_NAME) for name in front.variables],
        "points": [_point_data(front, front[index], picks.get(index, [])) for index in range(len(front))],
    }


def _point_data(front: Front, point: FrontPoint, picks: Sequence[str]) -> dict[str, Any]:
    def texts(scores: Mapping[str, float]) -> list[str]:
        return [each.text(score) for each, score in zip(front.objectives, scores.values(), strict=False)]

    facts, queues = _configuration(point)
    return {
        "picks": list(picks),
        "scores": list(point.scores.values()),
        "score_texts": texts(point.scores),
        "held_out": list(point.held_out.values()),
        "held_out_texts": texts(point.held_out),
        "vector": list(point.vector.values()),
        "vector_texts": [figure_text(value) for value in point.vector.values()],
        "facts": facts,
        "queues": queues,
    }


def _configuration(point: FrontPoint) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Return a configuration as facts (name, value), and its queues on each GPU type, if it has queues."""
    config = point.configuration
    if isinstance(config, WfqConfig):
        facts = [["queues", str(config.queues)], ["zeta", _value(config.zeta)], ["delta", _value(config.delta)]]
        return facts, [
            {"gpu_type": short(name, _LONGEST_NAME), "queues": _queues(config, name or None)}
            for name in config.gpu_types or ("",)
        ]
    content = json.loads(point.to_json())
    fields = content if isinstance(content, dict) else {"configuration": content}
    return [[short(str(name), _LONGEST_NAME), _value(value)] for name, value in fields.items()], []


def _queues(config: WfqConfig, gpu_type: str | None) -> list[dict[str, Any]]:
    """Return sizes and weight of each queue as text, and the weight as a share."""
    least = [size_text(threshold) for threshold in config.thresholds[:-1]]
    sizes = [f"up to {size}" for size in least] + [f"above {least[-1]}" if least else "all sizes"]
    return [
        {"sizes": size, "weight": str(weight), "share": round(float(weight), 9), "percent": f"{float(weight):.1%}"}
        for size, weight in zip(sizes, config.weights_of(gpu_type), strict=True)
    ]


def _value(value: object) -> str:
    """Return a value of a configuration as text."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return figure_text(float(value), 6)
    return short(value if isinstance(value, str) else json.dumps(value, default=str), _LONGEST_VALUE)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
