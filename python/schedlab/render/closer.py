"""The closer look on a page: the first difference, the slowest samples, and two timelines above each other."""

from __future__ import annotations

from schedlab.closer import Closer, marks_of, middle
from schedlab.comparison import Comparison
from schedlab.render.amounts import names
from schedlab.render.capacity import capacity
from schedlab.render.cause_bars import bars
from schedlab.render.causes import SHORT, causes
from schedlab.render.explanation import divergence_text, why_lines
from schedlab.render.figure import figure
from schedlab.render.grid import fold
from schedlab.render.markup import cells, details, escape, table
from schedlab.render.queue import ms
from schedlab.render.timeline import standalone, still, timelines
from schedlab.tail import Parts
from schedlab.timeline import common_windows
from schedlab.timeline.document import document

PICTURE_NS = 240_000
"""How much time the picture that needs no script shows around the first difference."""


def closer_look(found: Closer | str | None) -> list[str]:
    """The sections; a sentence where there is nothing to show; nothing at all if no closer look was made."""
    if found is None:
        return []
    if isinstance(found, str):
        return [f"<h2>A closer look</h2><p>{escape(found)}</p>"]
    return [_one_seed(found), _first_difference(found), _slowest(found), _timelines(found)]


def causes_and_load(comparison: Comparison, found: Closer | str | None) -> list[str]:
    """The sections on all seeds."""
    if not isinstance(found, Closer):
        return []
    undecided = _undecided(comparison, found)
    machine = found.scenario.description["machine"]
    spec = bars(found.tails, found.metric)
    picture = figure("causes", spec) if spec else ""
    return [
        causes(found.tails, found.metric, undecided, picture),
        capacity(found.tails, comparison.columns, found.metric, machine),
    ]


def _undecided(comparison: Comparison, found: Closer) -> str:
    """The p99 of the samples, or another metric of them, if no change of it was detected; else empty."""
    pairs = [(m.metric, j) for m in comparison.metrics for j in m.comparisons if (j.a, j.b) == found.pair]
    own = [(metric, j) for metric, j in pairs if metric.of == found.metric]
    own.sort(key=lambda one: one[0].stat != "p99")
    return own[0][0].name if own and own[0][1].effect == "none" else ""


def _one_seed(found: Closer) -> str:
    text = f"What follows is of {' and '.join(found.pair)} with seed {found.seed}: {found.rule}."
    return f"<h2>One seed in detail</h2><p>{escape(text)}</p>"


def _first_difference(found: Closer) -> str:
    text = divergence_text(found.scenario, found.pair, found.seed, found.divergence)
    first, *rest = text.split("\n")
    if found.divergence and int(found.divergence["time_ns"]) < found.scenario.warmup_ns:
        first += f" (in the warm-up of {found.scenario.warmup_ns / 1e6:g} ms, which is not measured)"
    more = "\n".join(escape(line) for line in fold("\n".join(rest)).split("\n"))
    picture = still(found.timelines, *around(found)) if found.divergence else ""
    body = f"<pre>{more}</pre>" if rest else ""
    return f"<h2>The first difference</h2><p>{escape(first)}.</p>{body}{picture}"


def first_difference_picture(found: Closer) -> str:
    """The picture of the first difference as a file of its own, on a white ground."""
    return standalone(found.timelines, *around(found))


def around(found: Closer) -> tuple[int, int, int]:
    """The range of the picture of the first difference, in which nothing is missing, and the place of its mark."""
    at = int(found.divergence["time_ns"]) if found.divergence else 0
    low, high = max(0, at - PICTURE_NS // 3), at + 2 * PICTURE_NS // 3
    known = [window for window in common_windows(list(found.timelines.values())) if window[0] <= at <= window[1]]
    return (max(low, known[0][0]), min(high, known[0][1]), at) if known else (low, high, at)


def _slowest(found: Closer) -> str:
    head = ["sample", "variant", "task", "where", "from, ms", "took, ms", "its time", "at the midpoint"]
    rows, answers = [], []
    for number, slow in enumerate(found.slowest, 1):
        s = slow.sample
        lines = why_lines(slow.answer) if slow.answer else [slow.trouble or "nothing is known"]
        task = f"{s.task} {s.pid}"
        texts = [str(number), slow.variant, task, s.lane, ms(s.at_ns - s.ns), ms(s.ns)]
        texts += [where_it_went(s.parts), ", ".join(_short(lines))]
        rows.append(cells(head, texts, looks=["", "", "", "", "", "why", "why"]))
        question = f"{number}: {slow.variant}, {task}, at {ms(middle(s))} ms"
        shown = "\n".join(escape(line) for line in fold("\n".join(lines)).split("\n"))
        answers.append(details(question, f"<pre>{shown}</pre>"))
    if not rows:
        return ""
    queued = any(slow.sample.parts.in_queue for slow in found.slowest)
    caption = (
        f"The longest samples of {found.metric} with seed {found.seed}: where their time went, and what the task "
        f"did at the midpoint{' after a thread took the request' if queued else ''}"
    )
    shown = table(caption, head, rows, cards=True)
    note = f"<p>These are single samples of seed {found.seed}; the slowest of all seeds are above.</p>"
    return f"<h2>The slowest samples</h2>{shown}{note}<h3>What explain says of each</h3>{''.join(answers)}"


def where_it_went(of: Parts) -> str:
    """The parts of one sample, the longest first."""
    parts = {part: ns for part, ns in of.parts.items() if ns}
    found = sorted(parts.items(), key=lambda one: -one[1])
    return "; ".join(f"{SHORT[part]} {ms(ns)} ms{_filled(part, of)}" for part, ns in found)


def _filled(part: str, of: Parts) -> str:
    found = {"throttled": of.pools, "behind": of.before, "stolen": of.thieves, "served": of.servers}.get(part)
    return f" ({names(found, of.parts[part])})" if found else ""


def _short(lines: list[str]) -> list[str]:
    """The state of the task, what runs instead, and by which rule."""
    return [line.strip() for line in lines[:3] if line.strip()]


def _timelines(found: Closer) -> str:
    marks = marks_of(found.divergence, found.slowest, found.pair)
    windows = common_windows(list(found.timelines.values()))
    documents = [document(name, found.timelines[name], windows) for name in found.pair]
    text = (
        f"Both runs with seed {found.seed} on one scale of time. "
        "Hatched times are not on this page in full; write the traces with `--trace DIR` and open one with "
        "`schedlab view` to see everything."
    )
    drawn = timelines(documents, [list(mark) for mark in marks], guests=bool(found.scenario.guests))
    return f"<h2>Timeline</h2><p>{escape(text)}</p>{drawn}"
