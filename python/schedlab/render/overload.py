"""Whether samples were slow because CPUs were short, as the sentence that ends the cause of a tail."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.render.amounts import share
from schedlab.render.placement import cpu_list
from schedlab.tail import Band, Tail

BUSY, IDLE = 0.9, 0.1
"""The utilisation from which a CPU is called busy, and up to which idle; shares of its time after the warm-up."""
OFTEN = 0.5
"""More runnable tasks than CPUs for this share of the time is often."""
APART = 0.5
"""If the utilisation of two CPUs differs by this much, their mean describes neither."""
SELDOM = 0.1
"""Below this share of the time, an idle CPU while a task waits elsewhere is not reported as a cause."""
WAITS = ("queued", "behind", "stolen")
"""The parts of a sample that a lack of CPUs makes longer."""


def overload(tail: Tail, part: str, slow: Band) -> str:
    """How busy the CPUs of the host were, and whether a lack of CPUs explains a tail whose largest part is `part`."""
    use = uses(tail)
    if max(use) - min(use) >= APART:
        return _uneven(tail, part, use)
    over, lost = (_of_time(tail, what) for what in ("over", "lost"))
    text = (
        f"The CPUs were {share(sum(use), len(use))} busy, and more tasks were runnable than there are CPUs for "
        f"{share(over, 1)} of the time"
    )
    if part in WAITS and over > OFTEN and lost < SELDOM:
        return f"{text}: overloaded, so some tasks must wait; the scheduler chooses which."
    behind = slow.parts.parts["behind"]
    if part == "behind" and 2 * slow.parts.elsewhere > behind:
        idle = share(slow.parts.elsewhere, behind)
        return f"{text}. For {idle} of that wait another CPU was idle: unless affinity forbade it, a CPU was available."
    if part in WAITS and lost >= SELDOM:
        return (
            f"{text}. For {share(lost, 1)} of the time a CPU was idle while a task waited on the runqueue of another "
            "one, so a lack of CPUs is not the whole cause; affinity is not considered."
        )
    return f"{text}."


def _uneven(tail: Tail, part: str, use: Sequence[float]) -> str:
    """Of a machine whose CPUs are used differently: how busy which ones are, and how many tasks wait for the busy."""
    full = [cpu for cpu, one in enumerate(use) if one >= BUSY]
    idle = [cpu for cpu, one in enumerate(use) if one <= IDLE]
    rest = [cpu for cpu in range(len(use)) if cpu not in full and cpu not in idle]
    text = ", ".join(_group(cpus, use) for cpus in (full, rest, idle) if cpus)
    used = full or rest
    loads = [one.loads[0] for one in tail.seeds]
    waiting = sum(one.waiting[cpu] for one in loads for cpu in used) / max(1, sum(one.time for one in loads))
    noun = "task" if f"{waiting:.2g}" == "1" else "tasks"
    text += f"; on average {waiting:.2g} {noun} waited for {_cpus(used)}"
    if part in WAITS and full and waiting >= 1:
        verb, others = "was" if len(full) == 1 else "were", _cpus(sorted([*rest, *idle]))
        return (
            f"{text}, which {verb} overloaded: some tasks must wait unless they may run on {others} (affinity is not "
            "looked at); the scheduler chooses which."
        )
    return f"{text}."


def _group(cpus: Sequence[int], use: Sequence[float]) -> str:
    low, high = (share(find(use[cpu] for cpu in cpus), 1) for find in (min, max))
    busy = low if low == high else f"{low.removesuffix('%')} to {high}"
    verb = "was" if len(cpus) == 1 else "were"
    state = "idle" if max(use[cpu] for cpu in cpus) < 0.01 else f"{busy} busy"
    return f"{_cpus(cpus)} {verb} {state}"


def _cpus(cpus: Sequence[int]) -> str:
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}"


def uses(tail: Tail) -> list[float]:
    """The use of each CPU of the host over all seeds, 0 to 1."""
    loads = [one.loads[0] for one in tail.seeds]
    whole = max(1, sum(one.time for one in loads))
    return [sum(one.busy[cpu] for one in loads) / whole for cpu in range(len(loads[0].busy))]


def _of_time(tail: Tail, what: str) -> float:
    """A share of the time of the host over all seeds."""
    loads = [one.loads[0] for one in tail.seeds]
    held: int = sum(getattr(one, what) for one in loads)
    return held / max(1, sum(one.time for one in loads))
