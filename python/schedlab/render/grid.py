"""Aligned columns, numbers that fit in them, and text: all of it fits a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from schedlab.plain import COLOURS, escaped

WIDTH = 80
"""Of every table and of running text."""
NOTHING = "-"
NARROWEST = 16
"""A column of words that has to wrap is never narrower."""
WIDEST = 36
"""Nor is it wider, where a row takes several lines anyway."""
STACKED = 4
"""How far the columns that do not fit beside the others are indented."""
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


def columns(
    rows: Sequence[Sequence[str]], align: str, gap: str = "  ", *, width: int | None = WIDTH, indent: int = 0
) -> list[str]:
    """Lines of aligned columns; `align` has one `<` (words) or `>` (numbers) per column, and the first row is the head.

    A table wider than `width` wraps the words of its head, then those of its columns of words. If that is not enough,
    the last columns stand on lines of their own below the first. None: as wide as it is.
    """
    return [line for lines in layout(rows, align, gap, width=width, indent=indent) for line in lines]


def layout(
    rows: Sequence[Sequence[str]], align: str, gap: str = "  ", *, width: int | None = WIDTH, indent: int = 0
) -> list[list[str]]:
    """The lines of each row of `columns`."""
    rows = [[escaped(cell) for cell in row] for row in rows]
    room = 10**6 if width is None else width - indent
    widths, groups = _shares(rows, align, len(gap), room)
    found = []
    for row in rows:
        lines = []
        for group in groups:
            cells = [_wrapped(row[i], widths[i], "  " if i == 0 else "") for i in group]
            before = " " * (indent + (STACKED if group[0] else 0))
            for at in range(max(map(len, cells))):
                parts = (c[at] if at < len(c) else "" for c in cells)
                filled = gap.join(f"{part:{align[i]}{widths[i]}}" for i, part in zip(group, parts, strict=True))
                lines.append(f"{before}{filled}".rstrip())
        found.append([line for line in lines if line] or [""])
    return found


def _shares(rows: Sequence[Sequence[str]], align: str, gap: int, room: int) -> tuple[list[int], list[list[int]]]:
    """The width of each column, and which columns share a line."""
    natural = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    every = list(range(len(natural)))

    def fits(widths: Sequence[int]) -> bool:
        return sum(widths) + gap * (len(widths) - 1) <= room

    if fits(natural):
        return natural, [every]
    floors = [_floor([row[i] for row in rows], align[i]) for i in every]
    widths = [max(floors[i], *(len(row[i]) for row in rows[1:]), 1) for i in every]
    while not fits(widths):
        wide = [i for i in every if widths[i] > floors[i]]
        if not wide:
            break
        widths[max(wide, key=lambda i: widths[i])] -= 1
    if fits(widths):
        return widths, [every]
    widths = [min(n, max(f, WIDEST), room - STACKED) for n, f in zip(natural, floors, strict=True)]
    groups, used = [[0]], widths[0]
    for i in every[1:]:
        left = room - used - gap
        if floors[i] <= left < widths[i] and align[i] == "<":
            widths[i] = left
        if widths[i] <= left:
            groups[-1].append(i)
            used += gap + widths[i]
        else:
            groups.append([i])
            used = STACKED + widths[i]
    return widths, groups


def _floor(cells: Sequence[str], side: str) -> int:
    """How narrow a column may be: numbers do not wrap, words do, and so do the words of a head."""
    head, *body = cells
    word = max(map(len, head.split()), default=1)
    if side == ">":
        return max(word, *map(len, body), 1) if body else word
    longest = max((len(cell) for cell in body), default=1)
    words = max((_indented(cell) + len(w) for cell in body for w in cell.split()), default=1)
    return max(word, words, min(longest, NARROWEST))


def _wrapped(cell: str, width: int, hanging: str) -> list[str]:
    """A cell in lines of at most `width`; leading blanks are kept, and long words break only where they must."""
    if len(cell) <= width:
        return [cell]
    from textwrap import wrap  # most cells fit

    lead = " " * min(_indented(cell), width // 2)
    return wrap(cell.strip(), width, initial_indent=lead, subsequent_indent=lead + hanging, break_on_hyphens=False) or [
        ""
    ]


def _indented(cell: str) -> int:
    return len(cell) - len(cell.lstrip())


def fold(text: str, width: int = WIDTH) -> str:
    """Running text and tables: every line that is too long is wrapped between words and indented."""
    lines = []
    for line in text.split("\n"):
        if len(COLOURS.sub("", line)) <= width:
            lines.append(line)
            continue
        from textwrap import wrap  # most texts fit

        lead = " " * _indented(line)
        lines += wrap(
            line.strip(), width, initial_indent=lead, subsequent_indent=lead + "    ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines)
