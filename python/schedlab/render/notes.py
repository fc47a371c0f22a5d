"""The notes below a table: reasons, what holds for all metrics together, model errors, noise, failures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING

from schedlab.judge import ALPHA
from schedlab.regrouped import WORDS, Regrouped
from schedlab.render.cells import change, plural
from schedlab.render.grid import size
from schedlab.render.together import needed, together
from schedlab.robust import RANGE, Robustness
from schedlab.statistics import median
from schedlab.statistics.tails import FEWEST_BEYOND
from schedlab.verdicts import DETERMINISTIC

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement
    from schedlab.validity import Validated

ESTIMAND = (
    "columns of variants: medians over the seeds; change and interval: estimated from the seeds' paired ratios "
    "(pseudo-median, Hodges-Lehmann), so the change is not the ratio of the medians"
)
UNDETECTED = "~  no detectable change: the 95% interval of the paired difference contains 0, or there is none"


def below(comparison: Comparison, *, ranks: bool = False) -> list[str]:
    """All lines, without those that say nothing here; those on ranks only below a table of `ranks`."""
    judged = [j for _, j in comparison.judgements()]
    return [
        *reading(comparison),
        *([UNDETECTED] if any(change(j) == "~" for j in judged) else []),
        *cut(comparison),
        *looks(comparison),
        *_reasons(comparison),
        *few(comparison),
        *holm(comparison),
        *models(comparison),
        *noise(comparison),
        *robustness(comparison),
        *(ties(comparison) if ranks else ()),
        *trouble(comparison),
    ]


def essential(comparison: Comparison) -> list[str]:
    """The notes without which the short table would mislead: how it was stopped, doubts, failures, what `~` means."""
    judged = [j for _, j in comparison.judgements()]
    return [
        *([UNDETECTED] if any(change(j) == "~" for j in judged) else []),
        *looks(comparison),
        *_reasons(comparison, missing=True),
        *noise(comparison),
        *drawn_verdicts(comparison),
        *(line for line in trouble(comparison) if len(comparison.pairs) != 1 or line not in comparison.same.values()),
    ]


def reading(comparison: Comparison) -> list[str]:
    """What the columns of the table are."""
    judged = [j for _, j in comparison.judgements()]
    return [ESTIMAND] if any(j.difference.interval is not None and j.difference.percent for j in judged) else []


def cut(comparison: Comparison) -> list[str]:
    """Intervals of differences that reach below what the quantity can do."""
    names = dict.fromkeys(metric.name for metric, j in comparison.judgements() if j.difference.cut)
    return [f"interval cut at -100%, since the value cannot be negative: {', '.join(names)}"] if names else []


def few(comparison: Comparison) -> list[str]:
    """Judged percentiles with fewer than ten samples above them in a run: longer runs help more than further seeds."""
    found = []
    for m in comparison.metrics:
        stat = m.metric.stat or ""
        percentile = float(stat[1:]) if stat.startswith("p") else 0.0
        runs = [run for column in comparison.columns for run in column.runs.values()]
        counts = [run.series[m.metric.of].count for run in runs if m.metric.of in run.series]
        middle = median(counts)
        if percentile and middle and middle * (1 - percentile / 100) < FEWEST_BEYOND:
            above = f"{middle * (1 - percentile / 100):.2g} of {middle:,.0f}"
            found.append(f"{m.metric.name} ({above})")
    if not found:
        return []
    why = "a longer run (--duration) may help more than additional seeds"
    return [f"few samples of each seed lie above {', '.join(found)}: {why}"]


def looks(comparison: Comparison) -> list[str]:
    """Of a comparison with several looks: how many there were, and that the intervals allow for it."""
    stages = comparison.design.looks
    seeds = len(comparison.seeds)
    if seeds not in stages:
        return []
    number, budget = stages.index(seeds) + 1, stages[-1]
    end = "its budget" if seeds == budget else f"a budget of {budget:,} seeds"
    return [f"look {number} of {len(stages)} in {end}: intervals and p hold their 95% over all looks together"]


def holm(comparison: Comparison) -> list[str]:
    """For each pair, what the adjustment for many metrics leaves; nothing where fewer than two were tested."""
    lines = []
    for a, b in comparison.pairs:
        found = together(comparison, a, b)
        if found is None:
            continue
        of = f" of {b}" if len(comparison.pairs) > 1 else ""
        what = f"all {found.tested} metrics{of} together (Holm)"
        count = len(found.found)
        if found.fewest:
            why = f"with {found.seeds} seeds none can be; at least {found.fewest} are needed"
            lines.append(f"no change is certain at 5% for {what}: {why}")
        elif not found.lost:
            changes = f"all {count} reported changes" if count > 1 else "the one reported change"
            verb = "remain" if count > 1 else "remains"
            lines.append(f"{changes}{of} {verb} certain after correction for {found.tested} metrics (Holm)")
        elif len(found.lost) == count:
            lines.append(f"no change is certain at 5% for {what}")
        else:
            lines.append(f"not certain at 5% for {what}: {', '.join(found.lost)}")
    return lines


def models(comparison: Comparison) -> list[str]:
    """How far the simulator may be off, and which changes are no larger than that."""
    known = [m for m in comparison.metrics if m.model is not None]
    if not known:
        return []
    lines = [_model(m.model) for m in _first_of_each(known) if m.model]
    machines = dict.fromkeys(m.model.error.machine for m in known if m.model and m.model.error)
    missing = dict.fromkeys(word for m in known if m.model and m.model.error for word in m.model.missing)
    if machines:
        lines.append(f"model errors: simulated changes against the same changes measured on {' and '.join(machines)}")
    if missing:
        lines.append(f"NOT VALIDATED (?): {' and '.join(missing)}")
    many = len(comparison.pairs) > 1
    within = [(m, j) for m in known for j in m.comparisons if _within(m, j)]
    for holds, what in ((True, "model error"), (False, "model error on the other kind of machine")):
        small = [
            m.metric.name + (f" of {j.b}" if many else "") for m, j in within if m.model and m.model.holds == holds
        ]
        if small:
            lines.append(f"smaller than the {what}: {', '.join(small)}")
    changed = any(j.effect != "none" for m in known for j in m.comparisons)
    if changed and (missing or within) and comparison.scenario.file:
        from schedlab.arms import feasible

        why = feasible.why_not(comparison.scenario)
        if why is None:
            lines += ["to confirm on real kernels:", f"  {on_real_kernels(comparison)}"]
            if comparison.scenario.machine.cpus > 1:
                lines.append("  (counts only: durations on several emulated CPUs depend on the host)")
        else:
            lines.append(f"--arm vm cannot confirm this: {why}")
    return lines


def on_real_kernels(comparison: Comparison) -> str:
    """The command that runs the same comparison in QEMU."""
    scenario = comparison.scenario
    overridden = (word for text in scenario.overrides for word in ("--set", text))
    return shlex.join(["schedlab", "compare", scenario.file, *overridden, "--arm", "vm"])


def _model(model: Validated) -> str:
    error = model.error
    if error is None:
        return f"model error: {model.family} was never validated against a real kernel"
    worst, half = size(error.error_pct), size(error.median_pct)
    return f"model error of {model.family}: {worst} is the worst of {error.changes} changes, {half} covers half of them"


def _within(m: MetricComparison, j: Judgement) -> bool:
    d = j.difference
    return j.effect != "none" and d.percent and m.model is not None and m.model.covers(d.estimate or 0.0)


def _first_of_each(known: Sequence[MetricComparison]) -> list[MetricComparison]:
    """One metric of each family, in the order of the table."""
    return list({m.model.family: m for m in reversed(known) if m.model}.values())[::-1]


def noise(comparison: Comparison) -> list[str]:
    """What further runs of the first variant say about changes that were found."""
    first = comparison.columns[0].name
    floors = [(m, m.noise_floor) for m in comparison.metrics if m.noise_floor and m.noise_floor.interval]
    if not floors:
        return []
    lines = [f"noise floor: {first} against {first} with other seeds differs by no more with 95% certainty"]
    drift = [m.metric.name for m, d in floors if d.interval and d.interval.excludes_zero()]
    if drift:
        lines.append(f"{first} differs from itself: {', '.join(drift)}; something other than the variants changes them")
    small = [
        m.metric.name
        for m, d in floors
        for j in m.comparisons
        if j.effect != "none" and d.interval and abs(j.difference.estimate or 0) < max(-d.interval.low, d.interval.high)
    ]
    if small:
        lines.append(f"smaller than the noise floor: {', '.join(dict.fromkeys(small))}")
    return lines


def robustness(comparison: Comparison) -> list[str]:
    """In how many draws of the costs and ties each verdict holds, and whether it does under the other grouping."""
    found = comparison.robustness
    return [*drawn_verdicts(comparison), *_regrouped(comparison, found.regrouped if found else None)]


def _regrouped(comparison: Comparison, found: Regrouped | None) -> list[str]:
    """Which verdicts have another sign, or none, under the other grouping."""
    if found is None:
        return []
    of = {(m.name, j.a, j.b): found.holds(m, j) for m, j in comparison.judgements()}
    many = len(comparison.pairs) > 1
    named = {
        holds: [m if not many else f"{m} of {b}" for (m, _, b), own in of.items() if own is holds]
        for holds in (True, False)
    }
    where = f"{WORDS[found.grouping]} ({plural(found.seeds, 'seed')})"
    lines = [f"{where} the same sign: {', '.join(named[True])}"] if named[True] else []
    return lines + ([f"{where} another sign or none: {', '.join(named[False])}"] if named[False] else [])


def drawn_verdicts(comparison: Comparison) -> list[str]:
    """In how many draws of the costs and ties each verdict holds; nothing if only the grouping was changed."""
    found = comparison.robustness
    if found is None or not found.draws:
        return []
    from schedlab.robust import outcomes

    shown: dict[int, list[str]] = {}
    for key, outcome in outcomes(comparison.judgements()).items():
        if outcome in ("better", "worse", "changed", "equivalent"):
            name = key[0] if len(comparison.pairs) == 1 else f"{key[0]} of {key[2]}"
            shown.setdefault(found.held(key, outcome), []).append(name)
    total = len(found.draws)
    head = f"verdicts in {total} draws of {_drawn(found)}"
    return [f"{head}:", *(f"  hold in {n} of {total}: {', '.join(shown[n])}" for n in sorted(shown))] if shown else []


def _drawn(found: Robustness) -> str:
    """What was drawn, and in which ranges."""
    usual, words = found.costs - found.stated, ["the order of simultaneous events"] if found.ties else []
    if usual:
        words.append(f"{plural(usual, 'estimated cost')} from 1/{RANGE:g} to {RANGE:g} times")
    if found.stated:
        words.append(f"{plural(found.stated, 'estimated cost')} in the range that the machine states")
    return ", ".join(words)


def ties(comparison: Comparison) -> list[str]:
    """Variants that share a rank only because they cannot be distinguished."""
    pairs = [(r.metric, r.undecided) for r in comparison.rankings if r.undecided]
    if not comparison.rankings:
        return []
    tests = comb(len(comparison.columns), 2)
    head = (
        "rank: one more than the number of variants that are better with certainty, tested for each metric by itself "
        f"(Holm over its {tests} pairs)"
    )
    lines = [f"{name}: {', '.join(f'{a} and {b}' for a, b in tied)}" for name, tied in pairs]
    lines = [head, *(f"cannot be distinguished: {line}" for line in lines)]
    return [*lines, *_alone(comparison), *too_few_for_ranks(comparison)]


def too_few_for_ranks(comparison: Comparison) -> list[str]:
    """How many seeds it takes before any two of the variants can be distinguished, if there are fewer."""
    tests, seeds = comb(len(comparison.columns), 2), len(comparison.seeds)
    undecided = any(r.undecided for r in comparison.rankings)
    if not undecided or not (least := needed(len(comparison.columns), seeds)):
        return []
    return [f"with {seeds} seeds no pair of {tests} can be distinguished; at least {least} seeds are needed"]


def _alone(comparison: Comparison) -> list[str]:
    """Ranks that are certain for their metric, of changes that are not when all metrics are asked together."""
    ranks = {r.metric: r.ranks for r in comparison.rankings}
    apart = [
        f"{metric.name} ({j.b} against {j.a})"
        for metric, j in comparison.judgements()
        if j.detectable and (j.p_holm or 0) > ALPHA
        and metric.name in ranks and ranks[metric.name][j.a] != ranks[metric.name][j.b]
    ]  # fmt: skip
    return [f"ranked for the metric by itself, not certain for all metrics together: {', '.join(apart)}"] * bool(apart)


def trouble(comparison: Comparison) -> list[str]:
    """Caveats of real runs, and runs that are missing from the numbers."""
    lines = list(comparison.remarks)
    if comparison.failures:
        lines.append(f"{plural(len(comparison.failures), 'failed run')} left out of these numbers")
    if comparison.missing:
        lines.append(f"interrupted: {plural(comparison.missing, 'run')} not in these numbers")
    return lines


def _reasons(comparison: Comparison, *, missing: bool = False) -> list[str]:
    """The reasons of what has no clear verdict; metrics with the same reason share a line.

    `missing`: only of metrics without a value in some runs.
    """
    groups: dict[str, list[str]] = {}
    many = len(comparison.pairs) > 1
    for metric, j in comparison.judgements():
        unclear = j.verdict.startswith("undecided") or j.verdict == DETERMINISTIC or not j.difference.percent
        if j.difference.missing or (unclear and not missing):
            groups.setdefault(j.reason, []).append(f"{metric.name} of {j.b}" if many else metric.name)
    return [f"{', '.join(names)}: {why}" for why, names in groups.items()]
