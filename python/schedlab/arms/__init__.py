"""What runs a scenario: the simulator, the running kernel, or another kernel in QEMU; all behind one interface."""

from __future__ import annotations

from schedlab.arms.arm import Arm, Place, SimArm
from schedlab.engine import Engine
from schedlab.errors import InputError

__all__ = ["Arm", "Place", "SimArm", "arm_of"]


def arm_of(name: str, engine: Engine) -> Arm:
    """The arm of this name."""
    if name == "sim":
        return SimArm(engine)
    if name == "host":
        from schedlab.arms.host import HostArm

        return HostArm(engine)
    if name == "vm":
        from schedlab.arms.vm import VmArm

        return VmArm(engine)
    raise InputError(f"there is no arm `{name}`", hint="the arms are sim, host and vm")
