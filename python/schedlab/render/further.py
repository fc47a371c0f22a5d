"""The commands that go further from a comparison, as lines that can be copied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from schedlab.closer import Closer, middle
from schedlab.comparison import Comparison
from schedlab.render.markup import escape
from schedlab.render.notes import on_real_kernels
from schedlab.render.summary import headline_metric
from schedlab.tail import usable

AROUND = 4
"""A knob is searched from its value divided by this to its value times this."""
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)")


def further(c: Comparison, look: Closer | str | None = None) -> str:
    """The section; empty where no command applies."""
    rows = "".join(
        f"<dt>{escape(what)}</dt><dd><code>{escape(command)}</code></dd>" for what, command in commands(c, look)
    )
    return f'<h2>Go further</h2><dl class="commands">{rows}</dl>' if rows else ""


def commands(c: Comparison, look: Closer | str | None = None) -> Iterator[tuple[str, str]]:
    """What each command answers, and the command."""
    if c.path:
        yield "every number and note as text", shlex.join(["schedlab", "report", str(c.path), "--details"])
    if c.arm != "sim" or not c.pairs or not c.scenario.file:
        return
    overridden = [word for text in c.scenario.overrides for word in ("--set", text)]
    file, (a, b) = [c.scenario.file, *overridden], c.pairs[0]
    explain = ["schedlab", "explain", *file, a, b]
    if metric := sampled(c, a, b):
        of_look = ["--seed", str(look.seed)] if isinstance(look, Closer) else []
        yield "the decisions that slow samples depend on", shlex.join([*explain, "--metric", metric, *of_look])
    yield "the first decision that differs", shlex.join(explain)
    if isinstance(look, Closer) and look.slowest:
        sample, variant = look.slowest[0].sample, look.slowest[0].variant
        seed, at = str(look.seed), f"{middle(sample) / 1e6:.6f}ms"
        yield (
            "one of the slowest samples",
            shlex.join(["schedlab", "explain", *file, variant, "--seed", seed, "--task", str(sample.pid), "--at", at]),
        )
    if len(c.scenario.variants) == 2:
        yield "which difference between the variants matters", shlex.join(["schedlab", "ablate", *file, a, b])
    yield from _tune(c, file, a, b)
    from schedlab.arms import feasible

    if feasible.why_not(c.scenario) is None:
        yield "the same on real kernels", on_real_kernels(c)


def sampled(c: Comparison, a: str, b: str) -> str | None:
    """The samples of the headline metric, if they are durations that a task measures; not in a run with guests, of
    whose kernels `explain` shows one.
    """
    head = headline_metric(c, a, b)
    if head is None or c.arm != "sim" or c.scenario.guests:
        return None
    name = head[0].metric.of
    runs = [run for column in c.columns if column.name in (a, b) for run in column.runs.values()]
    return name if runs and all(usable(run.series.get(name)) for run in runs) else None


def _tune(c: Comparison, file: list[str], a: str, b: str) -> Iterator[tuple[str, str]]:
    """A search around the first knob that the second variant sets."""
    head = headline_metric(c, a, b)
    own = next((v for v in c.scenario.variants if v.name == b), None)
    knobs = dict((own.changes.get("knobs") if own else None) or {})
    known = [(name, found) for name, text in knobs.items() if (found := _NUMBER.fullmatch(str(text)))]
    if head is None or head[0].metric.better == "neither" or not known:
        return
    name, found = known[0]
    low, high = (f"{float(found[1]) * factor:g}{found[2]}" for factor in (1 / AROUND, AROUND))
    way = "--minimise" if head[0].metric.better == "lower" else "--maximise"
    over = f"knobs.{name}={low}..{high}"
    command = ["schedlab", "tune", *file, "--variant", b, way, head[0].metric.name, "--over", over]
    yield f"a better value of {name}", shlex.join(command)
