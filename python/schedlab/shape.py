"""Shapes of JSON documents that may have been edited: an error names the path of the value that does not fit.

A shape is a function that takes a value and its path and raises `ShapeError`. Keys that a table does not list are
allowed: a later version may have written them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

Shape = Callable[[Any, str], None]
SHOWN = 40
LARGEST = 2**64


class ShapeError(ValueError):
    """A value that does not have the expected shape."""


def fits(value: Any, shape: Shape, path: str = "") -> None:
    """Raise ShapeError with the path of the first value that does not fit."""
    shape(value, path)


def loads(text: str | bytes) -> Any:
    """A JSON document without NaN and infinity, which JSON does not have; ValueError otherwise."""

    def refuse(word: str) -> NoReturn:
        raise ShapeError(f"{word} is not a JSON number")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ShapeError("nested too deeply") from None
    except UnicodeDecodeError:
        raise ShapeError("not UTF-8 text") from None


def string(value: Any, path: str) -> None:
    _expect(isinstance(value, str), value, path, "a string")


def flag(value: Any, path: str) -> None:
    _expect(isinstance(value, bool), value, path, "true or false")


def whole(value: Any, path: str) -> None:
    """An integer of the engine's range."""
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST
    _expect(fine, value, path, "a whole number")


def number(value: Any, path: str) -> None:
    """A finite number."""
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    _expect(fine and abs(value) < LARGEST and math.isfinite(value), value, path, "a number")


def anything(value: Any, path: str) -> None:
    del value, path


def one_of(*words: str) -> Shape:
    """One of these words."""

    def shape(value: Any, path: str) -> None:
        _expect(value in words if isinstance(value, str) else False, value, path, f"one of {', '.join(words)}")

    return shape


def maybe(inner: Shape) -> Shape:
    """The inner shape, or null."""

    def shape(value: Any, path: str) -> None:
        if value is not None:
            inner(value, path)

    return shape


def items(inner: Shape, least: int = 0) -> Shape:
    """A list."""

    def shape(value: Any, path: str) -> None:
        _expect(isinstance(value, list), value, path, "a list")
        if len(value) < least:
            raise ShapeError(f"`{path}` is empty")
        for at, item in enumerate(value):
            inner(item, f"{path}[{at}]")

    return shape


def mapping(inner: Shape) -> Shape:
    """A table with any keys."""

    def shape(value: Any, path: str) -> None:
        _expect(isinstance(value, dict), value, path, "a table")
        for key, item in value.items():
            inner(item, _below(path, key))

    return shape


def table(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """A table with these keys."""

    def shape(value: Any, path: str) -> None:
        _expect(isinstance(value, dict), value, path, "a table")
        for key, inner in required.items():
            if key not in value:
                raise ShapeError(f"`{_below(path, key)}` is missing")
            inner(value[key], _below(path, key))
        for key, inner in (optional or {}).items():
            if key in value:
                inner(value[key], _below(path, key))

    return shape


def distinct(shape: Shape, key: str) -> Shape:
    """A list of tables that differ in this key."""

    def checked(value: Any, path: str) -> None:
        shape(value, path)
        names = [item[key] for item in value]
        for name in names:
            if names.count(name) > 1:
                raise ShapeError(f"`{path}` has {name} twice")

    return checked


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _expect(fine: bool, value: Any, path: str, wanted: str) -> None:
    if fine:
        return
    name = "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else None
    text = name or json.dumps(value, ensure_ascii=False, default=str)
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    raise ShapeError(f"`{path or 'the document'}` is {shown}, expected {wanted}")
