"""Boots the guest and supervises it. The guest always ends, and errors quote the last lines of its console."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from schedlab.children import die_with_parent
from schedlab.errors import ArmError, Cancelled, RunError
from schedlab.guests.emulation import COUNTED, EMULATED, VIRTUAL

QEMU = "qemu-system-x86_64"
SHOWN_LINES = 12
BOOT_SHARE = 0.5
"""A guest that has not started its init after this share of the time limit is considered hung."""
BOOTS = 4
UNHELPFUL = "warning: TCG doesn't support requested feature"
"""QEMU prints this for every feature of the CPU model that it does not emulate; it is harmless."""
CLOCK = "base=2026-01-01T00:00:00,clock=vm"
"""A fixed date that advances with the guest's clock, because the host's would affect the guest's timers and entropy."""


def numa(nodes: int, cpus: int, memory_mb: int) -> tuple[str, ...]:
    """The options for nodes of equal size, which are none for a single one; `nodes` divides `cpus`."""
    if nodes == 1:
        return ()
    each = cpus // nodes
    words: list[str] = []
    for node in range(nodes):
        first = node * each
        # The remainder goes to the first node, because the parts must add up to the whole.
        size = memory_mb // nodes + (memory_mb % nodes if node == 0 else 0)
        words += ["-object", f"memory-backend-ram,id=m{node},size={size}M"]
        words += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={first}-{first + each - 1}"]
    return tuple(words)


@dataclass(frozen=True, slots=True)
class Machine:
    """The configuration of QEMU."""

    image: Path
    cpus: int
    memory_mb: int
    append: str = ""
    autogroup: bool = False
    accel: tuple[str, ...] | None = None
    """The accelerator; the default is COUNTED for one CPU and EMULATED for several."""
    smp: str | None = None
    """How the CPUs are arranged: `sockets=1,cores=2,threads=2`."""
    numa: tuple[str, ...] = ()
    seed: int = 1
    """The seed of all random numbers that QEMU provides to the guest, such as those for address randomisation. With
    COUNTED the same seed gives the same run, to the nanosecond."""

    def accelerator(self) -> list[str]:
        return list(self.accel or (COUNTED if self.cpus == 1 else EMULATED))

    def cpu(self) -> str:
        """EPYC boots every kernel from 6.1 to 7.2, as `max` does not.

        Without cmpxchg16b: QEMU 7.2 loses flags in it, and 6.12 panics in its allocator, more often the more CPUs.
        """
        return "host" if self.accel == VIRTUAL else "EPYC,-cx16"

    def cpus_option(self) -> str:
        """The number of CPUs and how they are arranged, as QEMU takes it."""
        return ",".join([str(self.cpus), *([self.smp] if self.smp else [])])

    def command(self, initramfs: Path, trace: Path) -> list[str]:
        return [
            QEMU, "-machine", "q35", *self.accelerator(), "-cpu", self.cpu(),
            "-smp", self.cpus_option(), *self.numa,
            "-m", str(self.memory_mb), "-seed", str(self.seed), "-rtc", CLOCK,
            "-nodefaults", "-display", "none", "-no-reboot",
            "-serial", "stdio", "-serial", f"file:{trace}",
            "-kernel", str(self.image), "-initrd", str(initramfs), "-append", self.arguments(),
        ]  # fmt: skip

    def arguments(self) -> str:
        """The kernel's command line: autogroup only on request, and no kernel threads that compete after boot."""
        groups = "" if self.autogroup else " noautogroup"
        return f"console=ttyS0 quiet panic=-1{groups} cryptomgr.notests {self.append}".strip()


def version() -> str:
    """The version of QEMU."""
    said = subprocess.run([QEMU, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    found = re.search(r"version (\S+)", said)
    return found[1] if found else "of unknown version"


@dataclass(frozen=True, slots=True)
class Booted:
    """The result of a guest that ran to its end."""

    exit_code: int
    probes: bool
    console: list[str]


class EarlyPanicError(RunError):
    """The kernel panicked before init started."""


def boot(
    machine: Machine,
    initramfs: Path,
    trace: Path,
    limit_s: float,
    log: Callable[[str], None],
    stop: Callable[[], bool] = lambda: False,
) -> Booted:
    """Run the guest to its end. QEMU outlives neither this call nor this process."""
    if not shutil.which(QEMU):
        raise ArmError(f"{QEMU} is not installed", hint="apt-get install qemu-system-x86")
    # With several emulated CPUs some boots fail before init starts, and another attempt may succeed. A guest that
    # counts instructions would fail again in the same way.
    for _ in range(0 if machine.accelerator() == [*COUNTED] else BOOTS - 1):
        try:
            return _once(machine, initramfs, trace, limit_s, log, stop)
        except EarlyPanicError as e:
            log(f"{e.message.splitlines()[0]}; booting again")
    return _once(machine, initramfs, trace, limit_s, log, stop)


def _once(
    machine: Machine,
    initramfs: Path,
    trace: Path,
    limit_s: float,
    log: Callable[[str], None],
    stop: Callable[[], bool],
) -> Booted:
    console = Console(log)
    process = subprocess.Popen(
        machine.command(initramfs, trace),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent(),
    )
    listener = threading.Thread(target=console.listen, args=(process,), daemon=True)
    listener.start()
    began, hung = time.monotonic(), False
    try:
        while process.poll() is None and not hung:
            if stop():
                raise Cancelled("the guest was stopped")
            spent = time.monotonic() - began
            hung = spent > limit_s * (1 if console.step else BOOT_SHARE)
            time.sleep(0.05)
    finally:
        _end(process)
        listener.join(5)
    return console.verdict(process.returncode, time.monotonic() - began, hung=hung)


class Console:
    """The output of the guest and its interpretation."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self.lines: list[str] = []
        self.step = ""
        """The last step that the guest's init has named."""
        self._code: int | None = None
        self._probes = False

    def listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # opened with a pipe
        for raw in process.stdout:
            self.line(raw.decode(errors="replace"))

    def line(self, text: str) -> None:
        # The kernel prints a terminal's codes at the start.
        line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc", "", text).strip()
        if not line or UNHELPFUL in line:
            return
        self.lines.append(line)
        if not line.startswith("schedlab: "):
            return
        self.step = line.removeprefix("schedlab: ")
        self._log(f"guest: {self.step}")
        if ended := re.fullmatch(r"workload ended with (\d+)", self.step):
            self._code = int(ended[1])
        self._probes |= self.step == "with probes"

    def verdict(self, qemu_code: int | None, spent_s: float, *, hung: bool) -> Booted:
        """The result of the guest, or an error with the last lines of its console."""
        if self.step == "sent" and self._code is not None and not hung:
            return Booted(self._code, self._probes, self.lines)
        panic = next((line for line in self.lines if "Kernel panic" in line), None)
        if panic:
            what = f"the guest's {panic[panic.index('Kernel panic') :]}"
        elif self.step.startswith("failed: "):
            what = f"the guest cannot go on: {self.step.removeprefix('failed: ')}"
        elif hung and not self.step:
            what = f"the guest did not reach its init within {spent_s:.0f} s"
        elif hung:
            what = f"the guest was still at `{self.step}` after {spent_s:.0f} s"
        elif not self.lines:
            what = f"QEMU ended with {qemu_code} without output"
        else:
            what = f"the guest stopped at `{self.step or 'boot'}`; QEMU ended with {qemu_code}"
        said = "".join(f"\n  | {line}" for line in self.lines[-SHOWN_LINES:])
        longer, more = "a longer time-limit may help", "append: ignore_loglevel shows more of a boot"
        hint = (longer if self.step else f"{longer}; {more}") if hung else more
        kind = EarlyPanicError if panic and not self.step else RunError
        raise kind(what + (f"; its console ended with{said}" if said else ""), hint=hint)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
