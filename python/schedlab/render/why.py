"""Why the headline metric differs: what the slowest samples of one variant have more of, as a clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab.render.amounts import NAMED, names, share, time
from schedlab.render.causes import SHORT, slowest
from schedlab.render.summary import headline_metric
from schedlab.tail import PARTS, Tail

if TYPE_CHECKING:
    from schedlab.comparison import Comparison

SLOWEST_FROM = 90.0
"""Percentiles from here on, and the maximum, are explained by the slowest samples."""
SMALL = 0.05
"""A part of the difference below this share is not named."""


def explained_by_slowest(comparison: Comparison, a: str, b: str, metric: str) -> bool:
    """Whether the headline of a pair changed and is a high percentile, or the maximum, of these samples."""
    found = headline_metric(comparison, a, b)
    if found is None or found[1].effect == "none" or found[0].metric.of != metric:
        return False
    stat = found[0].metric.stat or ""
    return stat == "max" or (stat[:1] == "p" and float(stat[1:]) >= SLOWEST_FROM)


def clause(a: Tail, b: Tail) -> str:
    """Which parts make the slowest samples of one variant longer than those of the other; empty if nothing does."""
    if not a.slow.count or not b.slow.count:
        return ""
    longer, shorter = (b, a) if _mean(b) > _mean(a) else (a, b)
    extra = _mean(longer) - _mean(shorter)
    more = {part: longer.slow.mean(part) - shorter.slow.mean(part) for part in PARTS}
    parts = sorted((part for part in PARTS if more[part] > SMALL * extra), key=lambda part: -more[part])[:NAMED]
    if not parts or extra <= 0:
        return ""
    named = [f"{share(more[part], extra)} of that is time {SHORT[part]}{_behind(longer, part)}" for part in parts]
    return f"{slowest(longer)} of {longer.variant} take {time(extra)} longer on average: {', '.join(named)}."


def _behind(tail: Tail, part: str) -> str:
    """The tasks that ran instead."""
    p = tail.slow.parts
    return f" ({names(p.before, p.parts[part], only=True)})" if part == "behind" and p.before else ""


def _mean(tail: Tail) -> float:
    return tail.slow.parts.ns / tail.slow.count
