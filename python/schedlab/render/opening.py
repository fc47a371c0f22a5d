"""What a page opens with: the answer, then the percentile curves of the headline metric beside the judged metrics."""

from __future__ import annotations

from collections.abc import Iterable

from schedlab.comparison import Comparison, MetricComparison
from schedlab.render import charts as drawn
from schedlab.render.answer import answer
from schedlab.render.cells import change, interval
from schedlab.render.figure import figure
from schedlab.render.grid import NOTHING, value
from schedlab.render.lines import importance, named, trusted
from schedlab.render.markup import cells, details, escape, items, table
from schedlab.render.matrix import baselines_of, best_variants, by_importance, legend, table_rows
from schedlab.render.summary import headline_metric

COLUMNS = 4
"""Of the metrics, as many are beside the picture if there are several pairs; all are in the tables of the pairs."""
TERMS = {"why": "Why", "sure": "How sure", "but": "But", "also": "Also", "note": "Note"}


def summary(c: Comparison) -> str:
    """The answer: for the only pair with its statements, for several the best of all variants."""
    if len(c.pairs) > 1:
        return f'<p class="verdict">{escape(best_variants(c))}</p>'
    return "".join(statements(c, a, b) for a, b in c.pairs)


def statements(c: Comparison, a: str, b: str) -> str:
    """The answer for one pair: the verdict, then the other statements behind their names."""
    found = list(answer(c, a, b))
    verdict = "".join(f'<p class="verdict">{escape(text)}</p>' for label, text in found if not label)
    rest = "".join(f"<dt>{TERMS[label]}</dt><dd>{escape(text)}</dd>" for label, text in found if label)
    return verdict + (f'<dl class="answer">{rest}</dl>' if rest else "")


def opening(c: Comparison) -> Iterable[str]:
    """The picture and the table of the first pair, side by side where there is room."""
    if not c.pairs:
        return
    series = opening_series(c)
    spec = drawn.percentile_curve(c, series) if series else None
    picture = f"<div>{figure('opening-curve', spec)}</div>" if spec else ""
    numbers = details(f"Numbers of {series}", _curve_table(c, series)) if spec and series else ""
    if len(c.pairs) == 1:
        shown, pairs = _short_table(c, *c.pairs[0]), ""
    else:
        metrics = by_importance(c)[:COLUMNS]
        shown = "".join(_matrix(c, baseline, metrics) for baseline in baselines_of(c))
        shown += items(legend(metrics, shown))
        each = "".join(statements(c, a, b) + _short_table(c, a, b) for a, b in c.pairs)
        pairs = details("Each pair of variants, in words and numbers", each)
    yield f'<div class="opening">{picture}<div>{shown}</div></div>{numbers}{pairs}'


def _matrix(c: Comparison, baseline: str, metrics: list[MetricComparison]) -> str:
    """A row per variant: the baseline's medians, then the changes of the others."""
    head, *rows = table_rows(c, baseline, metrics)
    judged = {(m.metric.name, j.b): j for m in metrics for j in m.comparisons if j.a == baseline}

    def effect(name: str, m: MetricComparison) -> str:
        j = judged.get((m.metric.name, name))
        return j.effect if j is not None and trusted(c, j) else ""

    shown = [cells(head, row, looks=[effect(row[0], m) for m in metrics]) for row in rows]
    caption = f"medians of {baseline} over {len(c.seeds)} seeds, and changes of the others against it, {c.arm_word}"
    return table(caption, head, shown, cards=True)


def opening_series(c: Comparison) -> str | None:
    """The distribution of the headline metric of the first pair, if it has one; else the first judged one."""
    head = headline_metric(c, *c.pairs[0]) if c.pairs else None
    names = [*([head[0].metric.of] if head else []), *(m.metric.of for m in c.metrics)]
    known = {name for column in c.columns for run in column.runs.values() for name in run.series}
    return next((name for name in names if name in known and drawn.curve_rows(c, name)), None)


def curve(c: Comparison, name: str, series: str) -> str:
    """The percentile curves of a series and, after a click, their numbers."""
    spec = drawn.percentile_curve(c, series)
    if spec is None:
        return ""
    return f"<div>{figure(name, spec)}{details(f'Numbers of {series}', _curve_table(c, series))}</div>"


def _short_table(c: Comparison, a: str, b: str) -> str:
    """One row per metric, the most important first; what was checked on real kernels where anything was."""
    found = [(m, j) for m in c.metrics for j in m.comparisons if (j.a, j.b) == (a, b)]
    found.sort(key=lambda one: importance(*one))
    checked = any(j.evidence and j.evidence.checks for _, j in found)
    head = ["metric", a, b, "change", "95% interval", "verdict", *(["right sign"] * checked)]
    rows = []
    for m, j in found:
        d = j.difference
        texts = [named(m), value(d.median_a), value(d.median_b), change(j), interval(j), j.verdict]
        if checked:
            some = j.evidence and j.evidence.checks
            texts.append(f"{j.evidence.right} of {j.evidence.checks}" if some and j.evidence else NOTHING)
        effect = j.effect if trusted(c, j) else ""
        rows.append(cells(head, texts, title=m.metric.help, looks=["", "", "", "", effect]))
    caption = f"{b} against {a}, medians over {len(c.seeds)} seeds, {c.arm_word}"
    if checked:
        caption += "; right sign: how many such simulated changes real kernels confirmed"
    return table(caption, head, rows, cards=True)


def _curve_table(c: Comparison, series: str) -> str:
    rows = drawn.curve_rows(c, series)
    names = [column.name for column in c.columns]
    at = {(r["variant"], r["percentile"]): r for r in rows}
    head = ["percentile", *(f"{n}, {what}" for n in names for what in ("median", "range"))]
    body = []
    for p in sorted({r["percentile"] for r in rows}):
        texts = [f"{p:.7g}"]
        for row in (at.get((n, p), {}) for n in names):
            texts += [value(row.get("value")), f"{value(row['low'])} .. {value(row['high'])}" if row else NOTHING]
        body.append(cells(head, texts))
    return table(f"{series} over seeds, {c.arm_word}", head, body)
