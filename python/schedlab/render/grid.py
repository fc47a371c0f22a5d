"""Aligned columns and numbers that fit in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

from schedlab.plain import escaped

NOTHING = "-"
NARROWEST = 16
"""The first column of a table that has to fit is never narrower."""
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


def fitted(rows: Sequence[Sequence[str]], align: str, width: int, gap: str = "  ") -> list[str]:
    """`columns` within `width` if that is possible: the head wraps at words first, then the first column anywhere."""
    rows = [[escaped(cell) for cell in row] for row in rows]
    if max(map(len, columns(rows, align, gap))) <= width:
        return columns(rows, align, gap)
    head, *body = rows
    heads = [head[0]]
    for i, cell in enumerate(head[1:], 1):
        room = max([1, *(len(word) for word in cell.split()), *(len(row[i]) for row in body)])
        heads.append("\n".join(wrap(cell, room, break_on_hyphens=False)))
    others = sum(
        len(gap) + max([*map(len, heads[i].split("\n")), *(len(row[i]) for row in body)]) for i in range(1, len(head))
    )
    first = max(NARROWEST, width - others)
    tall: list[list[str]] = []
    for row in [heads, *body]:
        cells = [cell.split("\n") for cell in row]
        cells[0] = wrap(row[0], first, subsequent_indent="  ") or [""]
        most = max(map(len, cells))
        tall += [[cell[i] if i < len(cell) else "" for cell in cells] for i in range(most)]
    return columns(tall, align, gap)


def columns(rows: Sequence[Sequence[str]], align: str, gap: str = "  ") -> list[str]:
    """Lines of equal columns; `align` has one `<` or `>` per column. Trailing blanks are cut."""
    rows = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        gap.join(f"{cell:{side}{width}}" for cell, side, width in zip(row, align, widths, strict=True)).rstrip()
        for row in rows
    ]
