"""Decides how QEMU runs a guest. KVM is tested with a guest once per boot, because /dev/kvm alone proves nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from schedlab.arms.journal import boot_id, state_directory
from schedlab.errors import SchedlabError
from schedlab.guests import initramfs, programs
from schedlab.guests.emulation import COUNTED, EMULATED, VIRTUAL
from schedlab.guests.qemu import Machine, boot
from schedlab.private import Directory

DEVICE = Path("/dev/kvm")
FILE = "kvm"
PATIENCE_S = 30.0
ALIVE = """\
#!/bin/busybox sh
exec >/dev/console 2>&1
echo 'schedlab: workload ended with 0'
echo 'schedlab: sent'
/bin/busybox poweroff -f
"""


def choose(image: Path, log: Callable[[str], None], *, repeatable: bool) -> tuple[str, ...]:
    """The accelerator for a guest that boots `image`."""
    if repeatable:
        return COUNTED
    return VIRTUAL if kvm(image, log)[0] else EMULATED


def kvm(image: Path, log: Callable[[str], None] = lambda _: None) -> tuple[bool, str]:
    """Whether a guest runs under KVM here, and how that is known."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False, f"there is no {DEVICE}" if not DEVICE.exists() else f"no permission to use {DEVICE}"
    said = known()
    if said is None:
        said = _tried(image, log)
        remember(said)
    return said == "works", "a test guest ran" if said == "works" else f"a test guest failed: {said}"


def _tried(image: Path, log: Callable[[str], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="schedlab-kvm-") as folder:
        archive = Path(folder) / "initramfs"
        archive.write_bytes(initramfs.build({"bin/busybox": programs.find_busybox()}, {"init": ALIVE}))
        try:
            boot(Machine(image, 1, 256, accel=VIRTUAL), archive, Path(folder) / "none", PATIENCE_S, log)
        except SchedlabError as e:
            return e.message.splitlines()[0].partition("; its console")[0][:200]
    return "works"


def words(accel: tuple[str, ...]) -> str:
    """Its name in results."""
    return {COUNTED: "TCG -icount", EMULATED: "TCG", VIRTUAL: "KVM"}[accel]


def known() -> str | None:
    """The result of the test in this boot; None if there was none, or if its record cannot be trusted."""
    try:
        with Directory.open(state_directory()) as folder:
            boot, _, said = (folder.read(FILE) or "").partition("\n")
    except (OSError, SchedlabError):
        return None
    return said.strip() or None if boot and boot == boot_id() else None


def remember(said: str) -> None:
    """Record a test; where that is not possible, the next run repeats it."""
    try:
        with Directory.open(state_directory(), create=True) as folder:
            folder.write(FILE, f"{boot_id()}\n{said}\n")
    except (OSError, SchedlabError):
        pass
