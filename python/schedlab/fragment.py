"""A small HTML table for notebooks; every text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """One row per element; numbers are shown with four digits, None as a dash."""
    import html  # slow to import, and only notebooks show tables

    cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    lines = ["<tr>" + "".join(f"<td>{html.escape(_shown(value))}</td>" for value in row) + "</tr>" for row in rows]
    top = f"<caption>{html.escape(caption)}</caption><thead><tr>{cells}</tr></thead>"
    return f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
