"""Drawn loads on machines of several sizes, compared until enough switches agree or a decision differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from schedlab.compiled import draw
from schedlab.compiled.load import Load
from schedlab.compiled.rows import Row
from schedlab.compiled.verify import KINDS, Difference, compare, shrink

if TYPE_CHECKING:
    from schedlab.engine import Cancel, Engine

PER_LOAD = 20_000
"""About how many switches a load has; each load draws other features."""


@dataclass(frozen=True)
class Order:
    """What is compared."""

    against: str
    cpus: tuple[int, ...]
    switches: int
    seed: int


@dataclass
class Result:
    """What was compared, and the first difference."""

    compared: dict[int, dict[str, int]] = field(default_factory=dict)
    """Equal decisions by number of CPUs and kind."""
    loads: int = 0
    difference: Difference | None = None
    seed: int = 0
    """Of the load that differs."""
    load: Load | None = None
    smallest: Load | None = None
    warnings: tuple[str, ...] = ()
    failure: str = ""
    stubs: dict[str, int] = field(default_factory=dict)

    @property
    def switches(self) -> int:
        """Equal switches on all machines."""
        return sum(counts["switches"] for counts in self.compared.values())

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "compared": {str(cpus): counts for cpus, counts in self.compared.items()},
            "loads": self.loads,
            "difference": asdict(self.difference) if self.difference else None,
            "seed": self.seed if self.difference else None,
            "warnings": list(self.warnings),
            "failure": self.failure,
            "stubs": self.stubs,
        }


def verify(engine: Engine, row: Row, order: Order, say: Callable[[str], None], cancel: Cancel | None = None) -> Result:
    """Compare load after load, one per size of the machine in turn.

    Raises:
        InputError: the row does not exist, or lacks what a load uses.
    """
    result, seed = Result(), order.seed
    while True:
        for cpus in order.cpus:
            load = draw.draw(seed, cpus, duration(cpus), draw.FEATURES)
            found = compare(engine, row.program, order.against, load, cancel)
            counts = result.compared.setdefault(cpus, dict.fromkeys(KINDS, 0))
            for kind in KINDS:
                counts[kind] += found.compared[kind]
            for name, calls in found.stubs.items():
                result.stubs[name] = result.stubs.get(name, 0) + calls
            result.loads += 1
            result.warnings += found.warnings
            if found.difference or found.failure:
                result.difference, result.failure = found.difference, found.failure
                result.seed, result.load = seed, load
                if found.difference and not found.failure:
                    say(f"seed {seed} on {cpus} CPUs differs; looking for the smallest scenario")
                    result.smallest = shrink(
                        lambda smaller: compare(engine, row.program, order.against, smaller, cancel).difference,
                        load,
                        say,
                    )
                    last = compare(engine, row.program, order.against, result.smallest, cancel).difference
                    result.difference = last or result.difference
                return result
            if result.switches >= order.switches:
                return result
        seed += 1


def duration(cpus: int) -> int:
    """The length of a load (ns), so that loads on all machines have about as many switches."""
    return max(20_000_000, PER_LOAD * 2_000_000 // cpus)
