"""Holm's adjustment: p values that stay valid when many metrics are looked at together."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values, in the order given; None stays None and does not count.

    The chance that any metric without a difference gets an adjusted p of at most 5% is at most 5%, however
    the metrics depend on each other.
    """
    ranked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, i) in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - rank) * p))
        adjusted[i] = highest
    return adjusted
