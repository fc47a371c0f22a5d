"""Comparisons as text, one file per style; colour and files are the command line's business."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedlab.comparison import Comparison

STYLES = ("table", "markdown", "csv", "mmtests", "benchstat", "ministat", "perf-stat")


def text(comparison: Comparison, style: str = "table", *, colour: bool = False) -> str:
    """The comparison in one of STYLES, each a module of that name with a `render`."""
    if style not in STYLES:
        raise ValueError(f"no style {style!r}; there are {', '.join(STYLES)}")
    module = import_module(f"schedlab.render.{style.replace('-', '_')}")
    return str(module.render(comparison, colour=colour))
