"""Why guests cannot run a scenario, as far as the scenario shows: it decides which commands are suggested."""

from __future__ import annotations

import re

from schedlab.arms import topology
from schedlab.arms.arm import check_real
from schedlab.errors import ArmError
from schedlab.scenario import Scenario, Variant

SMT_FROM = (6, 9)
"""Earlier kernels take the threads of an emulated AMD core for cores: QEMU emulates no TOPOEXT (CPUID 0x8000001e), and
their fallback counts cores only. Observed with 6.1; 6.12, whose topology code was rewritten in 6.9, counts threads."""


def why_not(scenario: Scenario) -> str | None:
    """The first reason; None if the scenario shows none."""
    without = [v.kernel for v in own_kernels(scenario) if v.in_debian is False]
    if without:
        return f"Debian has no image of {', '.join(dict.fromkeys(without))} (`image` of [arm.vm] can name one)"
    try:
        check_real(scenario)
        topology.smp(scenario.machine.topology, scenario.machine.cpus)
        check_threads(scenario)
    except ArmError as e:
        return e.message
    return None


def own_kernels(scenario: Scenario) -> list[Variant]:
    """The variants that boot the kernel of their row: the others boot an image that the scenario names."""
    named = scenario.arms["vm"].get("images") or {}
    return [v for v in scenario.variants if v.name not in named]


def check_threads(scenario: Scenario) -> None:
    """Refuse SMT on emulated CPUs with kernels that would not see it."""
    groups, count = scenario.machine.topology, scenario.machine.cpus
    if len(groups.get("cores", ())) in (0, count):
        return
    old = [v.kernel for v in own_kernels(scenario) if v.release and _series(v.release) < SMT_FROM]
    if old:
        raise ArmError(
            f"{', '.join(dict.fromkeys(old))} cannot see the SMT threads of emulated CPUs",
            hint="use a machine with threads-per-core = 1, or kernels from 6.9 on",
            file=scenario.file,
        )


def _series(release: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", release)[:2])
