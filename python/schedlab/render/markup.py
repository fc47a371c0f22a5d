"""Pieces of HTML that every page is made of; whatever text they are given cannot become markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html_escape

from schedlab import plain

_LEFT = ' class="text"'
TEXT_COLUMNS = {"metric", "quantity", "verdict", "why", "seed", "percentile", "meaning", "task", "reason", "where"}
TEXT_COLUMNS |= {"where the time went", "CPU", "sample", "variant", "its time", "at the midpoint"}


def escape(text: str) -> str:
    """Text for the page, whatever is in it."""
    return html_escape(plain.escaped(text))


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, cards: bool = False, words: bool = False
) -> str:
    """Finished cells in a region that scrolls by itself; with `cards`, narrow screens show a row as a card.

    The first column holds the headers of the rows, left-aligned as their title is; with `words`, all columns do.
    """
    left = [words or i == 0 or h in TEXT_COLUMNS for i, h in enumerate(head)]
    titles = "".join(f'<th scope="col"{_LEFT * text}>{escape(h)}</th>' for h, text in zip(head, left, strict=True))
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    inner = f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    look = "scroll cards" if cards else "scroll"
    return f'<div class="{look}" tabindex="0" role="region" aria-label="{escape(caption)}">{inner}</div>'


def cells(head: Sequence[str], texts: Sequence[str], *, title: str = "", looks: Sequence[str] = ()) -> list[str]:
    """One row: a header and cells that name their columns, for screens on which a row is a card."""
    classes = [*looks, *([""] * (len(texts) - 1 - len(looks)))]
    shown = []
    for label, look, text in zip(head[1:], classes, texts[1:], strict=True):
        kind = " ".join(filter(None, ["text" if label in TEXT_COLUMNS else "", look]))
        attribute = f' class="{kind}"' if kind else ""
        shown.append(f'<td data-label="{escape(label)}"{attribute}>{escape(text)}</td>')
    hint = f' title="{escape(title)}"' if title else ""
    return [f'<th scope="row"{hint}>{escape(texts[0])}</th>', *shown]


def details(summary: str, content: str) -> str:
    """Content that a click shows."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def items(lines: Sequence[str]) -> str:
    """A list of plain lines, or nothing."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else ""


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they stand for."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs) + "</dl>"
