"""A runqueue at one moment as a table: the input of a pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedlab.native.decisions import EntityView, QueueView
from schedlab.render.grid import NOTHING, columns

SHOWN = 5


def ms(ns: float | None) -> str:
    """Milliseconds, exact to the nanosecond."""
    return NOTHING if ns is None else f"{ns / 1e6:,.6f}"


def task(pid: int, names: Mapping[str, str]) -> str:
    """A task for people; 0 is idle."""
    if pid == 0:
        return "idle"
    name = names.get(str(pid))
    return f"{name} ({pid})" if name else f"pid {pid}"


def group(number: int, groups: Mapping[str, str]) -> str:
    """A task group for people: its path, where that is known."""
    return f"group {groups.get(str(number), number)}"


def queue_lines(
    view: QueueView,
    names: Mapping[str, str],
    keep: Sequence[int] = (),
    groups: Mapping[str, str] | None = None,
) -> list[str]:
    """At most `SHOWN` entities: the running one, those in `keep`, then in the order of the tree. Times in ms."""
    entities = view["entities"]
    above = _above(view, names, groups or {})
    if not entities:
        return above or ["  the queue is empty"]
    first = [e for e in entities if e["state"] in ("running", "leaving") or (e["pid"] and e["pid"] in keep)]
    shown = (first + [e for e in entities if e not in first])[:SHOWN]
    eevdf = view["avg_vruntime"] is not None
    head = ["task", "state", "weight", "v"]
    rows = [head + (["lag", "deadline", "eligible", "protected"] if eevdf else []) + ["slice", "ran"]]
    for e in (e for e in entities if e in shown):
        cells = [_who(e, names, groups or {}), e["state"] + _buddy(view, e["pid"]), str(e["weight"]), ms(e["vruntime"])]
        if eevdf:
            cells += [ms(e["lag"]), ms(e["deadline"]), _yes(e["eligible"]), _yes(e["protected"])]
        rows.append([*cells, ms(e["slice_ns"]), ms(e["ran_ns"])])
    lines = above + columns(rows, "<<" + ">" * (len(rows[0]) - 2), indent=2)
    more = len(entities) - len(shown)
    return lines + ([f"  and {more} more"] if more else [])


def _above(view: QueueView, names: Mapping[str, str], groups: Mapping[str, str]) -> list[str]:
    """What is not on the fair queue: deadline and real-time tasks, and groups that were removed from it."""
    lines = []
    for e in view.get("deadline", ()):
        state = "running" if e["running"] else "waiting"
        left = f"deadline at {ms(e['deadline_ns'])} ms, {ms(e['runtime_left_ns'])} ms of its runtime left"
        lines.append(f"  {task(e['pid'], names)} {state}, SCHED_DEADLINE, {left}")
    for rt in view.get("real_time", ()):
        state = "running" if rt["running"] else "waiting"
        lines.append(f"  {task(rt['pid'], names)} {state}, SCHED_{rt['policy']} priority {rt['priority']}")
    throttled = [group(number, groups) for number in view.get("throttled", ())]
    return lines + ([f"  throttled here: {', '.join(throttled)}"] if throttled else [])


def _who(entity: EntityView, names: Mapping[str, str], groups: Mapping[str, str]) -> str:
    who = task(entity["pid"], names) if entity["group"] is None else group(entity["group"], groups)
    return f"{'  ' * entity['depth']}{who}"


def _buddy(view: QueueView, pid: int) -> str:
    return "".join(f" ({word})" for word in ("next", "last", "skip") if pid and view[word] == pid)


def _yes(flag: bool | None) -> str:
    return NOTHING if flag is None else "yes" if flag else "no"
