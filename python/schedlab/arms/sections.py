"""Measures the kernel sections of system calls: where they may reschedule, and for how long they hold spinlocks.

A guest whose clock counts instructions makes each call first with only its beginning and end recorded, and then with a
probe at every `__cond_resched` and every spinlock. The difference is the cost of the probes, which is subtracted.
might_sleep() reaches `__cond_resched` only under `voluntary`, cond_resched() under `none` too, so their callers
distinguish the two.

Left out: sections that disable preemption or interrupts without a spinlock, checks of the flag that call nothing
(`zap_pte_range`), calls that block, and wakeups.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

NS_PER_INSTRUCTION = 2
"""`-icount shift=1`: the guest's clock advances by this with each instruction."""

RECORD = re.compile(r"^.{16}-(\d+) +\[\d+\] (\S+) +(\d+): (\w+): ?(.*)$")
MARKED = re.compile(r"schedlab (\S+) (\d+) (-?\d+)$")
NUMBER = re.compile(r"NR (-?\d+)")
CALLER = re.compile(r"ra=(\S+)")
LOCK = re.compile(r"l=(\S+)")
PREVIOUS = re.compile(r"prev_pid=(\d+)")
FAULT = -1
LOOPS = frozenset({"munmap", "fork", "exit", "exec"})
"""Calls that copy or clear page tables."""
RARE = frozenset({"fault-drain"})
"""Calls of which only the long ones are meant: of 31 faults in succession one drains the batch of new pages."""
POINT = "resched"


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of a probe: a check point, at which the kernel may reschedule, or one end of a spinlock."""

    time: int
    probe: str
    caller: str
    lock: str = ""


@dataclass(slots=True)
class Trip:
    """One system call or page fault."""

    begin: int
    number: int
    end: int = 0
    hits: list[Hit] = field(default_factory=list)
    disturbed: bool = False
    """An interrupt occurred or another task ran in between."""


Key = tuple[str, int]
"""Name of a call and KiB that it works on."""
BASE: Key = ("getppid", 0)
"""Its time is that of entering and leaving the kernel with the records of both. Its beginning has a probe."""


def trips(lines: Iterable[str]) -> dict[Key, list[Trip]]:
    """The announced calls of a trace, without those that were disturbed."""
    announced: dict[int, tuple[Key, int]] = {}
    under_way: dict[int, tuple[Key, Trip]] = {}
    found: dict[Key, list[Trip]] = {}
    for line in lines:
        if not (record := RECORD.match(line)):
            continue
        pid, flags, time, name, rest = int(record[1]), record[2], int(record[3]), record[4], record[5]
        ends = name == "sched_switch" and _leaves(pid, rest, under_way)
        for other, (_, trip) in under_way.items():
            trip.disturbed |= not ends and (other != pid or flags[2] != "." or name == "sched_switch")
        if mark := MARKED.search(rest):
            announced[pid] = ((mark[1], int(mark[2])), int(mark[3]))
        elif _begins(name, rest, announced.get(pid)):
            key, number = announced.pop(pid)
            under_way[pid] = (key, Trip(time, number))
        elif pid in under_way:
            key, trip = under_way[pid]
            if ends or _is_end(name, rest, trip.number):
                del under_way[pid]
                trip.end = time
                found.setdefault(key, [])
                if not trip.disturbed:
                    found[key].append(trip)
            elif caller := CALLER.search(rest):
                lock = LOCK.search(rest)
                trip.hits.append(Hit(time, name, caller[1], lock[1] if lock else ""))
    return found


def _begins(name: str, rest: str, announced: tuple[Key, int] | None) -> bool:
    if announced is None:
        return False
    if announced[1] == FAULT:
        return name == "page_fault_user"
    entered = NUMBER.match(rest) if name == "sys_enter" else None
    return entered is not None and int(entered[1]) == announced[1]


def _is_end(name: str, rest: str, number: int) -> bool:
    if number == FAULT:
        return name == "faulted"
    left = NUMBER.match(rest) if name == "sys_exit" else None
    return left is not None and int(left[1]) == number


def _leaves(pid: int, rest: str, under_way: Mapping[int, tuple[Key, Trip]]) -> bool:
    """The last switch of a task that exits, which its call does not return from."""
    previous = PREVIOUS.search(rest)
    state = re.search(r"prev_state=(\w)", rest)
    exits = state is not None and state[1] in "XZ"
    return exits and pid in under_way and previous is not None and int(previous[1]) == pid


@dataclass(frozen=True, slots=True)
class Point:
    """A point at which the kernel may reschedule, in instructions from the beginning of the call."""

    at: int
    might_sleep: bool
    caller: str


@dataclass(frozen=True, slots=True)
class Locked:
    """A section under a spinlock, in instructions; nested ones are part of the outermost."""

    begin: int
    end: int
    irq_off: bool
    caller: str

    @property
    def length(self) -> int:
        """How long it is held."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Call:
    """The sections of a call. Lengths are in instructions."""

    name: str
    kib: int
    length: int
    points: tuple[Point, ...]
    locks: tuple[Locked, ...]
    trips: int
    """How often it was carried out undisturbed with probes."""

    def longest(self, *, voluntary: bool) -> int:
        """The longest stretch between two check points of a model, or one and the call's beginning or end."""
        at = [0, *(p.at for p in self.points if voluntary or not p.might_sleep), self.length]
        return max(later - earlier for earlier, later in itertools.pairwise(at))

    def is_page_table_loop(self, lock: Locked) -> bool:
        """Whether it is the lock of a page table in a call that copies or clears many of its entries. These loops
        look at the flag at every page (`zap_pte_range`) or every four (`copy_pte_range`), and leave it if it is set."""
        return self.name in LOOPS and lock.caller.startswith("__pte_offset_map_lock")

    def longest_lock(self, *, irq_off: bool = False) -> Locked | None:
        """The longest time under a spinlock."""
        locks = [lock for lock in self.locks if lock.irq_off or not irq_off]
        return max(locks, key=lambda lock: lock.length, default=None)


@dataclass(frozen=True, slots=True)
class Frame:
    """What entering and leaving the kernel adds to the times of a call, in ns."""

    length: float
    """To the time from its beginning to its end."""
    first: float
    """To the time from its beginning to a probe at the first instruction of the call."""


@dataclass(frozen=True, slots=True)
class Table:
    """The calls that were measured, and those that were not."""

    calls: tuple[Call, ...]
    absent: Mapping[str, str]
    probe: int
    """Instructions that a probe costs, the median of all calls."""


def table(bare: Iterable[str], voluntary: Iterable[str], none: Iterable[str]) -> Table:
    """The sections of every call, from three traces of the same calls."""
    plain, probed = _meant(trips(bare)), _meant(trips(voluntary))
    always = {hit.caller for runs in trips(none).values() for run in runs for hit in run.hits if hit.probe == POINT}
    frame = Frame(
        _median(trip.end - trip.begin for trip in plain.get(BASE, [])),
        _median(trip.hits[0].time - trip.begin for trip in probed.get(BASE, []) if trip.hits),
    )
    costs = [cost for key in probed if (cost := _probe_cost(plain.get(key, []), probed[key])) is not None]
    usual = statistics.median(costs) if costs else 0.0
    calls, absent = [], {}
    for key in dict.fromkeys([*plain, *probed]):
        runs, bare_runs = probed.get(key, []), plain.get(key, [])
        if not runs or not bare_runs:
            absent[_words(key)] = "every call was interrupted"
        elif key != BASE:
            cost = _probe_cost(bare_runs, runs)
            calls.append(_call(key, bare_runs, runs, always, usual if cost is None else cost, frame))
    batch = _free_batch(calls)
    return Table((*calls, batch) if batch else tuple(calls), absent, round(usual / NS_PER_INSTRUCTION))


def _meant(found: Mapping[Key, list[Trip]]) -> dict[Key, list[Trip]]:
    """The trips of each call; of a rare one those at least half as long as the longest."""
    longest = {key: max((t.end - t.begin for t in runs), default=0) for key, runs in found.items()}
    return {
        key: [t for t in runs if key[0] not in RARE or 2 * (t.end - t.begin) >= longest[key]]
        for key, runs in found.items()
    }


def _free_batch(calls: Iterable[Call]) -> Call | None:
    """The freeing of one batch of pages, cut out of the largest munmap: from one of its longest sections with
    interrupts disabled (the lock of the lists of reclaim) to the next, a batch of typical length."""
    munmap = max((call for call in calls if call.name == "munmap"), key=lambda call: call.kib, default=None)
    longest = munmap.longest_lock(irq_off=True) if munmap else None
    if munmap is None or longest is None:
        return None
    begins = [lock.begin for lock in munmap.locks if lock.irq_off and 4 * lock.length > 3 * longest.length]
    spans = sorted(itertools.pairwise(begins), key=lambda span: span[1] - span[0])
    if not spans:
        return None
    begin, end = spans[len(spans) // 2]
    locks = tuple(
        Locked(lock.begin - begin, lock.end - begin, lock.irq_off, lock.caller)
        for lock in munmap.locks
        if begin <= lock.begin and lock.end <= end
    )
    return Call("free-batch", 0, end - begin, (), locks, munmap.trips)


def _words(key: Key) -> str:
    return f"{key[0]} of {key[1]} KiB" if key[1] else key[0]


def _median(values: Iterable[int]) -> float:
    found = list(values)
    return statistics.median(found) if found else 0.0


def _probe_cost(bare: Sequence[Trip], probed: Sequence[Trip]) -> float | None:
    """ns that each probe adds to a call; None if the call has none."""
    hits = _median(len(trip.hits) for trip in probed)
    if not hits or not bare:
        return None
    return (_median(t.end - t.begin for t in probed) - _median(t.end - t.begin for t in bare)) / hits


def _call(key: Key, bare: Sequence[Trip], probed: Sequence[Trip], always: set[str], cost: float, frame: Frame) -> Call:
    """The typical call: the trip of median length among those with the most frequent number of probes."""
    usual = Counter(len(trip.hits) for trip in probed).most_common(1)[0][0]
    same = sorted((trip for trip in probed if len(trip.hits) == usual), key=lambda trip: trip.end - trip.begin)
    trip = same[len(same) // 2]
    length = max(0, round((_median(t.end - t.begin for t in bare) - frame.length) / NS_PER_INSTRUCTION))

    def at(nth: int, time: int) -> int:
        """The time without the cost of the probes so far."""
        return min(length, max(0, round((time - trip.begin - nth * cost - frame.first) / NS_PER_INSTRUCTION)))

    # A probe costs slightly more or less each time, which must not reverse the order.
    times = itertools.accumulate((at(nth, hit.time) for nth, hit in enumerate(trip.hits)), max)
    seen = list(zip(times, trip.hits, strict=True))
    points = [Point(time, hit.caller not in always, hit.caller) for time, hit in seen if hit.probe == POINT]
    locks = _locks((time, hit) for time, hit in seen if hit.lock)
    return Call(*key, length, tuple(points), tuple(locks), len(probed))


def _locks(ends: Iterable[tuple[int, Hit]]) -> Iterator[Locked]:
    """The outermost pairs of lock and unlock. A trylock that fails has no unlock and is dropped at the next lock."""
    held: dict[str, tuple[int, Hit]] = {}
    for at, hit in ends:
        if "unlock" not in hit.probe:
            held[hit.lock] = (at, hit)
        elif hit.lock in held:
            begin, first = held.pop(hit.lock)
            irq_off = first.probe.endswith(("_irq", "_irqsave"))
            if not any(other[0] <= begin and "try" not in other[1].probe for other in held.values()):
                yield Locked(begin, at, irq_off, first.caller)
