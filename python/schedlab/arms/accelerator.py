"""Decides how QEMU runs a guest. /dev/kvm is no proof of KVM: a guest is started under it, once per boot here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from schedlab.arms.journal import boot_id, state_directory
from schedlab.errors import SchedlabError
from schedlab.guests import initramfs, programs
from schedlab.guests.qemu import COUNTED, EMULATED, VIRTUAL, Machine, boot

DEVICE = Path("/dev/kvm")
PATIENCE_S = 30.0
ALIVE = """\
#!/bin/busybox sh
exec >/dev/console 2>&1
echo 'schedlab: workload ended with 0'
echo 'schedlab: sent'
/bin/busybox poweroff -f
"""


def choose(image: Path, repeatable: bool, tell: Callable[[str], None]) -> tuple[str, ...]:
    """The accelerator for a guest that boots `image`."""
    if repeatable:
        return COUNTED
    return VIRTUAL if kvm(image, tell)[0] else EMULATED


def kvm(image: Path, tell: Callable[[str], None] = lambda _: None) -> tuple[bool, str]:
    """Whether a guest runs under KVM here, and how that is known."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False, f"{DEVICE} is not there" if not DEVICE.exists() else f"{DEVICE} may not be used"
    known = _known()
    if known is None:
        known = _tried(image, tell)
        _remember(known)
    return known == "works", "a guest ran under it" if known == "works" else f"no guest starts under it: {known}"


def _tried(image: Path, tell: Callable[[str], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="schedlab-kvm-") as folder:
        archive = Path(folder) / "initramfs"
        archive.write_bytes(initramfs.build({"bin/busybox": programs.find_busybox()}, {"init": ALIVE}))
        try:
            boot(Machine(image, 1, 256, accel=VIRTUAL), archive, Path(folder) / "none", PATIENCE_S, tell)
        except SchedlabError as e:
            return e.message.splitlines()[0].partition("; its console")[0][:200]
    return "works"


def words(accel: tuple[str, ...]) -> str:
    """How results call it."""
    return {COUNTED: "TCG -icount", EMULATED: "TCG", VIRTUAL: "KVM"}[accel]


def _file() -> Path:
    return state_directory() / "kvm"


def _known() -> str | None:
    try:
        boot, _, said = _file().read_text().partition("\n")
    except OSError:
        return None
    return said.strip() if boot == boot_id() else None


def _remember(said: str) -> None:
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        _file().write_text(f"{boot_id()}\n{said}\n")
    except OSError:
        pass  # it is tried again next time
