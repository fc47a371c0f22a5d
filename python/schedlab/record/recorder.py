"""Records a trace: boots a guest or uses the running kernel, adds the header, and writes the file."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.engine import Engine
from schedlab.errors import RunError, not_written
from schedlab.guests import initramfs, kernels, programs
from schedlab.guests.emulation import EMULATIONS
from schedlab.guests.qemu import Machine, boot, numa
from schedlab.record import offsets, running
from schedlab.record.events import CHECK_POINTS, EVENTS
from schedlab.record.text import Whole, whole

HERE = Path(__file__).parent
BUFFER_SHARE = 0.25
"""Of the guest's memory, for the trace buffers of all CPUs."""


@dataclass(frozen=True, slots=True)
class Order:
    """The options of a recording."""

    kernel: str
    workload: tuple[str, ...]
    out: Path
    cpus: int = 1
    memory_mb: int = 1536
    time_limit_s: float = 300.0
    probes: bool = True
    records: int = 0
    """The maximum number of records, counted from the start; 0 for all."""
    append: str = ""
    smp: str | None = None
    """The arrangement of the guest's CPUs, in QEMU's words; the default is one core each under one cache."""
    nodes: int = 1
    """NUMA nodes of equal size."""
    emulation: str | None = None
    """How several CPUs run, one of EMULATIONS; the default is a thread of the host for each."""
    autogroup: bool = False
    """Whether autogroup is enabled, which is the default of Debian's kernels."""
    check_points: bool = False
    """Whether system calls and, by a probe, the check points of cond_resched() are recorded."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The result of a recording."""

    out: Path
    counts: dict[str, Any]
    """Kernel, CPUs, records, events, lost, span_ns."""
    exit_code: int
    """The exit code of the workload."""
    probes: bool
    cut: bool
    """The buffer was full before the workload ended."""
    console: list[str]


Logger = Callable[[str], None]


def record(order: Order, engine: Engine, log: Logger = lambda _: None) -> Recording:
    """Make a recording; `log` is called with each step."""
    with tempfile.TemporaryDirectory(prefix="schedlab-record-") as folder:
        try:
            taken = (
                _running(order, Path(folder), log, engine)
                if order.kernel == kernels.RUNNING
                else _guest(order, Path(folder), log)
            )
        except OSError as e:
            raise not_written("cannot write the recorded trace", e, file=e.filename and str(e.filename)) from None
        counts = engine.convert(str(taken.trace), str(order.out))
    return Recording(order.out, counts, taken.exit_code, taken.probes, taken.cut, taken.console)


@dataclass(frozen=True, slots=True)
class Taken:
    """A trace as text with its header, before it gets the format and the name that were asked for."""

    trace: Path
    exit_code: int
    probes: bool
    cut: bool
    console: list[str]


def _guest(order: Order, folder: Path, log: Logger) -> Taken:
    kernel = kernels.find(order.kernel)
    line = programs.shell_line(order.workload)
    machine = Machine(
        kernel.image,
        order.cpus,
        order.memory_mb,
        order.append,
        order.autogroup,
        accel=EMULATIONS[order.emulation] if order.emulation else None,
        smp=order.smp,
        numa=numa(order.nodes, order.cpus, order.memory_mb),
    )
    log(f"{kernel.source}, sha256 {kernel.sha256}")
    (folder / "initramfs").write_bytes(
        initramfs.build(programs.files(line, programs.find_busybox()), _texts(order, line, kernel.image))
    )
    raw = folder / "raw.gz"
    booted = boot(machine, folder / "initramfs", raw, order.time_limit_s, log)
    head = [
        f"image {kernel.source}",
        f"image_sha256 {kernel.sha256}",
        f"recorded_by schedlab {_version()} in QEMU {' '.join(machine.accelerator())} "
        f"-cpu {machine.cpu()} -smp {machine.cpus_option()}",
        f"workload {line}",
    ]
    found = _finished(raw, folder, head)
    return Taken(found.path, booted.exit_code, booted.probes, found.cut, booted.console)


def _texts(order: Order, line: str, image: Path) -> dict[str, str]:
    """The guest's own files."""
    settings = {
        "BUFFER_KB": int(order.memory_mb * 1024 * BUFFER_SHARE / order.cpus),
        "PROBES": int(order.probes),
        "GROUP_PROBES": "groups" if order.autogroup else "",
        "RECORDS": order.records + HEADER_LINES if order.records else 0,
        "EVENTS": f'"{" ".join((*EVENTS, *CHECK_POINTS) if order.check_points else EVENTS)}"',
        "CHECK_POINTS": int(order.check_points),
    }
    return {
        "init": (HERE / "init.sh").read_text(),
        "schedlab/header": (HERE / "header.sh").read_text(),
        "schedlab/probes": (HERE / "probes.sh").read_text(),
        **{
            f"schedlab/by-offset-{threads}": offsets.probes(
                image, order.cpus, threads, _levels(order), groups=order.autogroup
            )
            if order.probes
            else ""
            for threads in {1, _threads(order)}
        },
        "schedlab/domain-members": offsets.domain_members(image) if order.probes else "",
        "schedlab/settings": "".join(f"{key}={value}\n" for key, value in settings.items()),
        "schedlab/workload": line + "\n",
    }


def _threads(order: Order) -> int:
    """How many threads a core of the guest has; the kernel may see one."""
    found = re.search(r"threads=(\d+)", order.smp or "")
    return min(int(found[1]), 2) if found else 1


def _levels(order: Order) -> int:
    """How many levels of scheduling domains the guest has at most: one for each unit of which there are several."""
    return max(1, sum(int(count) > 1 for count in re.findall(r"=(\d+)", order.smp or "")))


HEADER_LINES = 12
"""The kernel's own comment lines before the first record of a trace."""


def _running(order: Order, folder: Path, log: Logger, engine: Engine) -> Taken:
    line = programs.shell_line(order.workload)
    ran = running.record(line, folder, log, engine, probes=order.probes)
    head = [f"recorded_by schedlab {_version()} through {ran.through}", f"workload {line}"]
    found = _finished(ran.raw, folder, head, order.records)
    return Taken(found.path, ran.exit_code, ran.probes, found.cut, [])


def _finished(raw: Path, folder: Path, head: Iterable[str], records: int = 0) -> Whole:
    try:
        found = whole(raw, folder / "trace.ftrace", head, records)
    except (EOFError, gzip.BadGzipFile) as e:
        raise RunError(f"the trace is incomplete: {e}", hint="this is a bug in schedlab") from None
    if found.records == 0:
        raise RunError("nothing was recorded", hint="check that the workload ran")
    return found


def _version() -> str:
    import schedlab

    return schedlab.__version__
