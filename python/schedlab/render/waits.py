"""The longest waits of a trace: a line for each, and its cause in a sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from schedlab.native.waited import Ran, Wait, Waiter, Waits
from schedlab.render.cells import plural
from schedlab.render.grid import WIDTH

WAITS_SCHEMA = "schedlab.waits/1"
NAMED = 2
"""So many of the tasks that ran meanwhile are named in a sentence."""
MUCH = 0.1
"""A part of a wait is named if it is at least this share of it."""


def document(trace: str, found: Waits) -> dict[str, Any]:
    """Everything that was counted; keys may be added, never renamed."""
    return {"schema": WAITS_SCHEMA, "file": trace, **found}


def text(trace: str, found: Waits, *, task: str | None, first: int) -> str:
    """The trace, the longest wait of each task (or those of one task), and what to ask next."""
    tasks = found["tasks"]
    kernel = found["kernel"] or "an unknown kernel"
    span = f"{found['span_ns'] / 1e9:.6f} s"
    lines = [f"{trace}: {kernel}, {plural(found['cpus'], 'CPU')}, {found['records']:,} records, {span}"]
    if found["lost"]:
        missing = f"at least {plural(found['lost'], 'record')} missing from the trace"
        lines.append(f"warning: {missing}; waits across the gaps are not counted")
    if not tasks:
        return "\n".join([*lines, "no task waited for a CPU: the trace has no wakeup that a switch follows"])
    if task:
        shown = [(one, wait) for one in tasks for wait in one["longest"]]
        shown.sort(key=lambda pair: -pair[1]["ns"])
        lines += [_summary(one) for one in tasks]
    else:
        shown = [(one, one["longest"][0]) for one in tasks]
        lines.append(f"{plural(len(tasks), 'task')} waited for a CPU; the longest wait of each:")
    shown = shown[:first]
    for one, wait in shown:
        lines += ["", *_entry(one, wait)]
    if not task and len(tasks) > len(shown):
        lines += ["", f"{plural(len(tasks) - len(shown), 'task')} with shorter waits: --first {len(tasks)} lists all"]
    lines += ["", *_next(trace, shown)]
    return "\n".join(lines)


def _summary(one: Waiter) -> str:
    mean = one["total_ns"] / one["waits"]
    return f"{_who(one)} waited {plural(one['waits'], 'time')}, {_ms(one['total_ns'])} in all, {_ms(mean)} on average"


def _entry(one: Waiter, wait: Wait) -> Iterator[str]:
    yield f"{_ms(wait['ns'])}  {_who(one)} from {wait['since_ns'] / 1e9:.6f} s on, CPU {wait['cpu']}"
    yield from textwrap.wrap(cause(wait), WIDTH, initial_indent="  ", subsequent_indent="  ")


def cause(wait: Wait) -> str:
    """What the CPU of the task did while it waited, in one sentence."""
    began = {"woken": "woken", "forked": "forked", "preempted": "preempted"}[wait["began"]]
    parts = [part for part in (_ran(wait), _idle(wait)) if part] or ["what its CPU did is not recorded"]
    said = f"{began}; {' and '.join(parts)}"
    if wait["moved_from"] is not None:
        said += f"; it was moved there from CPU {wait['moved_from']} meanwhile"
    if elsewhere := _elsewhere(wait):
        said += f"; {elsewhere}"
    if wait["cut"]:
        said += "; what happened at its beginning is no longer known"
    return said


def _ran(wait: Wait) -> str:
    """The tasks that ran for a part of it that counts, those of a higher class named as such."""
    ran = [r for r in wait["ran"] if r["ns"] >= MUCH * wait["ns"]][:NAMED] or wait["ran"][:1]
    if not ran or (ran[0]["ns"] < MUCH * wait["ns"] and wait["idle_ns"] > ran[0]["ns"]):
        return ""
    named = " and ".join(f"{_runner(r)} for {_ms(r['ns'])}" for r in ran)
    others = sum(r["tasks"] for r in wait["ran"]) - sum(r["tasks"] for r in ran)
    return f"its CPU ran {named}" + (f" (and {plural(others, 'other task')})" if others else "")


def _runner(ran: Ran) -> str:
    """`nginx/12`, `9 tasks hackbench`, `the real-time task (priority 50) irq/9`."""
    several, rank = ran["pid"] is None, ran["realtime"]
    name = ran["name"] if several else f"{ran['name']}/{ran['pid']}"
    kind = "" if rank is None else "deadline " if rank < 0 else f"real-time (priority {rank}) "
    if several:
        return f"{plural(ran['tasks'], f'{kind}task')} {name}"
    return f"the {kind}task {name}" if kind else name


def _idle(wait: Wait) -> str:
    """Idle while a task waits: the way out of the idle state, or a task that may not run."""
    if wait["idle_ns"] < MUCH * wait["ns"]:
        return ""
    return (
        f"its CPU was idle for {_ms(wait['idle_ns'])} (leaving the idle state, or the quota of its group was used up)"
    )


def _elsewhere(wait: Wait) -> str:
    if wait["idle_elsewhere"] is None:
        return ""
    cpu, ns = wait["idle_elsewhere"]
    if ns < MUCH * wait["ns"]:
        return ""
    return f"CPU {cpu} was idle for {_ms(ns)} of it, if the task may run there"


def _next(trace: str, shown: Sequence[tuple[Waiter, Wait]]) -> Iterator[str]:
    """The command that explains the longest of these waits by the rules of the kernel."""
    if shown:
        one, wait = shown[0]
        middle = (wait["since_ns"] + wait["ns"] // 2) / 1e9
        yield "by which rule the first of them waited:"
        yield f"  schedlab replay {trace} --explain {one['pid']}@{middle:.6f}"


def _who(one: Waiter) -> str:
    return f"{one['name']}/{one['pid']}"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f} ms"
