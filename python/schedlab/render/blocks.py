"""A document of headings, paragraphs, lists and tables, written as Markdown or as one HTML file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as html_escape
from pathlib import Path
from typing import Any

from schedlab import plain
from schedlab.render.figure import figure, scripts

_STYLE = Path(__file__).parent / "page.css"
_SPAN = re.compile(r"`([^`]+)`|\[([^\]]+)\]\(([^)\s]+)\)")
"""Code and links, the only markup within a paragraph."""
_SPECIAL = re.compile(r"([\\|*`~<>\[\]])")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*(%|x)?|-")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that may hold `code` and [links](target)."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of plain lines."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """Plain cells; the first row is the head."""

    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A Vega-Lite specification; Markdown leaves it out, since the tables have its numbers."""

    name: str
    spec: dict[str, Any]


Block = Heading | Paragraph | Items | Table | Chart


def markdown(blocks: Iterable[Block]) -> str:
    """The document as Markdown."""
    return "\n\n".join(_markdown(block) for block in blocks if not isinstance(block, Chart)) + "\n"


def html(blocks: Sequence[Block]) -> str:
    """The document as one HTML file that refers to nothing outside it."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "schedlab")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_escape(title)}</title>",
            f"<style>{_STYLE.read_text(encoding='utf-8')}</style></head><body><main>",
            *(_html(block) for block in blocks),
            "</main>",
            *(scripts() if any(isinstance(block, Chart) for block in blocks) else []),
            "</body></html>",
            "",
        ]
    )


def _markdown(block: Heading | Paragraph | Items | Table) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_plain(block.text)}"
    if isinstance(block, Paragraph):
        return block.text
    if isinstance(block, Items):
        return "\n".join(f"- {_plain(line)}" for line in block.lines)
    head, *rest = block.rows
    marks = ["---:" if _numbers(rest, i) else "---" for i in range(len(head))]
    lines = [[_plain(cell) for cell in head], marks, *([_plain(cell) for cell in row] for row in rest)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _plain(text: str) -> str:
    """Without anything that Markdown takes for markup."""
    return _SPECIAL.sub(r"\\\1", plain.escaped(text))


def _html(block: Block) -> str:
    if isinstance(block, Chart):
        return figure(block.name, block.spec)
    if isinstance(block, Heading):
        return f"<h{block.level}>{_escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{_spans(block.text)}</p>"
    if isinstance(block, Items):
        return "<ul>" + "".join(f"<li>{_escape(line)}</li>" for line in block.lines) + "</ul>"
    head, *rest = block.rows
    kinds = ["" if _numbers(rest, i) else ' class="text"' for i in range(len(head))]
    titles = "".join(f'<th scope="col"{kind}>{_escape(cell)}</th>' for kind, cell in zip(kinds, head, strict=True))
    body = "".join(_row(row, kinds) for row in rest)
    table = f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{_escape(head[0] or "table")}">{table}</div>'


def _row(row: Sequence[str], kinds: Sequence[str]) -> str:
    first, *others = row
    cells = "".join(f"<td{kind}>{_escape(cell)}</td>" for kind, cell in zip(kinds[1:], others, strict=True))
    return f'<tr><th scope="row">{_escape(first)}</th>{cells}</tr>'


def _numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether every cell of a column is a number."""
    return bool(rows) and all(_NUMBER.fullmatch(row[column]) for row in rows)


def _spans(text: str) -> str:
    """Code and links of a paragraph as HTML; a link to another page becomes its text."""
    parts, end = [], 0
    for found in _SPAN.finditer(text):
        code, label, target = found.groups()
        parts.append(_escape(text[end : found.start()]))
        if code is not None:
            parts.append(f"<code>{_escape(code)}</code>")
        elif target.startswith("https://"):
            parts.append(f'<a href="{_escape(target)}">{_escape(label)}</a>')
        else:
            parts.append(_escape(label))
        end = found.end()
    return "".join([*parts, _escape(text[end:])])


def _escape(text: str) -> str:
    return html_escape(plain.escaped(text))
