"""Comma-separated values: one row per metric and pair, with the columns of `Comparison.table()`."""

from __future__ import annotations

import csv
import io

from schedlab.comparison import Comparison


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """The whole text, without a final newline; missing values are empty."""
    del colour
    rows = comparison.table()
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue().rstrip("\n")
