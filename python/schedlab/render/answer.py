"""The answer of a comparison in four short statements: which variant, why, how sure, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from schedlab.render.cells import interval, plural
from schedlab.render.grid import percent, value
from schedlab.render.summary import elsewhere, headline_metric, judged_together, too_few
from schedlab.validity.checked import UNKNOWN, Evidence
from schedlab.verdicts import DETERMINISTIC

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement


def answer(comparison: Comparison, a: str, b: str) -> Iterator[tuple[str, str]]:
    """A label and a sentence for each statement about one pair of variants; the first one has no label."""
    head = headline_metric(comparison, a, b)
    if head is None:
        yield "", f"{b} and {a} have no metric in common."
        return
    others = [(m, j) for m in comparison.metrics for j in m.comparisons if (j.a, j.b) == (a, b) and j is not head[1]]
    if same := comparison.same.get((a, b)):
        yield "", same
    yield "", headline(comparison, *head)
    for caveat in (regrouped(comparison, *head), comparison.defaults.get((a, b), "")):
        if caveat:
            yield "note", caveat
    if why := comparison.causes.get((a, b)):
        yield "why", why
    if sure := how_sure(comparison, *head):
        yield "sure", sure
    if head[1].effect in ("better", "worse"):
        if cost := elsewhere(b, head[1], others):
            yield "but" if cost.startswith("In exchange") else "also", cost.removeprefix("In exchange, ")
    elif also := elsewhere(b, head[1], others):
        yield "also", also.removeprefix("Elsewhere ")
    for caveat in (too_few([head[1], *(j for _, j in others)]), judged_together(comparison, a, b)):
        if caveat:
            yield "note", caveat


LABELS = {"why": "Why: ", "sure": "How sure: ", "but": "But ", "also": "", "note": "", "": ""}
"""How a statement begins in running text."""


def sentences(comparison: Comparison) -> list[str]:
    """One paragraph for each pair of variants; none for a scenario with a single variant."""
    return [" ".join(LABELS[label] + text for label, text in answer(comparison, a, b)) for a, b in comparison.pairs]


def headline(comparison: Comparison, m: MetricComparison, j: Judgement) -> str:
    """Which variant is better, by how much, and the interval."""
    name, d, unit = m.metric.name, j.difference, m.metric.unit
    if d.estimate is None:
        return f"{name} cannot be compared: {j.reason}."
    ran = "in every seed" if j.verdict == DETERMINISTIC else plural(d.pairs, "seed")
    sure = (
        f"95% interval {interval(j)}, {ran}, {comparison.arm_word}" if d.interval else f"{ran}, {comparison.arm_word}"
    )
    if j.effect in ("better", "worse"):
        winner = j.b if j.effect == "better" else j.a
        return f"{winner} is better: {name} of {j.b} is {_amount(j, unit)} than that of {j.a} ({sure})."
    if j.effect == "changed":
        return f"{name} of {j.b} is {_amount(j, unit)} than that of {j.a}; neither direction is better ({sure})."
    if j.verdict == "equivalent":
        margin = f"they differ by less than the margin of {m.metric.margin_pct:g}%"
        return f"{j.a} and {j.b} are equivalent in {name}: {margin} ({sure})."
    if j.verdict == DETERMINISTIC:
        return f"{j.a} and {j.b} do not differ in {name} by more than the margin ({sure})."
    return f"No difference between {j.a} and {j.b} can be shown in {name} ({sure})."


def regrouped(comparison: Comparison, m: MetricComparison, j: Judgement) -> str:
    """What the other grouping of the tasks says about the headline."""
    found = comparison.robustness.regrouped if comparison.robustness else None
    return found.sentence(m.metric, j) if found else ""


def how_sure(comparison: Comparison, m: MetricComparison, j: Judgement) -> str:
    """How far a simulated change of this kind and size can be trusted, in one word with one number."""
    if comparison.arm != "sim" or j.effect == "none":
        return ""
    if m.model is None or j.evidence is None or not j.evidence.checks:
        return "unknown: no such change was ever checked on a real kernel."
    where = f"; none of them with {m.model.unknown}" if m.model.error and m.model.missing else ""
    return f"{_checked(j.evidence)}{where}."


def _checked(found: Evidence) -> str:
    checks = f"{found.right} of {plural(found.checks, 'simulated change')} of {found.family} of about this size"
    rest = [
        f"{n} {what}" for n, what in ((found.wrong, "had the opposite sign"), (found.unseen, "could not be shown")) if n
    ]
    others = f" ({', '.join(rest)})" if rest else ""
    few = ", which is too few to tell" if found.grade == UNKNOWN else ""
    return f"{found.grade}: {checks} had the same sign on a real kernel{others}{few}"


def _amount(j: Judgement, unit: str) -> str:
    """`40.1% higher`, `3.2 us lower`."""
    d = j.difference
    estimate = d.estimate or 0.0
    way = "higher" if estimate > 0 else "lower"
    size = percent(abs(estimate)).removeprefix("+") if d.percent else f"{value(abs(estimate))} {unit}".rstrip()
    return f"{size} {way}"
