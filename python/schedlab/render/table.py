"""The default style: one block per pair of variants, one line per metric, the interval beside every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedlab.judge import ALPHA
from schedlab.render.grid import NOTHING, columns, percent, value
from schedlab.scenario import Metric, Scenario
from schedlab.verdicts import DETERMINISTIC

if TYPE_CHECKING:
    from schedlab.comparison import Comparison
    from schedlab.judge import Judgement

SETUP_WIDTH = 110
ESTIMAND = "change, interval  of the pseudo-median (Hodges-Lehmann) of the seeds' log ratios"
_COLOURS = {"better": "\x1b[32m", "worse": "\x1b[31m", "changed": "\x1b[33m", "none": ""}
_WISH = {"lower": "lower is better", "higher": "higher is better", "neither": ""}


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """The whole text, without a final newline."""
    blocks = [headline(comparison), *setup(comparison)]
    blocks += [_block(comparison, a, b, colour) for a, b in comparison.pairs]
    if not comparison.pairs:
        blocks.append(_single(comparison))
    blocks += [notes for notes in (_notes(comparison),) if notes]
    return "\n\n".join(blocks)


def headline(comparison: Comparison) -> str:
    """What was compared, on what, how often."""
    s = comparison.scenario
    if comparison.machine:
        seeds = plural(len(comparison.seeds), "seed")
        return f"{s.name}: {comparison.arm_word} on {comparison.machine}, {seeds}; {_kernels(comparison)}"
    machine = machine_name(s)
    size = f"{plural(s.machine.cpus, 'CPU')}, {plural(len(comparison.seeds), 'seed')}"
    return f"{s.name}: {comparison.arm_word} {machine}, {size}; {_kernels(comparison)}"


def _kernels(comparison: Comparison) -> str:
    return ", ".join(c.name if c.name == c.kernel else f"{c.name} = {c.kernel}" for c in comparison.columns)


def setup(comparison: Comparison, width: int = SETUP_WIDTH) -> list[str]:
    """What ran and how the variants differ, wrapped; a block, or none for a result without a description."""
    from textwrap import wrap

    if not comparison.setup:
        return []
    gutter = max(len(fact.name) for fact in comparison.setup) + 2
    lines = []
    for fact in comparison.setup:
        first, *rest = wrap(fact.text, max(40, width - gutter), break_on_hyphens=False) or [""]
        lines += [f"{fact.name:<{gutter}}{first}", *(" " * gutter + line for line in rest)]
    return ["\n".join(lines)]


def machine_name(scenario: Scenario) -> str:
    """The machine, and whether its costs were measured on it."""
    machine = scenario.machine
    return machine.name if machine.calibrated else f"{machine.name} (uncalibrated)"


def plural(count: int, noun: str) -> str:
    """`1 seed`, `2 seeds`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _block(comparison: Comparison, a: str, b: str, colour: bool) -> str:
    head = ["metric", "unit", a, b, "change", "95% interval", "verdict", ""]
    rows, effects = [head], [""]
    for metric, j in comparison.judgements():
        if (j.a, j.b) == (a, b):
            rows.append(_row(metric, j))
            effects.append(j.effect)
    lines = columns(rows, "<<>>>><<")
    if colour:
        lines = [
            f"{_COLOURS[e]}{line}\x1b[0m" if _COLOURS.get(e) else line for e, line in zip(effects, lines, strict=True)
        ]
    return "\n".join(lines)


def _row(metric: Metric, j: Judgement) -> list[str]:
    d = j.difference
    return [
        metric.name,
        metric.unit,
        value(d.median_a),
        value(d.median_b),
        change(j),
        interval(j),
        j.verdict,
        _WISH[metric.better],
    ]


def change(j: Judgement) -> str:
    """The estimated change, or `~` where none can be detected."""
    d = j.difference
    if d.estimate is None:
        return NOTHING
    if not j.detectable and not d.constant:
        return "~"
    return percent(d.estimate) if d.percent else f"{d.estimate:+.4g}"


def interval(j: Judgement) -> str:
    """The 95% interval of the change."""
    d = j.difference
    if d.interval is None:
        return NOTHING
    if d.percent:
        return f"{percent(d.interval.low)} .. {percent(d.interval.high)}"
    return f"{d.interval.low:+.4g} .. {d.interval.high:+.4g}"


def _single(comparison: Comparison) -> str:
    """A scenario with one variant: its medians."""
    column = comparison.columns[0]
    rows = [["metric", "unit", column.name]]
    for m in comparison.metrics:
        from schedlab.statistics import median

        rows.append([m.metric.name, m.metric.unit, value(median(m.samples[column.name]))])
    return "\n".join(columns(rows, "<<>"))


def _notes(comparison: Comparison) -> str:
    judged = [j for _, j in comparison.judgements()]
    lines = []
    if any(change(j) == "~" for j in judged):
        lines.append("~  no detectable change: the 95% interval of the paired difference holds 0, or there is none")
    if any(j.difference.interval is not None and j.difference.percent for j in judged):
        lines.append(ESTIMAND)
    many = len(comparison.pairs) > 1
    for metric, j in comparison.judgements():
        if (
            j.verdict.startswith("undecided")
            or j.verdict == DETERMINISTIC
            or j.difference.missing
            or not j.difference.percent
        ):
            name = f"{metric.name} of {j.b}" if many else metric.name
            lines.append(f"{name}: {j.reason}")
    return "\n".join([*_grouped(lines), *holm_notes(comparison), *trouble(comparison)])


def holm_notes(comparison: Comparison) -> list[str]:
    """For each pair, what the adjustment for many metrics leaves; nothing where fewer than two were tested."""
    lines = []
    for a, b in comparison.pairs:
        tested = [(m.name, j) for m, j in comparison.judgements() if (j.a, j.b) == (a, b) and j.p_holm is not None]
        found = [(name, j) for name, j in tested if (j.p or 0) <= ALPHA]
        if len(tested) < 2 or not found:
            continue
        many = f" of {b}" if len(comparison.pairs) > 1 else ""
        what = f"all {len(tested)} metrics{many} together (Holm)"
        lost = [name for name, j in found if (j.p_holm or 0) > ALPHA]
        if lost:
            few = len(lost) == len(found)
            lines.append(
                f"no change is certain at 5% for {what}" if few else f"not certain at 5% for {what}: {', '.join(lost)}"
            )
        else:
            lines.append(f"every change is certain at 5% for {what}, too")
    return lines


def _grouped(lines: Sequence[str]) -> list[str]:
    """Metrics with the same reason share a line."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        name, _, why = (
            line.rpartition(": ") if ": " in line and not line.startswith(("~", ESTIMAND)) else ("", "", line)
        )
        groups.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" if names[0] else why for why, names in groups.items()]


def trouble(comparison: Comparison) -> list[str]:
    """What a reader must know of real runs; runs that are not in the numbers, and why."""
    lines = list(comparison.remarks)
    if comparison.failures:
        lines.append(f"{plural(len(comparison.failures), 'run')} failed and not in these numbers")
    if comparison.missing:
        lines.append(f"interrupted: {plural(comparison.missing, 'run')} not in these numbers")
    return lines
