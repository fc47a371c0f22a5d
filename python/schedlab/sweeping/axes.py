"""The axes of a sweep and the points of its design: a full grid, or a Latin hypercube."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = str | int | float | bool
"""What a key of a scenario is set to."""

NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ns|us|ms|s)?")


@dataclass(frozen=True, slots=True)
class Level:
    """One place on an axis: its name, and the keys of the scenario that it sets."""

    label: str
    sets: Mapping[str, Value]
    number: float | None = None
    """Its place on the scale of the axis; None if the axis has none."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range from which a Latin hypercube draws, or which a grid divides into steps."""

    key: str
    low: float
    high: float
    unit: str
    """Empty, or the unit of time of the bounds."""
    log: bool
    whole: bool

    def level(self, fraction: float) -> Level:
        """The level at a fraction from 0 to 1 of the range, rounded to three significant digits."""
        ratio = self.high / self.low if self.log else 1.0
        at = self.low * ratio**fraction if self.log else self.low + fraction * (self.high - self.low)
        at = float(round(at)) if self.whole else float(f"{at:.3g}")
        return level_of(self.key, f"{at:.12g}{self.unit}" if self.unit else int(at) if self.whole else at)


@dataclass(frozen=True, slots=True)
class Axis:
    """Levels in their order, or a range."""

    name: str
    levels: tuple[Level, ...]
    span: Span | None = None
    unit: str = ""
    """The unit of the levels' numbers."""

    def at(self, fraction: float) -> Level:
        """The level at a fraction from 0 to 1 (exclusive)."""
        if self.span:
            return self.span.level(fraction)
        return self.levels[min(int(fraction * len(self.levels)), len(self.levels) - 1)]

    @property
    def numeric(self) -> bool:
        """Whether its levels have a place on a scale."""
        return self.span is not None or all(level.number is not None for level in self.levels)


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of levels, one of each axis."""

    index: int
    levels: tuple[Level, ...]

    @property
    def sets(self) -> dict[str, Value]:
        """The keys that it sets, in the order of the axes."""
        return {key: value for level in self.levels for key, value in level.sets.items()}

    @property
    def label(self) -> str:
        return ", ".join(level.label for level in self.levels)


def level_of(key: str, value: Value, label: str | None = None) -> Level:
    """The level that sets one key; a number, or a time with its unit, has a place on the axis."""
    return Level(shown(value) if label is None else label, {key: value}, number_of(value))


def shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}" if isinstance(value, float) else str(value)


def number_of(value: Value) -> float | None:
    """The value as a number, a time in ns; None if it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _QUANTITY.fullmatch(value.strip())
    return float(found[1]) * NANOSECONDS.get(found[2] or "", 1) if found else None


def quantity(value: Value) -> tuple[float, str] | None:
    """The number and the unit of time, which may be empty, of the end of a range."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    found = _QUANTITY.fullmatch(value.strip())
    return (float(found[1]), found[2]) if found and found[2] else None


def full(axes: Sequence[Axis]) -> list[Point]:
    """Every combination; the last axis changes fastest."""
    return [Point(i, levels) for i, levels in enumerate(itertools.product(*(axis.levels for axis in axes)))]


def latin_hypercube(axes: Sequence[Axis], points: int, seed: int) -> list[Point]:
    """This many points, one in each of as many equal parts of every axis; the same for the same seed."""
    from scipy.stats import qmc

    drawn = qmc.LatinHypercube(d=len(axes), rng=seed).random(points)
    found = [
        tuple(axis.at(float(min(x, math.nextafter(1, 0)))) for axis, x in zip(axes, row, strict=True)) for row in drawn
    ]
    distinct = {tuple(level.label for level in levels): levels for levels in found}
    return [Point(i, levels) for i, levels in enumerate(distinct.values())]
