"""Which changes of a pair of variants remain certain when all of its metrics are tested together (Holm)."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

from schedlab.judge import ALPHA
from schedlab.statistics import smallest_n

if TYPE_CHECKING:
    from schedlab.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Together:
    """The changes of one pair, by the names of their metrics."""

    tested: int
    """The number of metrics that were tested."""
    found: tuple[str, ...]
    """The changes that are certain for their metric by itself."""
    lost: tuple[str, ...]
    """Those of them that are not certain any more."""
    seeds: int
    fewest: int
    """The fewest seeds with which any change can be certain; 0 if there are as many."""


def together(comparison: Comparison, a: str, b: str) -> Together | None:
    """None where fewer than two metrics were tested, or no change was found."""
    tested = [(m.name, j) for m, j in comparison.judgements() if (j.a, j.b) == (a, b) and j.p_holm is not None]
    found = [(name, j) for name, j in tested if j.p is not None and j.p <= ALPHA]
    if len(tested) < 2 or not found:
        return None
    lost = tuple(name for name, j in found if (j.p_holm or 0) > ALPHA)
    seeds = max(j.difference.pairs for _, j in tested)
    return Together(len(tested), tuple(name for name, _ in found), lost, seeds, fewest(seeds, len(tested)))


def needed(variants: int, seeds: int) -> int:
    """The fewest seeds with which two of so many variants can be distinguished; 0 if these are enough."""
    return fewest(seeds, comb(variants, 2)) if variants > 1 else 0


def fewest(seeds: int, tests: int) -> int:
    """The fewest seeds with which one of so many tests can be certain after Holm; 0 if these are enough."""
    least = smallest_n(ALPHA / tests)
    return least if seeds < least else 0
