"""Times, shares and names with their shares, as the sentences of a page give them."""

from __future__ import annotations

from collections import Counter

from schedlab.render.cells import plural

NAMED = 3
"""How many names of a kind are given; the others are added up."""


def time(ns: float) -> str:
    """Three significant digits in a unit that fits."""
    size = abs(ns)
    unit, scale = ("s", 1e9) if size >= 1e9 else ("ms", 1e6) if size >= 1e6 else ("us", 1e3)
    x = ns / scale
    return f"{x:.0f} {unit}" if abs(x) >= 100 or x == 0 else f"{x:.3g} {unit}"


def share(part: float, whole: float) -> str:
    """In percent, without decimals but for small ones."""
    x = 100 * part / whole if whole else 0.0
    if 0 < x < 0.001:
        return "<0.001%"
    return f"{x:.0f}%" if x >= 9.5 or x == 0 else f"{x:.1g}%"


def names(found: Counter[str], whole: float, *, only: bool = False) -> str:
    """The most frequent names with their shares of the whole."""
    most = found.most_common(1 if only else NAMED)
    if only:
        return " and ".join(name or "a task without a name" for name, _ in most)
    parts = [f"{name or 'a task without a name'} ({share(n, whole)})" for name, n in most]
    if rest := found.total() - sum(n for _, n in most):
        parts.append(f"{plural(len(found) - len(most), 'other')} ({share(rest, whole)})")
    return ", ".join(parts)
