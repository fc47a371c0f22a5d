"""Overrides of single keys of a scenario as the engine reads them: `KEY=VALUE`, the form of `--set` (docs/scenario.md).

>>> texts({"knobs.base_slice": "3ms", "noise": False, "workload.hackbench.groups": 4})
['knobs.base_slice="3ms"', 'noise=false', 'workload.hackbench.groups=4']
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from schedlab.errors import InputError

Overrides = Mapping[str, Any] | Sequence[str]
"""Keys with values, or texts `KEY=VALUE`, in the order in which they apply.

A value is a string (also a number with a unit: `"3ms"`, `"2%"`), a number, a boolean, a list or a mapping.
"""


def texts(overrides: Overrides | None) -> list[str]:
    """`KEY=VALUE` for each override; InputError for a value that a scenario cannot hold."""
    if overrides is None:
        return []
    if isinstance(overrides, Mapping):
        return [f"{key}={_toml(key, value)}" for key, value in overrides.items()]
    if isinstance(overrides, str):
        raise InputError("overrides are a mapping or a list, not one string", hint=f"[{overrides!r}]")
    return [str(text) for text in overrides]


def engine_overrides(
    seeds: int | Sequence[int] | None, overrides: Overrides | None, flags: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What `Engine.load` takes: seeds (how many, or which), single keys, and the flags, which have precedence."""
    given = seeds if seeds is None or isinstance(seeds, int) else list(seeds)
    everything = {"seeds": given, "set": texts(overrides) or None, **flags}
    return {key: value for key, value in everything.items() if value is not None} or None


def _toml(key: str, value: Any) -> str:
    """A value in TOML. The strings of JSON are TOML as well, as long as no character is written as a surrogate pair."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "item"):  # a scalar of NumPy, as axes of a grid often are
        return _toml(key, value.item())
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(k), ensure_ascii=False)} = {_toml(key, v)}" for k, v in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(key, v) for v in value)}]"
    raise InputError(
        f"{value!r} is not a value of a scenario",
        key=key,
        hint="write a string with its unit, a number, a boolean, a list or a mapping",
    )
