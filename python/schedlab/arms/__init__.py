"""Arms run scenarios: on the simulator, on the running kernel, or on another kernel in QEMU, with one interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from schedlab import spelling
from schedlab.errors import InputError

if TYPE_CHECKING:
    from schedlab.arms.arm import Arm, Keep
    from schedlab.engine import Engine

__all__ = ["arm_of"]


def arm_of(name: str, engine: Engine, log: Callable[[str], None] = lambda _: None, *, keep: Keep | None = None) -> Arm:
    """The arm with this name; `log` is called with each step of a guest, `keep` is what the simulator keeps."""
    if name == "sim":
        from schedlab.arms.arm import SimArm

        return SimArm(engine, keep)
    if name == "host":
        from schedlab.arms.host import HostArm

        return HostArm(engine)
    if name == "vm":
        from schedlab.arms.vm import VmArm

        return VmArm(engine, log)
    raise InputError(f"there is no arm `{name}`", hint=spelling.hint(name, ("sim", "host", "vm"), "the arms are"))
