"""Whether the machine was overloaded: use of the CPUs, runqueues, and whose CPU time it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schedlab.render.amounts import names, share, time
from schedlab.render.causes import by_thirds
from schedlab.render.markup import cells, details, escape, table
from schedlab.tail import Load, Tail

if TYPE_CHECKING:
    from schedlab.comparison import Column

MOST_CPUS = 256
"""Larger machines have no table of single CPUs."""


def capacity(tails: Sequence[Tail], columns: Sequence[Column], metric: str, machine: Mapping[str, Any]) -> str:
    """The section of a page: a row per question, a column per variant; `machine` as the scenario describes it."""
    head = ["load", *(one.variant for one in tails)]
    rows = []
    kernels = [load.kernel for load in tails[0].seeds[0].loads]
    guests = [kernel for kernel in kernels if kernel]
    for kernel in kernels:
        loads = [[_of(one.loads, kernel) for one in tail.seeds] for tail in tails]
        of = f" of guest {kernel}" if kernel else ""
        rows += [(f"{label}{of}", [answer(own) for own in loads]) for label, answer in QUESTIONS]
    by_name = {column.name: column for column in columns}
    shown_of = [by_name[one.variant] for one in tails]
    rows.append(("whose CPU time, of all CPUs", [_programs(column, guests) for column in shown_of]))
    for guest in guests:
        label = f"whose time on the vCPUs of guest {guest}, stolen time included"
        rows.append((label, [_inside(column, guest, tail) for column, tail in zip(shown_of, tails, strict=True)]))
    rows.append((f"mean {metric} by thirds of the run", [_growth(one) for one in tails]))
    shown = [cells(head, [label, *answers], looks=["why"] * len(answers)) for label, answers in rows]
    caption = "Use of the CPUs after the warm-up, over all seeds"
    shown_table = table(caption, head, shown, cards=True, words=True)
    threads = "".join(f"<p>{escape(text)}</p>" for text in _threads(machine))
    return f"<h2>Was the machine overloaded?</h2>{threads}{shown_table}{_each(tails)}"


def _threads(machine: Mapping[str, Any]) -> list[str]:
    """A note that CPUs which share a core are not worth a core each, with the rates of the machine file."""
    cores, cpus = machine["topology"].get("cores", ()), machine["cpus"]
    if not cores or len(cores) == cpus:
        return []
    source = next((s.partition(": ")[2] for s in machine["sources"] if str(s).startswith("topology: ")), "")
    more = f" ({source})" if source else ""
    return [
        f"The {cpus} CPUs are threads of {len(cores)} cores{more}: a CPU is slower while the other threads of its core "
        f"are busy, so a load that is set to a share of {cpus} CPUs may need more than that share of their time."
    ]


def _of(loads: Sequence[Load], kernel: str) -> Load:
    return next(one for one in loads if one.kernel == kernel)


def _use(loads: Sequence[Load]) -> str:
    return share(sum(sum(one.busy) for one in loads), _capacity(loads))


def _extremes(loads: Sequence[Load]) -> str:
    each = _by_cpu(loads, "busy")
    low, high = min(range(len(each)), key=lambda i: each[i]), max(range(len(each)), key=lambda i: each[i])
    total = sum(one.time for one in loads)
    return f"CPU {high} {share(each[high], total)}, CPU {low} {share(each[low], total)}"


def _runnable(loads: Sequence[Load]) -> str:
    mean = sum(one.runnable for one in loads) / max(1, _capacity(loads))
    return f"{mean:.2f} per CPU; at most {max(one.most for one in loads)} on {len(loads[0].busy)} CPUs"


def _time(loads: Sequence[Load], what: str) -> str:
    return share(sum(getattr(one, what) for one in loads), sum(one.time for one in loads))


def _queues(loads: Sequence[Load]) -> str:
    each = _by_cpu(loads, "waiting")
    total = max(1, sum(one.time for one in loads))
    longest = max(range(len(each)), key=lambda i: each[i])
    return f"{sum(each) / len(each) / total:.2f}; most on CPU {longest}, {each[longest] / total:.2f}"


def _capacity(loads: Sequence[Load]) -> int:
    return sum(one.time * len(one.busy) for one in loads)


def _by_cpu(loads: Sequence[Load], what: str) -> list[int]:
    return [sum(times) for times in zip(*(getattr(one, what) for one in loads), strict=True)]


QUESTIONS = (
    ("CPU time in use", _use),
    ("busiest and idlest CPU", _extremes),
    ("runnable tasks, those that run included", _runnable),
    ("time with more runnable tasks than CPUs", lambda loads: _time(loads, "over")),
    ("time with every CPU busy", lambda loads: _time(loads, "full")),
    ("time with an idle CPU while a task waits on another", lambda loads: _time(loads, "lost")),
    ("tasks waiting on a runqueue, mean", _queues),
)


def _programs(column: Column, guests: Sequence[str]) -> str:
    """Shares of the capacity of the host by program; what runs in a guest is part of the time of its vCPU threads."""
    found: Counter[str] = Counter()
    whole = 0.0
    for run in column.runs.values():
        whole += run.record.get("measured_ns", 1e9 * run.sim_s) * max(1, len(run.record.get("cpus", ())))
        for task in run.tasks:
            program = task.name.split("/")[0]
            if ":" not in program or program.split(":")[0] not in guests:
                found[f"vCPUs of {program}" if program in guests else program] += task.cpu_ns
    return names(found, whole)


def _inside(column: Column, guest: str, tail: Tail) -> str:
    """Shares of the time of a guest's vCPUs by program."""
    found: Counter[str] = Counter()
    whole = 0.0
    for run in column.runs.values():
        vcpus = next((len(load.busy) for load in tail.seeds[0].loads if load.kernel == guest), 1)
        whole += run.record.get("measured_ns", 1e9 * run.sim_s) * vcpus
        for task in run.tasks:
            if task.name.startswith(f"{guest}:"):
                found[task.name.removeprefix(f"{guest}:").split("/")[0]] += task.cpu_ns
    return names(found, whole)


def _growth(tail: Tail) -> str:
    """Latency that grows over the run means that more work arrives than can be done."""
    thirds = by_thirds(tail.seeds)
    return ", ".join(time(ns) if ns is not None else "-" for ns in thirds)


def _each(tails: Sequence[Tail]) -> str:
    cpus = len(tails[0].seeds[0].loads[0].busy)
    if cpus > MOST_CPUS:
        return ""
    head = ["CPU", *(f"{one.variant}, {what}" for one in tails for what in ("busy", "tasks waiting"))]
    rows = [cells(head, [f"CPU {cpu}", *_row(tails, cpu)]) for cpu in range(cpus)]
    return details("Every CPU", table("Use of every CPU after the warm-up, over all seeds", head, rows))


def _row(tails: Sequence[Tail], cpu: int) -> Iterable[str]:
    for tail in tails:
        loads = [one.loads[0] for one in tail.seeds]
        total = sum(one.time for one in loads)
        yield share(sum(one.busy[cpu] for one in loads), total)
        yield f"{sum(one.waiting[cpu] for one in loads) / max(1, total):.2f}"
