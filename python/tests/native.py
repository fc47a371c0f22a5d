"""Values of the engine's answer types: whether a value has a type, and one value for every shape that a type allows."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

SAMPLES = {int: (12, 0), float: (0.5, 0.0), bool: (True, False), str: ("word",)}
"""Of each scalar the usual value first, then the ones at the border."""


@cache
def fields(of: Any) -> dict[str, tuple[Any, bool]]:
    """The type of every key, and whether it may be absent."""
    total = of.__total__
    found = {}
    for key, hint in get_type_hints(of, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        found[key] = (get_args(hint)[0] if optional else hint, optional or not total)
    return found


def is_union(of: Any) -> bool:
    return get_origin(of) in (Union, types.UnionType)


def misfit(value: Any, of: Any, path: str = "") -> str | None:
    """Where and why a JSON value is not of a type; None if it is."""
    if is_typeddict(of):
        if not isinstance(value, dict):
            return f"{path}: {value!r} is no {of.__name__}"
        known = fields(of)
        if unknown := value.keys() - known.keys():
            return f"{path}: {of.__name__} does not declare {sorted(unknown)}"
        for key, (hint, optional) in known.items():
            if key not in value:
                if not optional:
                    return f"{path}: {of.__name__} lacks {key}"
            elif wrong := misfit(value[key], hint, f"{path}.{key}"):
                return wrong
        return None
    origin, arguments = get_origin(of), get_args(of)
    if origin is Literal:
        return None if value in arguments else f"{path}: {value!r} is none of {arguments}"
    if is_union(of):
        wrong = [misfit(value, one, path) for one in arguments]
        return None if None in wrong else wrong[0]
    if origin is list:
        return _first(misfit(one, arguments[0], f"{path}[{at}]") for at, one in enumerate(_list(value)))
    if origin is tuple:
        if not isinstance(value, list) or len(value) != len(arguments):
            return f"{path}: {value!r} is not {of}"
        return _first(misfit(v, one, f"{path}[{at}]") for at, (v, one) in enumerate(zip(value, arguments, strict=True)))
    if origin is dict:
        return _first(misfit(one, arguments[1], f"{path}.{key}") for key, one in value.items())
    right = isinstance(value, (int, float) if of is float else of) and (of is bool or not isinstance(value, bool))
    return None if right else f"{path}: {value!r} is not {of}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _first(wrong: Iterator[str | None]) -> str | None:
    return next((one for one in wrong if one), None)


def usual(of: Any) -> Any:
    """A value with every key, no None, and lists of two."""
    return next(shapes(of))


def shapes(of: Any) -> Iterator[Any]:
    """The usual value, then for each place in it every other shape: None, absent, empty, single, each literal."""
    origin, arguments = get_origin(of), get_args(of)
    if is_typeddict(of):
        known = fields(of)
        base = {key: usual(hint) for key, (hint, _) in known.items()}
        yield base
        for key, (hint, optional) in known.items():
            if optional:
                yield {other: value for other, value in base.items() if other != key}
            yield from ({**base, key: other} for other in _others(hint))
        yield {key: least(hint) for key, (hint, optional) in known.items() if not optional}
    elif origin is Literal:
        yield from arguments
    elif is_union(of):
        for one in sorted(arguments, key=lambda one: one is types.NoneType):
            yield from [None] if one is types.NoneType else shapes(one)
    elif origin is list:
        one = usual(arguments[0])
        yield [one, one]
        yield []
        yield from ([other] for other in shapes(arguments[0]))
        yield [one] * 6
    elif origin is tuple:
        base = [usual(one) for one in arguments]
        yield base
        for at, one in enumerate(arguments):
            yield from ([*base[:at], other, *base[at + 1 :]] for other in _others(one))
    elif origin is dict:
        one = usual(arguments[1])
        yield {"12": one}
        yield {}
    else:
        yield from SAMPLES[of]


def _others(of: Any) -> Iterator[Any]:
    found = shapes(of)
    next(found)
    return found


def least(of: Any) -> Any:
    """The smallest value: None or empty where that is allowed."""
    if is_typeddict(of):
        return {key: least(hint) for key, (hint, optional) in fields(of).items() if not optional}
    origin, arguments = get_origin(of), get_args(of)
    if is_union(of):
        return None if types.NoneType in arguments else least(arguments[0])
    if origin is tuple:
        return [least(one) for one in arguments]
    return origin() if origin in (list, dict) else arguments[0] if origin is Literal else SAMPLES[of][-1]
