"""What the first sentences of a report are made from: the headline metric, other changes, and what limits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedlab.render.cells import enumeration, plural
from schedlab.render.grid import percent, size
from schedlab.render.together import together
from schedlab.statistics import SMALLEST_N

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement
    from schedlab.validity import Validated

NAMED = 3
"""How many further metrics are named in each direction; the others are counted."""

Found = tuple["MetricComparison", "Judgement"]


def headline_metric(comparison: Comparison, a: str, b: str) -> Found | None:
    """What a pair is judged by first: of the declared metrics, or of all, the first that changed, else the first."""
    found = [(m, j) for m in comparison.metrics for j in m.comparisons if (j.a, j.b) == (a, b)]
    asked = [(m, j) for m, j in found if m.metric.declared] or [
        (m, j) for m, j in found if m.metric.better != "neither"
    ]
    asked = asked or found
    return next((one for one in asked if one[1].effect != "none"), asked[0] if asked else None)


def too_few(judgements: Sequence[Judgement]) -> str:
    """How many metrics could not be judged because there are too few seeds; empty if all could be."""
    open_ones = [j for j in judgements if not _could_be_judged(j)]
    if not open_ones:
        return ""
    pairs = max(j.difference.pairs for j in open_ones)
    why = "no seed has a value for both variants"
    if pairs:
        why = f"{plural(pairs, 'seed')}, at least {SMALLEST_N} are needed"
    if len(open_ones) == len(judgements):
        return f"No metric could be judged: {why}."
    return f"{len(open_ones)} of {len(judgements)} metrics could not be judged: {why}."


def _could_be_judged(j: Judgement) -> bool:
    return j.settled or j.difference.pairs >= SMALLEST_N


def judged_together(comparison: Comparison, a: str, b: str) -> str:
    """The changes that are not certain when all metrics are tested together."""
    found = together(comparison, a, b)
    if found is None or not found.lost:
        return ""
    what = f"for all {found.tested} metrics together (Holm)"
    if found.fewest:
        return f"No change is certain {what}: that needs at least {found.fewest} seeds."
    if len(found.lost) == len(found.found):
        return f"No change is certain {what}."
    more = len(found.lost) - NAMED
    names = f"{', '.join(found.lost[:NAMED])} and {more} more" if more > 0 else enumeration(found.lost)
    return f"Not certain {what}: {names}."


def elsewhere(b: str, head: Judgement, others: Sequence[Found]) -> str:
    """In which other metrics `b` is better and worse, the price of the headline first."""
    better, worse = (_named([one for one in others if one[1].effect == effect]) for effect in ("better", "worse"))
    if not better and not worse:
        judged = all(_could_be_judged(j) for _, j in others)
        return "No other metric that has a better direction changed." if judged else ""
    if head.effect == "better":
        return _both(b, "In exchange, ", "worse", worse, "also better", better)
    if head.effect == "worse":
        return _both(b, "In exchange, ", "better", better, "also worse", worse)
    return _both(b, "Elsewhere ", "better", better, "worse", worse)


def _both(b: str, begin: str, how: str, found: str, other: str, also: str) -> str:
    """How `b` differs in the metrics `found`, and in those that are `also` named."""
    if not found:
        return f"{b} is {other} in {also}."
    return f"{begin}{b} is {how} in {found}{f'; it is {other} in {also}' if also else ''}."


def _named(found: Sequence[Found]) -> str:
    shown = [f"{m.metric.name} ({_amount(j)})" for m, j in found[:NAMED]]
    more = len(found) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return enumeration(shown)


def _amount(j: Judgement) -> str:
    d = j.difference
    return percent(d.estimate) if d.percent else f"{d.estimate:+.4g}"


def model_sentence(model: Validated | None, more: str = "") -> str:
    """How far simulated changes of a family have been off, or that this is not known here; `more` ends the sentence."""
    if model is None:
        return ""
    error = model.error
    if error is None:
        return f"The simulator was never validated for {model.family}, so confirm this on a real kernel."
    if not model.holds:
        elsewhere = f"it was up to {size(error.error_pct)} on {error.machine}"
        return f"The model error of {model.family} is not known for {model.unknown} ({elsewhere}){more}."
    return f"Simulated changes of {model.family} have been off by up to {size(error.error_pct)}{more}."
