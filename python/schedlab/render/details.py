"""All details in text: a block for each pair of variants with every metric, pooled samples, spread, and all notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab import plain
from schedlab.render import notes
from schedlab.render.answer import sentences
from schedlab.render.cells import change, headline, interval, model_error, noise_floor, setup
from schedlab.render.grid import NOTHING, WIDTH, columns, fold, layout, percent, value
from schedlab.scenario import Metric
from schedlab.statistics import median

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement

_COLOURS = {"better": "\x1b[32m", "worse": "\x1b[31m", "changed": "\x1b[33m", "none": ""}


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """The whole text, without a final newline."""
    blocks = [headline(comparison), *_sentences(comparison), *setup(comparison)]
    blocks += [_block(comparison, a, b, colour=colour) for a, b in comparison.pairs]
    if not comparison.pairs:
        blocks.append(_single(comparison))
    blocks += [block for block in (_rankings(comparison), _tails(comparison), _spreads(comparison)) if block]
    below = notes.below(comparison, ranks=True)
    return fold("\n\n".join([*blocks, *(["\n".join(below)] if below else [])]))


def _sentences(comparison: Comparison) -> list[str]:
    """Which variant is better in what, a paragraph for each pair of variants."""
    from textwrap import fill

    return [fill(plain.escaped(text), WIDTH, break_on_hyphens=False) for text in sentences(comparison)]


def _block(comparison: Comparison, a: str, b: str, *, colour: bool) -> str:
    simulated = any(m.model for m in comparison.metrics)
    floor = any(m.noise_floor for m in comparison.metrics)
    head = ["metric", a, b, "change", "95% interval", "verdict"]
    head += ["model error"] * simulated + ["noise floor"] * floor + ["unit", "better"]
    rows, effects = [head], [""]
    for m in comparison.metrics:
        for j in m.comparisons:
            if (j.a, j.b) == (a, b):
                rows.append(_row(m, j, simulated=simulated, floor=floor))
                effects.append(j.effect)
    lines = layout(rows, "<>>>><" + ">" * (simulated + floor) + "<<")
    pairs = zip(effects, lines, strict=True)
    return "\n".join(_coloured(e, line) if colour else line for e, several in pairs for line in several)


def _coloured(effect: str, line: str) -> str:
    return f"{_COLOURS[effect]}{line}\x1b[0m" if _COLOURS.get(effect) else line


def _row(m: MetricComparison, j: Judgement, *, simulated: bool, floor: bool) -> list[str]:
    d, metric = j.difference, m.metric
    extra = [model_error(m)] * simulated + [noise_floor(m)] * floor
    better = "" if metric.better == "neither" else metric.better
    medians = [value(d.median_a), value(d.median_b)]
    return [metric.name, *medians, change(j), interval(j), j.verdict, *extra, metric.unit, better]


def _single(comparison: Comparison) -> str:
    """A scenario with one variant: its medians."""
    column = comparison.columns[0]
    rows = [["metric", "unit", column.name]]
    for m in comparison.metrics:
        rows.append([m.metric.name, m.metric.unit, value(median(m.samples[column.name]))])
    return "\n".join(columns(rows, "<<>"))


def _rankings(comparison: Comparison) -> str:
    """The variants by rank; those that share one stand in one cell."""
    if not comparison.rankings:
        return ""
    ranks = range(1, len(comparison.columns) + 1)
    rows = [["rank by metric", *map(str, ranks)]]
    for ranking in comparison.rankings:
        cells = [", ".join(n for n, rank in ranking.ranks.items() if rank == r) for r in ranks]
        rows.append([ranking.metric, *cells])
    return "\n".join(columns(rows, "<" * (len(ranks) + 1)))


def _tails(comparison: Comparison) -> str:
    """Percentiles of the samples of all seeds together."""
    rows = [["samples of all seeds together", "unit", "", "", "difference", "95% interval"]]
    for m in comparison.metrics:
        for j in m.comparisons:
            if j.tail:
                rows.append([_named(comparison, m.metric, j), m.metric.unit, *_tail(j)])
    if len(rows) == 1:
        return ""
    rows[0][2:4] = _sides(comparison)
    return "\n".join(columns(rows, "<<>>>>"))


def _tail(j: Judgement) -> list[str]:
    assert j.tail is not None
    t = j.tail
    if t.difference is None:
        return [value(t.a), value(t.b), NOTHING, NOTHING if t.resolved else "too few samples above it"]
    estimate, low, high = t.difference.estimate, t.difference.low, t.difference.high
    return [value(t.a), value(t.b), _signed(estimate), f"{_signed(low)} .. {_signed(high)}"]


def _signed(x: float) -> str:
    return f"{'+' if x > 0 else '-' if x < 0 else ''}{value(abs(x))}"


def _spreads(comparison: Comparison) -> str:
    """Whether one variant varies more from seed to seed: declared metrics, and others where it is certain."""
    rows = [["spread between seeds", "", "", "change", "95% interval"]]
    for m in comparison.metrics:
        for j in m.comparisons:
            if j.spread and j.spread.change and (m.metric.declared or j.spread.change.excludes_zero()):
                rows.append([_named(comparison, m.metric, j), *_spread(j)])
    if len(rows) == 1:
        return ""
    rows[0][1:3] = _sides(comparison)
    return "\n".join(columns(rows, "<>>>>"))


def _spread(j: Judgement) -> list[str]:
    assert j.spread is not None
    assert j.spread.change is not None
    s, c = j.spread, j.spread.change
    sides = [f"±{x:.3g}%" if s.percent else f"±{value(x)}" for x in (s.a, s.b)]
    shown = percent(c.estimate) if c.excludes_zero() else "~"
    return [*sides, shown, f"{percent(c.low)} .. {percent(c.high)}"]


def _sides(comparison: Comparison) -> tuple[str, str]:
    """The heads of the two values of a pair: the variants' names if there is one pair."""
    return comparison.pairs[0] if len(comparison.pairs) == 1 else ("baseline", "variant")


def _named(comparison: Comparison, metric: Metric, j: Judgement) -> str:
    """The metric, with the pair where there are several."""
    return metric.name if len(comparison.pairs) == 1 else f"{metric.name}, {j.b} against {j.a}"
