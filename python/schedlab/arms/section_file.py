"""Runs the guest whose kernel sections are measured, and writes the table of them as TOML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path

from schedlab.arms import accelerator, agent, guest, images, sections
from schedlab.arms.vm import booted
from schedlab.engine import Engine
from schedlab.guests.emulation import COUNTED
from schedlab.guests.qemu import Machine

SCRIPT = Path(__file__).with_name("sections.sh")
MEMORY_MB = 1024
LIMIT_S = 1800.0
REPEAT, REPEAT_QUICK = 9, 3


def measure(engine: Engine, row: str, log: Callable[[str], None], *, quick: bool) -> tuple[sections.Table, str]:
    """The sections of a guest's kernel, and where they were measured."""
    guest.check_tools()
    kernel = images.for_row(engine, row)
    repeat = REPEAT_QUICK if quick else REPEAT
    own = {
        "schedlab/settings": "",
        "schedlab/command": f"REPEAT={repeat}\n{SCRIPT.read_text()}",
        f"{guest.WORK}/.keep": "",
    }
    machine = Machine(kernel.image, 1, MEMORY_MB, accel=COUNTED)
    code, sent, _ = booted(machine, guest.base([]) + guest.texts(own), LIMIT_S, log)
    if code != 0:
        raise agent.failure(code, sent.text("stderr"), "calibrate --sections, in the guest")
    traces = [sent.text(name).splitlines() for name in ("bare", "voluntary", "none")]
    where = f"QEMU {accelerator.words(COUNTED)}, {kernel.source}, each call {repeat} times"
    return sections.table(*traces), where


def text(table: sections.Table, where: str, row: str, day: date) -> str:
    """The table as TOML. Lengths and positions are instructions."""
    lines = [
        f"# Measured by `schedlab calibrate --sections --arm vm --kernel {row}` on {day.isoformat()}: {where}.",
        "# Lengths and positions are instructions of an emulated CPU beyond those of getppid(), without the cost "
        f"of the probes ({table.probe} each).",
        *(f"# Not measured: {name}: {why}." for name, why in table.absent.items()),
    ]
    for call in table.calls:
        lines += ["", "[[sections]]", *_call(call)]
    return "\n".join(lines) + "\n"


def _call(call: sections.Call) -> list[str]:
    cond_resched = [point for point in call.points if not point.might_sleep]
    might_sleep = [point for point in call.points if point.might_sleep]
    longest = call.longest_lock()
    loops = [lock for lock in call.locks if call.is_page_table_loop(lock)]
    others = [lock for lock in call.locks if not call.is_page_table_loop(lock)]
    return [
        f'call = "{call.name}"',
        f"kib = {call.kib}",
        f"length = {call.length}",
        f"cond-resched = {[point.at for point in cond_resched]}",
        f"might-sleep = {[point.at for point in might_sleep]}",
        f"spinlock = {_spans(lock for lock in others if not lock.irq_off)}",
        f"irq-off = {_spans(lock for lock in others if lock.irq_off)}",
        f"page-table = {_spans(loops)}",
        f"points-of = {_callers([*cond_resched, *might_sleep])}",
        f'longest-spinlock-of = "{_name(longest.caller) if longest else ""}"',
    ]


def _spans(locks: Iterable[sections.Locked]) -> list[list[int]]:
    """Beginnings and ends."""
    return [[lock.begin, lock.end] for lock in locks]


def _callers(points: Sequence[sections.Point]) -> str:
    """The callers of the check points, the most frequent first."""
    counts = Counter(_name(point.caller) for point in points).most_common()
    return "[" + ", ".join(f'"{name} {count}"' for name, count in counts) + "]"


def _name(caller: str) -> str:
    """The function without the offset in it."""
    return caller.split("+")[0]
