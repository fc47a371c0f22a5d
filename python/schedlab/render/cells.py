"""The pieces that all styles share: the headline, what ran, and the cells of one judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schedlab.render.grid import NOTHING, WIDTH, percent, size
from schedlab.scenario import Scenario

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement


def headline(comparison: Comparison) -> str:
    """What was compared, on what, how often."""
    s = comparison.scenario
    seeds = plural(len(comparison.seeds), "seed")
    if comparison.machine:
        return f"{s.name}: {comparison.arm_word} on {comparison.machine}, {seeds}; {_kernels(comparison)}"
    size = f"{plural(s.machine.cpus, 'CPU')}, {seeds}"
    return f"{s.name}: {comparison.arm_word} {machine_name(s)}, {size}; {_kernels(comparison)}"


def setup(comparison: Comparison, width: int = WIDTH) -> list[str]:
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


ALIGNED = 24
"""Configurations are aligned if the names before them are no longer."""


def configurations(comparison: Comparison) -> list[str]:
    """Hz, preemption model, groups and switched features: a line for the variants that have the same."""
    from schedlab.setup_facts import boot_text

    names: dict[str, list[str]] = {}
    for variant in comparison.scenario.variants:
        if variant.boot:
            names.setdefault(boot_text(variant.boot), []).append(variant.name)
    if len(names) == 1:
        return [f"all variants: {text}" if len(found) > 1 else f"{found[0]}: {text}" for text, found in names.items()]
    heads = [f"{', '.join(found)}:" for found in names.values()]
    width = max((len(head) for head in heads), default=0) + 1
    gap = width if width <= ALIGNED else 0
    return [f"{head + ' ':<{gap}}{text}" for head, text in zip(heads, names, strict=True)]


def _kernels(comparison: Comparison) -> str:
    """The kernel of each variant, with what it changes on it."""
    columns = [(c.name, c.named or c.kernel, f" with {c.changes}" if c.changes else "") for c in comparison.columns]
    return ", ".join(f"{'' if name == kernel else f'{name} = '}{kernel}{changes}" for name, kernel, changes in columns)


def machine_name(scenario: Scenario) -> str:
    """The machine, and whether its costs were measured on it."""
    machine = scenario.machine
    return machine.name if machine.calibrated else f"{machine.name} (uncalibrated)"


def enumeration(words: Sequence[str]) -> str:
    """The words as in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def plural(count: int, noun: str) -> str:
    """`1 seed`, `2 seeds`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


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


def model_error(m: MetricComparison) -> str:
    """By how much changes of this kind have been off; `?` where that was not measured on this kind of machine."""
    if m.model is None or m.model.error is None:
        return "?"
    return size(m.model.error.error_pct) + ("" if m.model.holds else "?")


def noise_floor(m: MetricComparison) -> str:
    """The largest difference that two samples of the same variant allow."""
    d = m.noise_floor
    if d is None or d.interval is None:
        return NOTHING
    reach = max(abs(d.interval.low), abs(d.interval.high))
    return size(reach) if d.percent else f"{reach:.2g}"
