"""Gives a guest the CPU topology of a machine, and checks what the guest's kernel detects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedlab.errors import ArmError, RunError
from schedlab.guests.qemu import numa

MOST_CPUS = 64
"""Emulating more CPUs takes too long."""

Groups = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The number of units of each kind, and the number of CPUs of each."""

    cpus: int
    sizes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, groups: Groups) -> Shape:
        sizes = {kind: tuple(sorted(len(cpus(text)) for text in lists)) for kind, lists in groups.items() if lists}
        return cls(sum(sizes.get("cores", ())), sizes)


def smp(groups: Groups, count: int, memory_mb: int = 1024) -> tuple[str | None, tuple[str, ...]]:
    """The QEMU options for the topology and for its nodes."""
    if count > MOST_CPUS:
        raise ArmError(f"a guest of {count} CPUs is too large to emulate: the most is {MOST_CPUS}")
    if count == 1 or not groups:
        return None, ()
    if "clusters" in groups:
        raise ArmError("QEMU's x86 guests have no clusters of cores", hint="leave out cores-per-cluster of [topology]")
    if "capacities" in groups:
        raise ArmError("CPUs of a QEMU guest all run at one speed", hint="leave out [[cpu-type]] of the machine")
    sockets, llcs, cores = (len(groups[kind]) for kind in ("sockets", "llcs", "cores"))
    dies, in_die, threads = llcs // sockets, cores // llcs, count // cores
    if sockets * dies * in_die * threads != count or len(groups["nodes"]) not in (1, sockets):
        raise ArmError(
            "QEMU cannot represent the topology of this machine: its parts differ in size", hint="see [topology]"
        )
    arrangement = f"sockets={sockets},dies={dies},cores={in_die},threads={threads}"
    return arrangement, numa(len(groups["nodes"]), count, memory_mb)


def verify(declared: Groups, found: Groups) -> None:
    """The guest's kernel must detect the topology of the scenario; the numbers of CPUs may differ."""
    want, have = Shape.of(declared), Shape.of(found)
    for kind, sizes in want.sizes.items():
        if kind in have.sizes and have.sizes[kind] != sizes:
            raise RunError(
                f"the guest's {kind} differ from those of the scenario's machine: "
                f"{_words(have.sizes[kind])} instead of {_words(sizes)}",
                hint="QEMU or this kernel arranges the CPUs differently; choose a simpler [topology]",
            )


def _words(sizes: Sequence[int]) -> str:
    each = f"{sizes[0]}" if len(set(sizes)) == 1 else ", ".join(map(str, sizes))
    return f"{len(sizes)} of {each} CPU{'s' * (each != '1')}"


def cpus(text: str) -> list[int]:
    """`0-2,5` as numbers."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        found += range(int(first), int(last or first) + 1) if first else ()
    return found
