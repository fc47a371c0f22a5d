"""Measures the costs of a machine with the agent and writes them as a machine file for the simulator.

What the agent cannot measure keeps the value of the base preset, and the file says so. No number is adjusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from schedlab import documents
from schedlab.arms import accelerator, agent, guest, images, noise, process, state, topology
from schedlab.arms.vm import booted
from schedlab.engine import Engine
from schedlab.errors import RunError
from schedlab.guests.emulation import COUNTED
from schedlab.guests.qemu import Machine
from schedlab.record import recorder

HEADER = Path(recorder.__file__).with_name("header.sh")
BASE = "host"
"""The machine whose costs replace those that are not measured."""
POINTS = ("p0", "p10", "p50", "p90", "p99", "p100")
DISTANCES = ("same", "smt", "llc", "node", "remote")
WAYS = {
    "read": "all read",
    "change": "an atomic operation on one, the others read and written",
    "chain": "the address of each in the one before",
}
"""The ways in which the lines of a structure are accessed."""
MEMORY_MB = 1024
LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The agent's document, and the machine that it was measured on."""

    costs: Mapping[str, Any]
    idle: Sequence[Mapping[str, Any]]
    memory: Mapping[str, Any]
    """The bandwidth of the memory; empty if it was not measured."""
    caches: Mapping[str, Any]
    """Sizes and read times of the caches; empty if they were not measured."""
    line_transfers: Mapping[str, Any]
    """CPUs, and the transfer of a cache line between each of them and those before it, ns."""
    structures: Mapping[str, Any]
    """Numbers of cache lines, and by distance and way of access the time to access so many, ns."""
    absent: Mapping[str, str]
    """Costs that could not be measured, with the reason."""
    where: str
    hz: int
    groups: Mapping[str, Sequence[str]] | None
    """CPU lists of a guest; None for this machine, whose own topology the simulator reads."""
    foreign_pct: float = 0.0
    """The share of foreign CPU time during the measurement; it affects the upper quantiles."""


def host(*, quick: bool, traced: bool) -> Measured:
    """Calibrate this machine."""
    before = noise.Sample.now()
    done = process.run([str(agent.find()), *_words(quick=quick, traced=traced)], limit_s=LIMIT_S)
    if done.code != 0:
        raise agent.failure(done.code, done.stderr, "calibrate")
    foreign_pct = noise.total_pct(noise.between(before, noise.Sample.now(), done.cpu_s))
    seen = state.read()
    header = process.run(["sh", str(HEADER)], limit_s=LIMIT_S).stdout
    where = f"{seen.get('cpu', 'unknown CPU')}, Linux {seen.get('release', '')}"
    return replace(_measured(done.stdout, where, header, None), foreign_pct=foreign_pct)


def vm(engine: Engine, row: str, log: Callable[[str], None], *, quick: bool, traced: bool) -> Measured:
    """Calibrate a guest with one CPU whose clock counts instructions; `traced` enables the tracepoints as in a run."""
    guest.check_tools()
    kernel = images.for_row(engine, row)
    command = (
        f"sh /schedlab/header >/out/header; exec /bin/{agent.NAME} {' '.join(_words(quick=quick, traced=traced))}\n"
    )
    files = {
        "schedlab/settings": "",
        "schedlab/command": command,
        f"{guest.WORK}/.keep": "",
    }
    own = guest.texts({**files, "schedlab/header": HEADER.read_text()})
    machine = Machine(kernel.image, 1, MEMORY_MB, accel=COUNTED)
    code, sent, _ = booted(machine, guest.base([]) + own, LIMIT_S, log)
    if code != 0:
        raise agent.failure(code, sent.text("stderr"), "calibrate, in the guest")
    where = f"QEMU {accelerator.words(COUNTED)} (2 ns an instruction), {kernel.source}"
    where += ", scheduler tracepoints on" if traced else ""
    measured = _measured(sent.text("stdout"), where, sent.text("header"), sent.topology)
    why = "the clock of this guest counts instructions, whatever they wait for"
    return replace(measured, memory={}, caches={}, absent={**measured.absent, "memory": why, "caches": why})


def _words(*, quick: bool, traced: bool) -> list[str]:
    return ["calibrate", *(["--quick"] if quick else []), *(["--traced"] if traced else [])]


def _measured(text: str, where: str, header: str, groups: Mapping[str, Sequence[str]] | None) -> Measured:
    try:
        document = documents.loads(text)
        return Measured(
            document["costs"],
            document.get("idle", ()),
            document.get("memory", {}),
            document.get("caches", {}),
            document.get("line_transfers", {}),
            document.get("structures", {}),
            document.get("absent", {}),
            where,
            _hz(header),
            groups,
        )
    except (ValueError, KeyError, TypeError) as e:
        raise RunError(
            f"the agent's calibration cannot be read: {type(e).__name__} {e}", hint="a bug in schedlab"
        ) from None


def _hz(header: str) -> int:
    """HZ according to the kernel's counters; Debian's 250 where they cannot be read."""
    found = re.search(r"^# hz (\d+)$", header, re.M)
    return int(found[1]) if found else 250


def summary(measured: Measured) -> str:
    """How many costs were measured, and how many the file leaves to the base preset."""
    count = len(measured.absent)
    rest = f"; {count} not measured, as in machines/{BASE}.toml (the file lists them with the reason)" if count else ""
    return f"{len(measured.costs)} costs of {measured.where}{rest}"


def preset(measured: Measured, day: date) -> str:
    """The machine file."""
    lines = [
        f"# Measured by `schedlab calibrate` on {day.isoformat()}: {measured.where}.",
        *(
            [f"# During the measurement {busy:.1f}% of the CPU time was foreign or stolen."]
            if (busy := measured.foreign_pct)
            else []
        ),
        f"# Missing values are those of machines/{BASE}.toml, which were not measured on this machine:",
        *(f"# {name}: {_plain(why)}" for name, why in measured.absent.items()),
        *_matrix(measured.line_transfers),
        *_structures(measured.structures),
        "",
        f'base = "{BASE}"',
        f'summary = "calibrated: {_plain(measured.where)}"',
        "calibrated = true",
        f"hz = {measured.hz}",
        "",
        *_topology(measured.groups),
    ]
    for name, cost in measured.costs.items():
        lines += ["", *_cost(name, cost)]
    if measured.memory:
        lines += ["", *_memory(measured.memory)]
    if measured.caches:
        lines += ["", *_caches(measured.caches)]
    for idle in measured.idle:
        lines += ["", "[[idle]]", f'name = "{_plain(str(idle["name"]))}"', f"exit = {_quantiles(idle['exit'])}"]
        lines += [f"polling = {str(bool(idle['polling'])).lower()}"] if "polling" in idle else []
        residency = idle.get("target-residency")
        lines += [f'target-residency = "{residency}ns"'] if residency else []
        lines.append(f'source = "{_source(idle["exit"])}"')
    return "\n".join(lines) + "\n"


def _topology(groups: Mapping[str, Sequence[str]] | None) -> list[str]:
    if groups is None:
        return ['topology = "host"']
    cores, sockets = len(groups["cores"]) or 1, len(groups["sockets"]) or 1
    count = sum(len(topology.cpus(text)) for text in groups["cores"]) or 1
    rows = {"nodes": sockets, "cores-per-llc": cores // sockets, "threads-per-core": count // cores}
    return [
        "[topology]",
        *(f"{key} = {value}" for key, value in rows.items()),
        'source = "as the guest\'s kernel sees it"',
    ]


def _cost(name: str, cost: Mapping[str, Any]) -> list[str]:
    lines = [f"[costs.{name}]"]
    if "p50" in cost:
        lines.append(f"quantiles = {_quantiles(cost, inline=False)}")
    else:
        return [*lines, *_distances(name, cost)]
    return [*lines, f'source = "{_source(cost)}"']


def _matrix(transfers: Mapping[str, Any]) -> list[str]:
    """A comment with the transfers between all pairs of CPUs; a machine file states them by distance."""
    rows = list(transfers.get("ns", ()))
    if not rows:
        return []
    cpus = [str(cpu) for cpu in transfers["cpus"]]
    title = "Transfer of a cache line between two CPUs, ns (medians; `-`: too few samples):"
    by = [[cpu, *_shown(row)] for cpu, row in zip(cpus[1:], rows, strict=True)]
    return _commented(title, [["CPU", *cpus[:-1]], *by])


def _structures(structures: Mapping[str, Any]) -> list[str]:
    """A comment with the time to access several cache lines, for which a machine file has no key."""
    by = [
        [f"{distance}, {WAYS[way]}", *_shown(row)]
        for distance, ways in structures.get("ns", {}).items()
        for way in WAYS
        if (row := ways.get(way))
    ]
    title = "Access to several cache lines that another CPU has written, ns (medians; `-`: too few samples):"
    return _commented(title, [["lines", *map(str, structures["lines"])], *by]) if by else []


def _shown(row: Sequence[int | None]) -> list[str]:
    return ["-" if ns is None else str(ns) for ns in row]


def _commented(title: str, table: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of comment, each column but the first of the same width."""
    first = max(len(row[0]) for row in table)
    width = max(len(word) for row in table for word in row[1:])
    aligned = ([row[0].rjust(first), *(word.rjust(width) for word in row[1:])] for row in table)
    return ["#", f"# {title}", *("# " + "  ".join(words) for words in aligned)]


def _memory(memory: Mapping[str, Any]) -> list[str]:
    rates = [f"{key} = {memory[key]}" for key in ("cpu", "node", "remote") if key in memory]
    return ["[memory]", *rates, f'source = "{_source(memory)}"']


def _caches(caches: Mapping[str, Any]) -> list[str]:
    levels = [
        f'{level["name"]} = {{ size = "{level["kib"]}KiB", read = "{level["read"]}ns"{_shared(level)} }}'
        for level in caches["levels"]
    ]
    return ["[caches]", *levels, f'memory = {{ read = "{caches["memory"]}ns" }}', f'source = "{_source(caches)}"']


def _shared(level: Mapping[str, Any]) -> str:
    return f', shared-by = "{level["shared-by"]}"' if "shared-by" in level else ""


def _distances(name: str, cost: Mapping[str, Any]) -> list[str]:
    """Every distance must have a value; those that the machine does not have repeat the nearest measured one."""
    have = [DISTANCES.index(d) for d in DISTANCES if d in cost]
    lines = []
    for place, distance in enumerate(DISTANCES):
        if (name, distance) == ("line-transfer", "same"):
            lines.append('same = { constant = "0ns" }')
            continue
        nearest = DISTANCES[min(have, key=lambda h: (abs(h - place), h))]
        lines.append(f"{distance} = {_quantiles(cost[nearest])}")
    more = "" if len(have) == len(DISTANCES) else "; distances that were not measured repeat the nearest"
    return [*lines, f'source = "{_source(cost[DISTANCES[have[0]]])}{more}"']


def _quantiles(points: Mapping[str, Any], *, inline: bool = True) -> str:
    """Quantiles must be strictly rising; the resolution of the clock may have made neighbours equal."""
    most, shown = 0, []
    for point in POINTS:
        if point in points:
            most = max(most, round(float(points[point])))
            shown.append(f'{point} = "{most}ns"')
    table = "{ " + ", ".join(shown) + " }"
    return f"{{ quantiles = {table} }}" if inline else table


def _source(row: Mapping[str, Any]) -> str:
    count = f", {row['n']:,} times" if "n" in row else ""
    return _plain(f"measured: {row.get('how', 'by the agent')}{count}")


def _plain(text: str) -> str:
    return text.replace("\\", "/").replace('"', "'")
