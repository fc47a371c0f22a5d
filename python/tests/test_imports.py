"""No module of the package imports one that imports it, not even within a function; types alone may."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "schedlab"


def modules() -> dict[str, Path]:
    files = PACKAGE.rglob("*.py")
    named = ((".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts), file) for file in files)
    return {name.removesuffix(".__init__"): file for name, file in named}


def imports(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name in known)
        elif isinstance(child, ast.ImportFrom) and child.module:
            names = (f"{child.module}.{alias.name}" for alias in child.names)
            yield from (name if name in known else child.module for name in names)
        yield from imports(child, known)


def graph() -> dict[str, set[str]]:
    known = modules()
    return {
        name: {one for one in imports(ast.parse(file.read_text(encoding="utf-8")), known) if one in known} - {name}
        for name, file in known.items()
    }


def test_imports_have_no_circle() -> None:
    found = graph()
    assert found["schedlab.cli.output"] > {"schedlab.render"}
    graphlib.TopologicalSorter(found).prepare()  # raises CycleError, which names the circle
