"""An ablation as a table and as a JSON document."""

from __future__ import annotations

import textwrap
from typing import Any

from schedlab.ablation import Ablation, Part
from schedlab.engine import ARMS
from schedlab.render.cells import machine_name, plural
from schedlab.render.grid import NOTHING, WIDTH, columns, percent, value
from schedlab.statistics import SMALLEST_N, Interval

SCHEMA = "schedlab.ablate/1"


def document(x: Ablation) -> dict[str, Any]:
    """Everything that was found, largest share first."""
    return {
        "schema": SCHEMA,
        "scenario": x.scenario.name,
        "machine": x.scenario.machine.name,
        "arm": "sim",
        "arm_word": ARMS["sim"],
        "a": x.a,
        "b": x.b,
        "metric": x.metric.name,
        "unit": "%" if x.percent else x.metric.unit,
        "seeds": list(x.seeds),
        "total": {"verdict": x.total.verdict, **_interval(x.effect)},
        "mechanisms": [_part(p) for p in x.parts],
        "interaction": {"share": x.interaction_share, **_interval(x.interaction)} if x.interaction else None,
        "unattributed": {"share": x.unattributed_share, **_interval(x.unattributed)} if x.unattributed else None,
        "failures": list(x.failures),
    }


def _part(p: Part) -> dict[str, Any]:
    return {
        "name": p.name,
        "kind": p.kind,
        "function": p.function,
        "since": p.since,
        "within": p.within,
        "a": p.a,
        "b": p.b,
        "share": p.share,
        "share_ci": [p.share_range.low, p.share_range.high] if p.share_range else None,
        "depends": _interval(p.depends) if p.depends else None,
        **_interval(p.effect),
        "alone": {"verdict": p.alone.verdict, "delta_pct": p.alone.difference.estimate},
        "missing": {"verdict": p.missing.verdict, "delta_pct": p.missing.difference.estimate},
        "inert": p.inert,
    }


def _interval(i: Interval | None) -> dict[str, Any]:
    return {"effect": i.estimate, "ci": [i.low, i.high]} if i else {"effect": None, "ci": None}


def text(x: Ablation) -> str:
    """The whole effect, then a line per mechanism, then what they do together."""
    s = x.scenario
    head = [
        f"{s.name}: {ARMS['sim']} {machine_name(s)}, {plural(s.machine.cpus, 'CPU')}, {plural(len(x.seeds), 'seed')}",
        f"{x.metric.name}: {x.b} against {x.a}: {_shown(x, x.effect)}, {x.total.verdict}",
    ]
    if x.interaction_share is None:
        fewer = len(x.seeds) < SMALLEST_N
        why = f"at least {SMALLEST_N} seeds are needed" if fewer else "the effect itself is not certain"
        head.append(f"no shares: {why}" if all(p.effect for p in x.parts) else "no shares: a run failed")
    rows = [["mechanism", f"{x.a} with {x.b}'s", f"{x.b} with {x.a}'s", "mean of both", "share"]]
    for p in _ordered([p for p in x.parts if not p.inert]):
        without = p.missing.difference
        rows.append(
            [
                f"  {p.name}" if p.within else p.name,
                percent(p.alone.difference.estimate),
                # What taking it away does: the other direction of what it does.
                percent(_reverse(without.estimate) if without.percent else without.estimate),
                _shown(x, p.effect),
                f"({_ranged(p)})" if p.within else _ranged(p),
            ]
        )
    rows.append(["together beyond each alone", "", "", _shown(x, x.interaction), _share(x.interaction_share)])
    if x.unattributed and abs(x.unattributed.estimate) > 1e-9:
        rows.append(["not attributed", "", "", _shown(x, x.unattributed), _share(x.unattributed_share)])
    lines = columns(rows, "<>>>>")
    if any(p.within for p in x.parts):
        rest_note = [_filled("in brackets: a part of the bundle above that only one of the two has, flipped there")]
    else:
        rest_note = []
    if any(p.effect for p in x.parts if not p.inert):
        rest_note.append(_filled(_mean(x)))
    rest_note += [_filled(f"{p.name}: {p.a} in {x.a}, {p.b} in {x.b}") for p in x.parts if not p.inert]
    inert = [p.name for p in x.parts if p.inert]
    tail = [*rest_note, *([_filled(f"without any effect here: {', '.join(inert)}")] if inert else [])]
    tail += [f"failed: {words}" for words in x.failures[:3]]
    return "\n".join([*map(_filled, head), "", *lines, *([""] if tail else []), *tail])


def _mean(x: Ablation) -> str:
    """What the column is: an estimate of its own, so no mean of the two numbers beside it."""
    scale = "geometric mean" if x.percent else "mean"
    return (
        f"mean of both: estimated from the {scale} of the two effects in each seed (pseudo-median, Hodges-Lehmann), so "
        "not the mean of the two columns before it"
    )


def _filled(words: str) -> str:
    """The words in lines of at most `WIDTH` columns."""
    return textwrap.fill(words, WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _ordered(parts: list[Part]) -> list[Part]:
    """The rows with the parts of a bundle after the bundle itself."""
    return [q for p in parts if p.within is None for q in [p, *(r for r in parts if r.within == p.name)]]


def _reverse(change: float | None) -> float | None:
    return None if change is None or change <= -100 else 100 * (1 / (1 + change / 100) - 1)


def _ranged(p: Part) -> str:
    if p.share_range is None:
        return _share(p.share)
    return f"{_share(p.share)} [{_share(p.share_range.low)}, {_share(p.share_range.high)}]"


def _share(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f}%"


def _shown(x: Ablation, i: Interval | None) -> str:
    if i is None:
        return NOTHING
    one = percent if x.percent else value
    if len(x.seeds) < SMALLEST_N:
        return one(i.estimate)
    return f"{one(i.estimate)} [{one(i.low)}, {one(i.high)}]"
