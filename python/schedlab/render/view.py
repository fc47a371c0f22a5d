"""The page of `schedlab view`: timelines in full, and how long the longest wakeups took."""

from __future__ import annotations

from collections.abc import Mapping

from schedlab.render.markup import cells, escape, table
from schedlab.render.page import document as page
from schedlab.render.queue import ms
from schedlab.render.timeline import script, timelines
from schedlab.timeline import Timeline
from schedlab.timeline.document import document
from schedlab.timeline.reduce import WAKEUP_LATENCY

WORST = 5


def view_page(title: str, found: Mapping[str, Timeline], first_difference: int | None = None) -> str:
    """Every slice of every timeline. Several recorded traces begin together; simulated runs share their clock."""
    origins = _origins(found)
    documents = [document(name, one, [(one.start, one.end)], origin=origins[name]) for name, one in found.items()]
    marks: list[list[object]] = []
    if first_difference is not None:
        marks.append(["first difference", first_difference, 600_000])
    for name, one in found.items():
        for worst in one.slowest.get(WAKEUP_LATENCY, ())[:1]:
            at = worst.at_ns - worst.ns // 2 - origins[name]
            marks.append([f"slowest wakeup in {name}", at, max(200_000, 2 * worst.ns)])
    guests = any(" CPU " in lane.name for one in found.values() for lane in one.lanes)
    shown = timelines(documents, marks, guests=guests)
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(_size(found))}</p>", shown, *_worst(found)]
    return page(title, body, charts=False, extra=[script()])


def _origins(found: Mapping[str, Timeline]) -> dict[str, int]:
    """What is time 0 of each: the same for all if they overlap, else the beginning of each."""
    starts, ends = [one.start for one in found.values()], [one.end for one in found.values()]
    apart = len(found) > 1 and max(starts, default=0) > min(ends, default=0)
    return {name: one.start if apart else 0 for name, one in found.items()}


def _size(found: Mapping[str, Timeline]) -> str:
    parts = [f"{name}: {one.slices:,} slices on {len(one.lanes)} CPUs" for name, one in found.items()]
    return "; ".join(parts) + "."


def _worst(found: Mapping[str, Timeline]) -> list[str]:
    head = ["trace", "task", "where", "woken at, ms", "waited, ms"]
    rows = []
    for name, one in found.items():
        for s in one.slowest.get(WAKEUP_LATENCY, ())[:WORST]:
            task = next((f"{comm} {pid}" for pid, comm in reversed(one.tasks) if pid == s.pid), str(s.pid))
            rows.append(cells(head, [name, task, one.lanes[s.lane].name, ms(s.at_ns - s.ns), ms(s.ns)]))
    caption = "The longest times from sched_waking until the task ran"
    return [f"<h2>Longest wakeups</h2>{table(caption, head, rows, cards=True)}"] if rows else []
