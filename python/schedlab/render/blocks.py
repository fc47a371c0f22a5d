"""A document of headings, paragraphs, lists and tables, written as Markdown or as one HTML file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from schedlab import plain
from schedlab.render.figure import figure
from schedlab.render.markup import cells, escape, items, table

LONG = 24
"""Letters from which on a cell may wrap."""
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
    from schedlab.render.page import document

    return document(title, _blocks(blocks), charts=any(isinstance(block, Chart) for block in blocks))


def _blocks(blocks: Sequence[Block]) -> Iterable[str]:
    """Each block as HTML; a table is called after the heading above it, with a number where there are several."""
    heading, tables = "", 0
    for block in blocks:
        if isinstance(block, Heading):
            heading, tables = block.text, 0
        if isinstance(block, Table):
            tables += 1
            yield _table(block, heading if tables == 1 else f"{heading}, table {tables}")
        else:
            yield _html(block)


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


def _html(block: Chart | Heading | Paragraph | Items) -> str:
    if isinstance(block, Chart):
        return figure(block.name, block.spec)
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{_spans(block.text)}</p>"
    return items(block.lines)


def _table(block: Table, caption: str) -> str:
    """Numbers are right-aligned; other cells are left-aligned, and long ones wrap."""
    head, *rest = block.rows
    looks = ["" if _numbers(rest, i) else _look(rest, i) for i in range(1, len(head))]
    return table(caption, head, [cells(head, row, looks=looks) for row in rest], cards=True)


def _look(rows: Sequence[Sequence[str]], column: int) -> str:
    return "text why" if any(len(row[column]) > LONG for row in rows) else "text"


def _numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether every cell of a column is a number."""
    return bool(rows) and all(_NUMBER.fullmatch(row[column]) for row in rows)


def _spans(text: str) -> str:
    """Code and links of a paragraph as HTML; a link to another page becomes its text."""
    parts, end = [], 0
    for found in _SPAN.finditer(text):
        code, label, target = found.groups()
        parts.append(escape(text[end : found.start()]))
        if code is not None:
            parts.append(f"<code>{escape(code)}</code>")
        elif target.startswith("https://"):
            parts.append(f'<a href="{escape(target)}">{escape(label)}</a>')
        else:
            parts.append(escape(label))
        end = found.end()
    return "".join([*parts, escape(text[end:])])
