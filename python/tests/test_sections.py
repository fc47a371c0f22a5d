"""Kernel sections of system calls: what is read from the traces of a guest, and the table that is published."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from schedlab.arms import section_file, sections

ROOT = Path(__file__).parents[2]

PROBE_NS = 2000
"""What a made-up probe adds; half of it before its time is read."""


class Guest:
    """A made-up trace of one task."""

    def __init__(self, probed: bool, pid: int = 7) -> None:
        self.lines, self.now, self.probed, self.pid = ["# tracer: nop"], 1000, probed, pid

    def line(self, after_ns: int, text: str, flags: str = ".....", pid: int = 0) -> None:
        self.now += after_ns
        self.lines.append(f"{'agent':>16}-{pid or self.pid:<7} [000] {flags} {self.now:>12}: {text}")

    def probe(self, after_ns: int, name: str, caller: str, lock: str = "") -> None:
        if not self.probed:
            self.now += after_ns
            return
        self.line(after_ns + PROBE_NS // 2, f"{name}: ({name}+0x4/0x70) ra={caller}{lock and f' l={lock}'}")
        self.now += PROBE_NS // 2

    def begin(self, name: str, kib: int, number: int) -> None:
        self.line(10, f"tracing_mark_write: schedlab {name} {kib} {number}")
        self.line(10, "sys_exit: NR 1 = 20")
        self.line(10, f"sys_enter: NR {number} (3, 0)" if number >= 0 else "page_fault_user: address=0x1 ip=0x2")
        self.now += 300

    def getppid(self) -> None:
        """The beginning of a call is 300 ns behind its record, and so is the end before its own."""
        self.begin("getppid", 0, 110)
        self.probe(0, "reference", "x64_sys_call+0x1", "0x1")
        self.line(300, "sys_exit: NR 110 = 1")


def calls(probed: bool, voluntary: bool, disturbed: int | None = None) -> list[str]:
    """Five reads of 64 KiB of 10,000 ns each; the one with number `disturbed` is interrupted."""
    guest = Guest(probed)
    for nth in range(5):
        guest.getppid()
        guest.begin("read-file", 64, 295)
        if voluntary:
            guest.probe(1000, "resched", "mutex_lock+0x12/0x30")
        else:
            guest.now += 1000
        guest.probe(1000, "spin_lock_irqsave", "outer+0x1/0x2", "0xa")
        guest.probe(400, "spin_lock", "inner+0x1/0x2", "0xb")
        guest.probe(200, "spin_unlock", "inner+0x2/0x2", "0xb")
        guest.probe(1400, "spin_unlock_irqrestore", "outer+0x2/0x2", "0xa")
        if nth == disturbed:
            guest.line(0, "local_timer_entry: vector=236", flags="d.h1.")
            guest.now += 50_000
        guest.probe(3000, "resched", "filemap_read+0x1/0x2")
        guest.line(3300, "sys_exit: NR 295 = 65536")
    return guest.lines


def test_points_and_locks_are_found_without_the_cost_of_the_probes() -> None:
    found = sections.table(calls(False, True), calls(True, True), calls(True, False))
    (call,) = found.calls
    assert (call.name, call.kib, call.length, found.probe) == ("read-file", 64, 5000, PROBE_NS // 2)
    assert [(p.at, p.might_sleep) for p in call.points] == [(500, True), (3500, False)]
    assert (call.longest(voluntary=False), call.longest(voluntary=True)) == (3500, 3000)
    # The inner lock is part of the outer one.
    assert [(lock.begin, lock.end, lock.irq_off) for lock in call.locks] == [(1000, 2000, True)]


@pytest.mark.parametrize("disturbed", [0, 4])
def test_a_call_with_an_interrupt_does_not_count(disturbed: int) -> None:
    found = sections.table(calls(False, True, disturbed), calls(True, True, disturbed), calls(True, False))
    assert [(call.length, call.trips) for call in found.calls] == [(5000, 4)]


def test_a_call_that_is_always_interrupted_is_named() -> None:
    plain = Guest(False)
    plain.getppid()
    plain.begin("exit", 4096, 231)
    plain.line(100, "local_timer_entry: vector=236", flags="d.h1.")
    plain.line(100, "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=Z ==> next_comm=b next_pid=8")
    found = sections.table(plain.lines, plain.lines, plain.lines)
    assert not found.calls
    assert found.absent == {"exit of 4096 KiB": "every call was interrupted"}


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (231, "sched_switch: prev_comm=agent prev_pid=7 prev_prio=120 prev_state=Z ==> next_comm=b next_pid=8"),
        (-1, "faulted: (do_user_addr_fault+0x1 <- handle_mm_fault)"),
        (59, "sys_exit: NR 59 = 0"),
    ],
)
def test_every_kind_of_call_has_its_end(number: int, end: str) -> None:
    guest = Guest(False)
    guest.begin("any", 4, number)
    guest.line(700, end)
    assert [trip.end - trip.begin for trip in sections.trips(guest.lines)["any", 4]] == [1000]


def test_the_table_is_toml() -> None:
    found = sections.table(calls(False, True), calls(True, True), calls(True, False))
    document = tomllib.loads(section_file.text(found, "here", "6.12.107", date(2026, 11, 24)))
    (call,) = document["sections"]
    assert call["points-of"] == ["filemap_read 1", "mutex_lock 1"]
    assert (call["cond-resched"], call["might-sleep"]) == ([3500], [500])
    assert (call["spinlock"], call["irq-off"], call["page-table"]) == ([], [[1000, 2000]], [])


@pytest.mark.parametrize(
    ("name", "caller", "loop"),
    [
        ("fork", "__pte_offset_map_lock+0x8/0x9", True),
        ("fault", "__pte_offset_map_lock+0x8/0x9", False),
        ("fork", "wake_up_new_task+0x8/0x9", False),
    ],
)
def test_loops_over_page_tables_are_apart(name: str, caller: str, loop: bool) -> None:
    lock = sections.Locked(10, 90, False, caller)
    call = sections.Call(name, 4, 100, (), (lock,), 9)
    assert call.is_page_table_loop(lock) == loop


def test_of_faults_in_succession_only_those_that_drain_the_batch_count() -> None:
    guest = Guest(False)
    guest.getppid()
    for drains in [False] * 20 + [True] + [False] * 10:
        for name in ("fault-clear", "fault-drain"):
            guest.begin(name, 4, -1)
            guest.line(39_700 if drains else 1_700, "faulted: (do_user_addr_fault+0x1 <- handle_mm_fault)")
    lengths = {call.name: call.length for call in sections.table(guest.lines, guest.lines, guest.lines).calls}
    assert lengths == {"fault-clear": 700, "fault-drain": 19_700}


def munmaps(probed: bool) -> list[str]:
    """Calls that free batches of 4,000 ns, 1,600 of them under the lock of the lists and 1,200 under that of free
    pages, and before them a part of a batch."""
    guest = Guest(probed)
    guest.getppid()
    for kib, batches in ((64, 2), (4096, 6)):
        guest.begin("munmap", kib, 11)
        for lists, free in [(300, 200)] + [(1600, 1200)] * batches:
            guest.probe(600, "spin_lock_irqsave", "folios_put_refs+0x1/0x2", "0xa")
            guest.probe(lists, "spin_unlock_irqrestore", "folios_put_refs+0x2/0x2", "0xa")
            guest.probe(400, "spin_lock", "free_unref_folios+0x1/0x2", "0xb")
            guest.probe(free, "spin_unlock", "free_unref_folios+0x2/0x2", "0xb")
            guest.now += 200
        guest.line(400, "sys_exit: NR 11 = 0")
    return guest.lines


def test_a_batch_is_cut_out_of_the_largest_munmap() -> None:
    found = {(call.name, call.kib): call for call in sections.table(munmaps(False), munmaps(True), munmaps(True)).calls}
    batch = found["free-batch", 0]
    assert batch.length == 2000
    assert [(lock.begin, lock.end, lock.irq_off) for lock in batch.locks] == [(0, 800, True), (1000, 1600, False)]
    assert found["munmap", 4096].length > 6 * batch.length


@pytest.mark.parametrize(
    ("words", "why"),
    [((), "--arm vm"), (("--arm", "host"), "--arm vm"), (("--arm", "vm", "--traced"), "omit --traced")],
)
def test_sections_need_a_guest(words: Sequence[str], why: str, schedlab: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = schedlab("calibrate", "--sections", *words)
    assert code == 2
    assert why in err


def test_the_page_shows_the_shipped_table() -> None:
    measured = tomllib.loads((ROOT / "machines/sections.toml").read_text())["sections"]
    page = (ROOT / "docs/models/sections.md").read_text()
    assert len(measured) > 30
    for call in measured:
        assert row(call) in page


def row(call: dict[str, Any]) -> str:
    """A line of the page's table."""
    name = f"`{call['call']}`" + (f" {call['kib']} KiB" if call["kib"] else "")
    length, cond_resched, might_sleep = call["length"], call["cond-resched"], call["might-sleep"]

    def longest(points: list[int]) -> int:
        return max(later - earlier for earlier, later in itertools.pairwise([0, *sorted(points), length]))

    locks = [end - begin for key in ("spinlock", "irq-off", "page-table") for begin, end in call[key]]
    numbers = (
        length,
        len(cond_resched),
        len(might_sleep),
        longest(cond_resched),
        longest([*cond_resched, *might_sleep]),
        max(locks, default=0),
    )
    return "| " + " | ".join([name, *(f"{number:,}" for number in numbers)]) + " |"
