"""The default style: the answer in a few lines, then one line per metric, the most important first.

What a reader needs only for some questions is in the `details` style: every option of the run, pooled samples, spread
between seeds, model errors by family, and the notes on the statistics.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedlab import plain
from schedlab.render import notes
from schedlab.render.answer import answer
from schedlab.render.cells import change, configurations, headline, plural
from schedlab.render.further import sampled
from schedlab.render.grid import NOTHING, UNBOUNDED_PCT, WIDTH, columns, fold, layout, percent, value
from schedlab.render.lines import MOST, importance, named, trusted
from schedlab.statistics import median

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement

    Found = tuple[MetricComparison, Judgement]

COLOURS = {"better": "\x1b[32m", "worse": "\x1b[31m", "changed": "\x1b[33m", "none": ""}
RIGHT_SIGN = "right sign"
"""The column that is left out where the terminal is too narrow for it."""
LABEL = 6
"""The width of the labels before the statements of the answer."""


def render(comparison: Comparison, *, colour: bool = False, width: int = WIDTH) -> str:
    """The whole text, without a final newline."""
    text = _text(comparison, colour=colour, width=width)
    return text + (f"\n\n{below}" if (below := _below(comparison, text, width)) else "")


def _text(comparison: Comparison, *, colour: bool, width: int) -> str:
    blocks = [fold("\n".join([headline(comparison), *configurations(comparison)]), width)]
    if len(comparison.pairs) > 1:
        from schedlab.render.matrix import matrix

        blocks += matrix(comparison, width=width)
    elif comparison.pairs:
        a, b = comparison.pairs[0]
        blocks += [_answer(comparison, a, b, width), _metrics(comparison, a, b, colour=colour, width=width)]
    else:
        blocks.append(_single(comparison, width))
    return "\n\n".join(blocks)


def _below(comparison: Comparison, text: str, width: int) -> str:
    """What explains the table, and the commands that go further."""
    signs = [
        f"{RIGHT_SIGN}: of the simulated changes of this kind and size that were checked on real kernels, how many had "
        "the same sign"
    ]
    shown = signs if RIGHT_SIGN in text else []
    return fold("\n".join([*notes.essential(comparison), *shown, *_further(comparison)]), width)


def _answer(comparison: Comparison, a: str, b: str, width: int) -> str:
    """The statements, each behind its label."""
    from textwrap import fill

    lines = []
    for label, text in answer(comparison, a, b):
        first, rest = (f"{label}:".ljust(LABEL), " " * LABEL) if label else ("", "")
        shown = plain.escaped(text)
        lines.append(fill(shown, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False))
    return "\n".join(lines)


def _metrics(comparison: Comparison, a: str, b: str, *, colour: bool, width: int) -> str:
    found = [(m, j) for m in comparison.metrics for j in m.comparisons if (j.a, j.b) == (a, b)]
    found.sort(key=lambda one: importance(*one))
    checked = comparison.arm == "sim" and any(j.evidence and j.evidence.checks for _, j in found)
    wide = _lines(comparison, a, b, found[:MOST], checked=checked, width=width)
    if checked and any(len(several) > 1 for _, several in wide):
        wide = _lines(comparison, a, b, found[:MOST], checked=False, width=width)
    lines = [_coloured(effect, line) if colour else line for effect, several in wide for line in several]
    left = len(found) - MOST
    if left > 0:
        lines.append(f"... and {plural(left, 'metric')} more")
    return "\n".join(lines)


def _lines(
    comparison: Comparison, a: str, b: str, found: Sequence[Found], *, checked: bool, width: int
) -> list[tuple[str, list[str]]]:
    """The effect that colours each row, and its lines: one, if the terminal is wide enough."""
    rows = [["metric", a, b, "change", "95% interval", "verdict", *([RIGHT_SIGN] * checked)]]
    effects = [""]
    for m, j in found:
        d = j.difference
        row = [named(m), value(d.median_a), value(d.median_b), change(j), short_interval(j), _verdict(j)]
        rows.append([*row, *([_checks(j)] * checked)])
        effects.append(j.effect if trusted(comparison, j) else "none")
    return list(zip(effects, layout(rows, "<>>>><" + ">" * checked, width=width), strict=True))


def short_interval(j: Judgement) -> str:
    """The 95% interval of the change, with two digits and one sign of percent."""
    d = j.difference
    if d.interval is None:
        return NOTHING
    if d.percent:
        return f"{_two_digits(d.interval.low)} .. {_two_digits(d.interval.high)}%"
    return f"{d.interval.low:+.4g} .. {d.interval.high:+.4g}"


def _verdict(j: Judgement) -> str:
    """Without the number of values, which is 1 wherever a value is the same in every seed."""
    return j.verdict.partition(",")[0]


def _two_digits(pct: float) -> str:
    """A signed percentage without its sign of percent."""
    if abs(pct) >= UNBOUNDED_PCT:
        return percent(pct).removesuffix("%")
    return f"{pct:+,.{0 if abs(pct) >= 9.95 else 1 if abs(pct) >= 0.0995 else 2}f}"


def _checks(j: Judgement) -> str:
    """How many of the checked changes had the right sign."""
    return f"{j.evidence.right} of {j.evidence.checks}" if j.evidence and j.evidence.checks else NOTHING


def _coloured(effect: str, line: str) -> str:
    return f"{COLOURS[effect]}{line}\x1b[0m" if COLOURS.get(effect) else line


def _single(comparison: Comparison, width: int) -> str:
    """A scenario with one variant: its medians."""
    column = comparison.columns[0]
    rows = [["metric", column.name]]
    rows += [[named(m), value(median(m.samples[column.name]))] for m in comparison.metrics]
    return "\n".join(columns(rows, "<>", width=width))


def _further(comparison: Comparison) -> Sequence[str]:
    """The commands that go further."""
    lines = []
    if comparison.path:
        shown = shlex.join(["schedlab", "report", str(comparison.path), "--details"])
        lines.append(f"details: {shown}")
    if comparison.arm == "sim" and any(j.effect != "none" for _, j in comparison.judgements()):
        from schedlab.arms import feasible

        if comparison.scenario.file and feasible.why_not(comparison.scenario) is None:
            lines.append(f"confirm: {notes.on_real_kernels(comparison)}")
    if comparison.arm == "sim" and comparison.pairs and comparison.scenario.file:
        a, b = comparison.pairs[0]
        # Short enough for one line where it can be: the only two variants need no names.
        names = [] if [v.name for v in comparison.scenario.variants] == [a, b] else [a, b]
        metric = sampled(comparison, a, b)
        wanted = ["--metric", metric] if metric else []
        lines.append(f"why:     {shlex.join(['schedlab', 'explain', comparison.scenario.file, *names, *wanted])}")
    return lines
