"""The design of a comparison, fixed in advance: when the data are judged, and the runs for the noise floor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from schedlab import shape

DESIGN = shape.table({}, dict.fromkeys(("looks", "again"), shape.items(shape.whole)))
"""How a stored result holds it."""


@dataclass(frozen=True, slots=True)
class Design:
    """Nothing by default: every seed runs, and the samples are judged once."""

    looks: tuple[int, ...] = ()
    """The numbers of units after which the samples are judged; empty: once, at the end."""
    again: tuple[int, ...] = ()
    """Seeds for further runs of the first variant, which are compared with its runs: the noise floor."""

    @classmethod
    def from_record(cls, d: Mapping[str, Any] | None) -> Self:
        """The inverse of `to_record`; results of older versions have none."""
        d = d or {}
        return cls(tuple(d.get("looks", ())), tuple(d.get("again", ())))

    def to_record(self) -> dict[str, Any]:
        return {"looks": list(self.looks), "again": list(self.again)}

    def stages(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """How many seeds have run at the end of each stage."""
        return tuple(n for n in self.looks if n <= len(seeds)) or (len(seeds),)

    def reached(self, seeds: Sequence[int], variants: Sequence[str], ended: Collection[tuple[str, int]]) -> int:
        """How many seeds to judge: those of the last stage that was completed, or of the first."""
        stages = self.stages(seeds)
        whole = [n for n in stages if all((v, s) in ended for s in seeds[:n] for v in variants)]
        return whole[-1] if whole else stages[0]


def further_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """As many seeds again, none of them among those given."""
    first = max(seeds, default=0) + 1
    return tuple(range(first, first + len(seeds)))
