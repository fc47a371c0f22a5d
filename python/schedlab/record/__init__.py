"""Records scheduler traces of real kernels: of a Debian kernel or any image in QEMU, or of the running one."""

from __future__ import annotations

from schedlab.record.recorder import Order, Recording, record

__all__ = ["Order", "Recording", "record"]
