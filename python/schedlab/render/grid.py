"""Aligned columns and numbers that fit in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from schedlab.plain import escaped

NOTHING = "-"
UNBOUNDED_PCT = 1e9
"""The end of an interval that no value bounds is a ratio this large."""


def value(x: float | None) -> str:
    """Four significant digits; whole numbers in full, with separators."""
    if x is None:
        return NOTHING
    if x == int(x) or abs(x) >= 999.95:
        return f"{x:,.0f}"
    return f"{x:#.4g}"


def percent(x: float | None) -> str:
    """A signed percentage: one decimal, two when it is small."""
    if x is None:
        return NOTHING
    if abs(x) >= UNBOUNDED_PCT:
        return f"{math.copysign(math.inf, x):+}%"
    if abs(x) >= 1000:
        return f"{x:+,.0f}%"
    shown = f"{x:+.1f}%" if abs(x) >= 10 else f"{x:+.2f}%"
    return shown if float(shown[:-1]) else "0.00%"


def size(x: float) -> str:
    """A percentage without a sign, two digits of it."""
    return f"{x:,.0f}%" if x >= 10 else f"{x:.2g}%"


def columns(rows: Sequence[Sequence[str]], align: str, gap: str = "  ") -> list[str]:
    """Lines of equal columns; `align` has one `<` or `>` per column. Trailing blanks are cut."""
    rows = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        gap.join(f"{cell:{side}{width}}" for cell, side, width in zip(row, align, widths, strict=True)).rstrip()
        for row in rows
    ]
