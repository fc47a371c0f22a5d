"""Reports what this machine supports, and the command that adds what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schedlab.arms import accelerator, agent, guest, images, leftovers
from schedlab.arms.calibrate import WAYS, Measured
from schedlab.arms.journal import Journal, state_directory
from schedlab.engine import Engine
from schedlab.errors import SchedlabError, reason
from schedlab.guests import debian, programs, qemu
from schedlab.guests.qemu import QEMU

TRACEFS = "/sys/kernel/tracing"
DEBUGFS = "/sys/kernel/debug"
PACKAGES = {
    "hackbench": "rt-tests",
    "cyclictest": "rt-tests",
    "perf": "linux-perf",
    "stress-ng": "stress-ng",
    "sysbench": "sysbench",
    "rt-app": "rt-app",
    "netperf": "netperf (of the component non-free)",
    "lat_ctx": "lmbench (of the component non-free), its folder below /usr/lib/lmbench/bin added to PATH",
    "schbench": None,
}
"""Debian's package of each real program in the catalogue; schbench has none and must be built. lat_ctx
stands for all tools of lmbench."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One feature of the machine: whether it is available, and how to add it."""

    name: str
    there: bool
    says: str
    needed_for: str
    command: str | None = None


def examine(engine: Engine, root: Path = Path("/")) -> list[Finding]:
    """All features that the arms can use."""
    found = [
        _kernel(engine, root),
        _agent(),
        _settings(root),
        _file_system("tracefs", root, f"{TRACEFS}/events/sched", f"mount -t tracefs none {TRACEFS}", "traces"),
        _debugfs(root),
        _cgroup(root),
        _perf(root),
        _qemu(),
        _busybox(),
        _apt(),
        *_kernels(engine),
        _kvm(),
    ]
    return [*found, *(_program(name, package) for name, package in PACKAGES.items()), examine_leftovers(root)]


def measure(measured: Measured) -> list[Finding]:
    """What a calibration says about caches, memory, and the lines that CPUs transfer to each other."""
    rows = [
        ("caches", "caches", _caches(measured.caches)),
        ("memory", "memory", _memory(measured.memory)),
        ("cache lines", "line-transfer", _transfers(measured.line_transfers)),
        ("several lines", "line-transfer", _structures(measured.structures)),
    ]
    command = "schedlab calibrate --out FILE"
    found = []
    for name, key, says in rows:
        why = measured.absent.get(key, "not measured here")
        found.append(Finding(name, bool(says), says or why, "machine files", None if says else command))
    return found


def _caches(caches: Mapping[str, Any]) -> str:
    """How long 1 KiB takes from each level: what refilling it costs is the difference to the nearest."""
    levels = [f"{level['name']} of {level['kib']} KiB {level['read']} ns" for level in caches.get("levels", ())]
    return f"1 KiB from {', '.join(levels)}, memory {caches['memory']} ns" if levels else ""


def _memory(memory: Mapping[str, Any]) -> str:
    names = {"cpu": "one CPU", "node": "all CPUs of a node", "remote": "those of other nodes"}
    return ", ".join(f"{words} {memory[key]} MB/s" for key, words in names.items() if key in memory)


def _transfers(transfers: Mapping[str, Any]) -> str:
    """The transfer between each pair of CPUs."""
    cpus = transfers.get("cpus", ())
    pairs = [
        f"{other}-{cpu} {'too few samples' if ns is None else f'{ns} ns'}"
        for cpu, row in zip(cpus[1:], transfers.get("ns", ()), strict=False)
        for other, ns in zip(cpus, row, strict=False)
    ]
    return f"transfer between CPUs {', '.join(pairs)}" if pairs else ""


def _structures(structures: Mapping[str, Any]) -> str:
    """What the most lines of a structure that another CPU has written cost, beside one."""
    counts = structures.get("lines", ())
    rows = [
        f"{distance}, {words}: {ns[0]} and {ns[-1]} ns"
        for distance, ways in structures.get("ns", {}).items()
        for way, words in WAYS.items()
        if (ns := ways.get(way)) and None not in (ns[0], ns[-1])
    ]
    return f"1 and {counts[-1]} lines that another CPU has written: {'; '.join(rows)}" if rows else ""


def to_json(findings: list[Finding]) -> list[dict[str, Any]]:
    """Plain rows."""
    return [asdict(finding) for finding in findings]


def _kernel(engine: Engine, root: Path) -> Finding:
    release = (root / "proc/sys/kernel/osrelease").read_text().strip()
    row = engine.row_of(release)
    says = f"{release}, row {row}" if row else f"{release}: no row models it"
    return Finding("kernel", row is not None, says, "--arm host", None if row else "schedlab list kernels")


def _agent() -> Finding:
    try:
        return Finding(agent.NAME, True, str(agent.find()), "--arm host, --arm vm")
    except SchedlabError as e:
        return Finding(agent.NAME, False, e.message, "--arm host, --arm vm", e.hint)


def _settings(root: Path) -> Finding:
    may = os.geteuid() == 0 and os.access(root / "proc/sys/kernel/sched_rr_timeslice_ms", os.W_OK)
    says = "writable" if may else "writable by root only"
    return Finding("sysctls", may, says, "variants with sysctl on --arm host", None if may else "run as root")


def _file_system(name: str, root: Path, proof: str, mount: str, needed_for: str) -> Finding:
    path = root / proof.lstrip("/")
    if path.is_dir() and os.access(path, os.W_OK):
        return Finding(name, True, str(path.parent), needed_for)
    return Finding(name, False, _why_not(path.parent), needed_for, "run as root" if os.geteuid() else mount)


def _why_not(folder: Path) -> str:
    try:
        return "not permitted" if any(folder.iterdir()) else "not mounted"
    except PermissionError:
        return "not permitted"
    except OSError:
        return "not mounted"


def _debugfs(root: Path) -> Finding:
    wanted = "knobs, features and preempt on --arm host"
    file = root / f"{DEBUGFS}/sched/features".lstrip("/")
    try:
        file.read_text()
    except FileNotFoundError:
        says = "not mounted, or without scheduler settings"
        return Finding("debugfs", False, says, wanted, _mount())
    except OSError as e:
        by_root = os.geteuid() != 0
        says = reason(e) if by_root else f"{reason(e)}: the kernel is locked down"
        return Finding("debugfs", False, says, wanted, "run as root" if by_root else "--arm vm boots its own kernel")
    return Finding("debugfs", True, str(file.parent), wanted)


def _mount() -> str:
    return "run as root" if os.geteuid() else f"mount -t debugfs none {DEBUGFS}"


def _cgroup(root: Path) -> Finding:
    v2 = root / "sys/fs/cgroup/cgroup.controllers"
    v1 = root / "sys/fs/cgroup/cpu/cpu.shares"
    for path, says in ((v2, "v2"), (v1, "v1")):
        if path.exists() and (path == v1 or "cpu" in path.read_text().split()):
            return Finding("cgroup cpu", os.access(path.parent, os.W_OK), says, "groups on --arm host")
    return Finding(
        "cgroup cpu", False, "no cpu controller", "groups on --arm host", "mount -t cgroup2 none /sys/fs/cgroup"
    )


def _perf(root: Path) -> Finding:
    if not shutil.which("perf"):
        return Finding(
            "perf events", False, "perf is not installed", "recording without tracefs", "apt-get install linux-perf"
        )
    try:
        level = int((root / "proc/sys/kernel/perf_event_paranoid").read_text())
    except (OSError, ValueError):
        return Finding("perf events", False, "the kernel was built without them", "recording without tracefs")
    may = os.geteuid() == 0 or level < 0
    command = None if may else "sysctl kernel.perf_event_paranoid=-1"
    return Finding("perf events", may, f"paranoid {level}", "recording without tracefs", command)


def _qemu() -> Finding:
    if not shutil.which(QEMU):
        return Finding("QEMU", False, "not installed", "--arm vm", "apt-get install qemu-system-x86")
    return Finding("QEMU", True, qemu.version(), "--arm vm")


def _kernels(engine: Engine) -> list[Finding]:
    """The rows with an image in the cache, and how to download the others that Debian has."""
    found: dict[str, list[str]] = {}
    try:
        packages = debian.cached()
    except SchedlabError as e:
        return [Finding("images", False, e.message, "--arm vm", e.hint)]
    for package in packages:
        row = engine.row_of(package.version)
        if row:
            found.setdefault(row, []).append(package.version)
    rows = [Finding(f"image of {row}", True, ", ".join(have), "--arm vm") for row, have in sorted(found.items())]
    wanted = (row["id"] for row in engine.listing("kernels") if row["in_debian"])
    missing = [row for row in wanted if row not in found]
    return rows + [
        Finding(f"image of {row}", False, "not in the cache", "--arm vm", f"schedlab doctor --fetch {row}")
        for row in missing
    ]


def _kvm() -> Finding:
    try:
        have = debian.cached()
    except SchedlabError:
        have = []
    if not shutil.which(QEMU) or not have:
        there = accelerator.DEVICE.exists()
        says = "not tried: needs QEMU and a kernel image" if there else f"there is no {accelerator.DEVICE}"
        return Finding("KVM", False, says, "guests at full speed")
    works, why = accelerator.kvm(have[0].image)
    return Finding(
        "KVM", works, why, "guests at full speed", None if works else "not possible here; guests are emulated instead"
    )


def _busybox() -> Finding:
    try:
        return Finding("busybox", True, str(programs.find_busybox()), "guests")
    except SchedlabError as e:
        return Finding("busybox", False, e.message, "guests", e.hint)


def _apt() -> Finding:
    """apt, with which Debian's kernels are downloaded."""
    wanted = "kernels for --arm vm, without image = PATH"
    try:
        uris = debian.archive_uris() if shutil.which("apt-get") else []
    except SchedlabError as e:
        return Finding("apt", False, e.message, wanted, "apt-get update")
    missing = [tool for tool in debian.TOOLS if not shutil.which(tool)]
    if missing:
        what = f"{', '.join(missing)} not installed"
        return Finding(
            "apt", False, what, wanted, "available on Debian and its derivatives; otherwise use image = PATH"
        )
    return Finding("apt", True, f"{len(uris)} Debian archives", wanted)


def _program(name: str, package: str | None) -> Finding:
    path = guest.installed(name)
    variable = guest.variable(name)
    command = f"apt-get install {package}" if package else f"build it from source, then {variable}=PATH"
    says = str(path) if path else "not installed"
    return Finding(name, path is not None, says, f"the real {name} as a workload", None if path else command)


def examine_leftovers(root: Path = Path("/")) -> Finding:
    """Settings and kernel objects that a killed run has left."""
    wanted = "unchanged settings"
    try:
        changes = Journal(state_directory(), root).left()
    except SchedlabError as e:
        return Finding("settings", False, e.message, wanted, e.hint)
    found = leftovers.find(root)
    if not changes and not found:
        return Finding("settings", True, "no killed run has left changed settings", wanted)
    says = [*(f"{c.file} is {c.after} and was {c.before}" for c in changes), *(f"{f} was left" for f in found)]
    return Finding("settings", False, ", ".join(says), wanted, "schedlab doctor --restore")


def restore(root: Path = Path("/")) -> list[str]:
    """Restore the settings and remove the objects that killed runs have left; returns what was done."""
    journal = Journal(state_directory(), root)
    try:
        changed = [f"{change.file} is {change.before} again" for change in journal.open()]
        return changed + [f"removed {what}" for what in leftovers.remove(root)]
    finally:
        journal.close()


def fetch(engine: Engine, row: str, log: Callable[[str], None]) -> None:
    """Download the image of a row, or of a sublevel, into the cache."""
    kernel = images.for_row(engine, row)
    known = engine.row_of(row)
    judged = f" (row {known})" if known and known != row else ""
    log(f"{row}{judged}: {kernel.source}, sha256 {kernel.sha256}, {kernel.image}")
