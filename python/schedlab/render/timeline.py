"""Timelines on a page: an SVG of a short time that needs no script, and the canvas with everything the page holds."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from schedlab.render.markup import escape
from schedlab.timeline import Timeline
from schedlab.timeline.document import packed
from schedlab.timeline.vcpus import pieces, vcpu_spans

PARTS = ("data", "view", "draw", "table", "controls", "main")
"""The scripts in the order in which they are put together; each declares functions that later ones use."""
COLOURS = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#ff9da7", "#9c755f", "#86bcb6", "#d37295"),
    *("#a0cbe8", "#8cd17d"),
)
HUES = len(COLOURS)
LANE, LABEL, WIDTH, HEAD, LETTER = 16, 84, 960, 22, 7
MOST_SLICES = 2_000
LONG_LABEL = 12
"""A label with more letters is set smaller, so that it fits beside its lane."""
_HERE = Path(__file__).parent / "canvas"


def timelines(documents: Sequence[Mapping[str, Any]], marks: Sequence[Sequence[Any]], *, guests: bool = False) -> str:
    """The canvas with its controls; the data follows in a script; the legend has vCPUs only where there are guests."""
    data = packed({"timelines": documents, "marks": marks})
    names = " and ".join(str(one["name"]) for one in documents)
    keys = (
        "Keys: left and right (A, D) move, up and down (W, S) or + and - zoom, Home shows everything, "
        "Tab reaches the buttons. Dragging moves, Ctrl and the wheel zoom. A click on a slice marks its task."
    )
    return (
        f'<div class="timeline" data-timeline><div class="controls"></div>'
        f'<canvas tabindex="0" role="application" aria-label="Timeline of {escape(names)}: CPUs over time" '
        f'aria-describedby="timeline-keys"></canvas><p class="status" role="status"></p>'
        f'<p id="timeline-keys" class="keys">{escape(keys)}</p>{legend(guests=guests)}'
        f'<details class="visible"><summary>What is visible, as a table</summary><div></div></details>'
        f"<noscript><p>The timeline needs JavaScript; the numbers above do not.</p></noscript>"
        f'<script type="application/octet-stream" class="data">{data}</script></div>'
    )


def script() -> str:
    """What draws the canvas."""
    parts = [(_HERE / f"{name}.js").read_text(encoding="utf-8") for name in PARTS]
    return '<script type="module">' + "\n".join(parts) + "</script>"


def legend(*, guests: bool) -> str:
    """What the marks mean, in words."""
    stolen = '<span class="key stolen"></span> the vCPU waits for a CPU of the host ' if guests else ""
    return (
        '<p class="legend"><span class="key slice"></span> a task runs (dark right edge: preempted) '
        '<span class="key queue"></span> tasks waiting on the runqueue '
        '<span class="key gap"></span> idle while a task waits elsewhere '
        f"{stolen}"
        '<span class="key arrow">↘</span> a wakeup, from the waker to where the task runs</p>'
    )


def still(found: Mapping[str, Timeline], start: int, end: int, mark: int | None = None) -> str:
    """An SVG of every lane of each variant from `start` to `end`, in ns."""
    svg, label = _svg(found, start, end, mark)
    return (
        f"<figure>{svg}<figcaption>{escape(label)}. Red below a lane: tasks wait there; a pale red bar: the CPU idles "
        "while a task waits elsewhere; the dashed line: the first difference.</figcaption></figure>"
    )


def standalone(found: Mapping[str, Timeline], start: int, end: int, mark: int | None = None) -> str:
    """The same as a file of its own: with a white ground and the colours of the light page."""
    svg, _ = _svg(found, start, end, mark)
    stolen = ".stolen{fill:#d62728;fill-opacity:.3}" if 'class="stolen"' in svg else ""
    colours = "".join(f".h{i}{{fill:{colour}}}" for i, colour in enumerate(COLOURS))
    style = (
        f"<style>text{{fill:#1b1f24}}.tick{{stroke:#8a929c;stroke-opacity:.4}}.gap{{fill:#d62728;fill-opacity:.25}}"
        f"{stolen}.queue{{fill:#d62728}}.mark{{stroke:#d62728;stroke-dasharray:3 2}}{colours}</style>"
    )
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    head, rest = svg.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{style}{ground}{rest}\n'


def _svg(found: Mapping[str, Timeline], start: int, end: int, mark: int | None = None) -> tuple[str, str]:
    """The picture, and what it shows in words."""
    groups, top = [], HEAD
    for name, timeline in found.items():
        drawn, height = _variant(name, timeline, start, end, top)
        groups.append(drawn)
        top += height
    ticks = "".join(
        f'<text x="{_x(at, start, end):.0f}" y="14" text-anchor="middle">{at / 1e6:.3f} ms</text>'
        f'<line x1="{_x(at, start, end):.1f}" y1="{HEAD - 4}" x2="{_x(at, start, end):.1f}" y2="{top}" class="tick"/>'
        for at in (start + (end - start) * i // 5 for i in range(1, 5))
    )
    if mark is not None:
        x = _x(mark, start, end)
        ticks += f'<line x1="{x:.1f}" y1="{HEAD - 4}" x2="{x:.1f}" y2="{top}" class="mark"/>'
    label = f"What ran on every CPU from {start / 1e6:.3f} to {end / 1e6:.3f} ms: {', '.join(found)}"
    svg = (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {top + 4}" role="img" aria-label="{escape(label)}" '
        f'font-family="system-ui, sans-serif" font-size="11">{ticks}{"".join(groups)}</svg>'
    )
    return svg, label


def hue(name: str) -> int:
    """The colour of all tasks of a program, as one of `COLOURS`."""
    return zlib.crc32(name.split("/")[0].encode()) % HUES


def _variant(name: str, timeline: Timeline, start: int, end: int, top: int) -> tuple[str, int]:
    parts = [f'<text x="4" y="{top + 13}" font-weight="600">{escape(name)}</text>']
    shown = 0
    for i, lane in enumerate(timeline.lanes):
        y = top + HEAD + i * LANE
        small = ' font-size="9"' if len(lane.name) > LONG_LABEL else ""
        parts.append(f'<text x="4" y="{y + 11}"{small}>{escape(lane.name)}</text>')
        parts.append(f'<line x1="{LABEL}" y1="{y + 13}" x2="{WIDTH}" y2="{y + 13}" class="tick"/>')
        for low, high in lane.gaps:
            if low < end and high > start:
                parts.append(_box("gap", low, high, start, end, y + 4, 5))
        spans = vcpu_spans(timeline, lane)
        for low, high in spans.stolen if spans else ():
            if low < end and high > start:
                parts.append(_box("stolen", low, high, start, end, y + 1, 11))
        for s in pieces([s for s in lane.slices if s.start < end and s.end > start], spans):
            if s.start < end and s.end > start and shown < MOST_SLICES:
                shown += 1
                parts.append(_slice(timeline.tasks[s.task], s.start, s.end, start, end, y))
        parts += [
            _box("queue", low, high, start, end, y + 12, 2) for low, high in _waiting(lane.depth, end) if high > start
        ]
    return "".join(parts), HEAD + LANE * len(timeline.lanes) + 8


def _slice(task: tuple[int, str], low: int, high: int, start: int, end: int, y: int) -> str:
    pid, name = task
    box = _box(f"h{hue(name)}", low, high, start, end, y + 1, 11)
    x, right = _x(max(low, start), start, end), _x(min(high, end), start, end)
    text = f"{name} {pid}"
    if right - x < LETTER * len(text):
        return box
    return f'{box}<text x="{x + 3:.1f}" y="{y + 10}" font-size="10" class="name">{escape(text)}</text>'


def _waiting(depth: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """When at least one task waits."""
    spans = pairwise([*depth, (end, 0)])
    return [(time, until) for (time, waiting), (until, _) in spans if waiting and time < end]


def _box(kind: str, low: int, high: int, start: int, end: int, y: int, height: int) -> str:
    x, right = _x(max(low, start), start, end), _x(min(high, end), start, end)
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{max(0.3, right - x):.1f}" height="{height}"/>'


def _x(at: int, start: int, end: int) -> float:
    return LABEL + (WIDTH - LABEL) * (at - start) / max(1, end - start)
