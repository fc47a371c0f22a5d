"""Comparisons as text, one file per style, as a page and as a document; colour and files are not decided here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedlab.closer import Closer
    from schedlab.comparison import Comparison

STYLES = ("table", "details", "markdown", "csv", "mmtests", "benchstat", "ministat", "perf-stat")


def text(comparison: Comparison, style: str = "table", *, colour: bool = False, width: int | None = None) -> str:
    """The comparison in one of STYLES, each a module of that name with a `render`.

    `width` is that of the terminal, in columns, and is used by the default style only.
    """
    if style not in STYLES:
        raise ValueError(f"no style {style!r}; there are {', '.join(STYLES)}")
    module = import_module(f"schedlab.render.{style.replace('-', '_')}")
    wide = {"width": width} if width and style == "table" else {}
    return str(module.render(comparison, colour=colour, **wide))


def html(comparison: Comparison, look: Closer | str | None = None) -> str:
    """The self-contained page that `compare --html` writes; `look` is what `schedlab.closer` found."""
    from schedlab.render.page import page

    return page(comparison, look)


def json_document(comparison: Comparison) -> dict[str, Any]:
    """The document that `compare --json` prints."""
    from schedlab.render.document import compare_document

    return compare_document(comparison)
