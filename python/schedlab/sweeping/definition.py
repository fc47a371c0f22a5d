"""Reads a sweep file: the scenario, the axes, the design; the engine checks what the axes set."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from schedlab import spelling
from schedlab.errors import InputError, reason
from schedlab.sweeping.axes import (
    NANOSECONDS,
    Axis,
    Level,
    Point,
    Span,
    Value,
    full,
    latin_hypercube,
    level_of,
    number_of,
    quantity,
)

MOST_POINTS = 100_000
KEYS = ("name", "summary", "scenario", "design", "points", "seed", "seeds", "metrics", "set", "axis", "short")
AXIS_KEYS = ("name", "key", "values", "from", "to", "steps", "scale", "percent-of-cpus", "tasks", "level")
LEVEL_KEYS = ("label", "set")
SHORT_KEYS = ("seeds", "set", "levels", "points")
DESIGNS = ("full", "latin-hypercube")
SCALES = ("linear", "log")
CpusOf = Callable[[Path, Mapping[str, Value]], int]
"""How many CPUs a scenario file simulates if these keys are replaced."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep file after validation."""

    name: str
    summary: str
    file: str
    text: str
    scenario: Path
    sets: Mapping[str, Value]
    """Keys of the scenario that are the same at every point."""
    seeds: int | tuple[int, ...] | None
    """None: those of the scenario."""
    metrics: tuple[str, ...]
    """The metrics to show; empty: those that the scenario declares."""
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    design: str
    short: bool = field(default=False)


def read(file: Path, cpus: CpusOf, *, short: bool = False, also: Mapping[str, Value] | None = None) -> Sweep:
    """The sweep of a file; with `short`, what its table `[short]` makes of it.

    Levels in percent of the CPUs need `cpus`. `also` has precedence over the keys that are the same at every point.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        why = reason(e) if isinstance(e, OSError) else "it is not UTF-8"
        raise InputError(f"cannot read the sweep: {why}", file=str(file)) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise InputError(f"not valid TOML: {e}", file=str(file)) from None
    return _Reader(file, text, cpus).sweep(document, short, also or {})


class _Reader:
    def __init__(self, file: Path, text: str, cpus: CpusOf) -> None:
        self._file, self._text, self._cpus = file, text, cpus

    def sweep(self, d: Mapping[str, Any], short: bool, also: Mapping[str, Value]) -> Sweep:
        self._known(d, KEYS, "")
        shortened = self._table(d.get("short", {}), "short")
        self._known(shortened, SHORT_KEYS, "short.")
        if not short:
            shortened = {}
        scenario = self._file.parent / self._string(d, "scenario")
        sets = {**self._sets(d.get("set", {}), "set"), **self._sets(shortened.get("set", {}), "set"), **also}
        tables = d.get("axis", [])
        if not isinstance(tables, list) or not tables:
            self._fail("there is no axis", "axis", "at least one [[axis]] table")
        axes = tuple(self._axis(self._table(table, "axis"), scenario, sets) for table in tables)
        self._distinct(axes)
        both = sorted({*sets} & set().union(*map(_keys, axes)))
        if both:
            self._fail(f"{both[0]} is the same at every point, and an axis varies it", both[0], "one of the two")
        if "levels" in shortened:
            axes = tuple(_fewer(axis, self._count(shortened, "levels", 1)) for axis in axes)
        design = self._one_of(d, "design", DESIGNS, "full")
        return Sweep(
            name=self._string(d, "name", self._file.stem),
            summary=self._string(d, "summary", ""),
            file=str(self._file),
            text=self._text,
            scenario=scenario,
            sets=sets,
            seeds=self._seeds(shortened if "seeds" in shortened else d),
            metrics=tuple(self._strings(d.get("metrics", []), "metrics")),
            axes=axes,
            points=tuple(self._points(d, shortened, design, axes)),
            design=design,
            short=short,
        )

    def _points(
        self, d: Mapping[str, Any], shortened: Mapping[str, Any], design: str, axes: Sequence[Axis]
    ) -> list[Point]:
        if design == "latin-hypercube":
            points = self._count(shortened if "points" in shortened else d, "points", 2)
            return latin_hypercube(axes, points, self._count(d, "seed", 0, 1))
        for key in ("points", "seed"):
            if key in d:
                self._fail(f"`{key}` belongs to a Latin hypercube", key, 'design = "latin-hypercube"')
        total = 1
        for axis in axes:
            if not axis.levels:
                self._fail(f"the axis {axis.name} is a range, of which a full grid needs a number of steps", "steps")
            total *= len(axis.levels)
        if total > MOST_POINTS:
            self._fail(f"the axes make {total:,} points", "axis", f"at most {MOST_POINTS:,}")
        return full(axes)

    def _axis(self, d: Mapping[str, Any], scenario: Path, sets: Mapping[str, Value]) -> Axis:
        self._known(d, AXIS_KEYS, "axis.")
        forms = [key for key in ("values", "from", "percent-of-cpus", "level") if key in d]
        if len(forms) != 1:
            given = " and ".join(forms) or "nothing"
            self._fail(
                f"an axis with {given}", forms[-1] if forms else "axis", "one of values, from, percent-of-cpus, level"
            )
        allowed = {"from": ("to", "steps", "scale", "key"), "percent-of-cpus": ("tasks", "key"), "values": ("key",)}
        for key in d:
            if key not in (*allowed.get(forms[0], ()), forms[0], "name"):
                self._fail(f"`{key}` does not go with `{forms[0]}`", key)
        if forms[0] == "level":
            if not isinstance(d["level"], list) or not d["level"]:
                self._fail("there is no level", "level", "at least one [[axis.level]] table")
            levels = tuple(self._level(self._table(one, "level")) for one in d["level"])
            return Axis(self._string(d, "name"), levels)
        key = self._string(d, "key")
        name = self._string(d, "name", key)
        if forms[0] == "from":
            return self._range(d, key, name)
        if forms[0] == "values":
            values = d["values"]
            if not isinstance(values, list) or not values:
                self._fail("not a list of values", "values", "at least one value")
            numbers = [number_of(self._value(v, "values")) for v in values]
            unit = "ns" if any(isinstance(v, str) for v in values) and None not in numbers else ""
            return Axis(name, tuple(level_of(key, v) for v in values), unit=unit)
        return Axis(name, tuple(self._percents(d, key, scenario, sets)), unit="%")

    def _range(self, d: Mapping[str, Any], key: str, name: str) -> Axis:
        ends = [quantity(self._value(d.get(end), end)) for end in ("from", "to")]
        low, high = ends
        scale = self._one_of(d, "scale", SCALES, "linear")
        if low is None or high is None or bool(low[1]) != bool(high[1]):
            self._fail(f"{d['from']!r} and {d.get('to')!r} are not a range", "from", "two numbers, or two times")
        unit = high[1]
        first, last = (number * NANOSECONDS.get(of, 1) / NANOSECONDS.get(unit, 1) for number, of in (low, high))
        if not (math.isfinite(first) and math.isfinite(last)):
            self._fail(f"{d['from']!r} to {d['to']!r} has no end", "from", "a range of finite numbers")
        if not first < last or (scale == "log" and first <= 0):
            self._fail(f"{d['from']!r} to {d['to']!r} is empty or not positive", "from", "a rising range")
        whole = isinstance(d["from"], int) and isinstance(d["to"], int)
        span = Span(key, first, last, unit, scale == "log", whole)
        steps = self._count(d, "steps", 2, 0) if "steps" in d else 0
        found = [span.level(i / (steps - 1)) for i in range(steps)]
        levels = tuple({level.label: level for level in found}.values())
        return Axis(name, levels, span, "ns" if unit else "")

    def _percents(self, d: Mapping[str, Any], key: str, scenario: Path, sets: Mapping[str, Value]) -> list[Level]:
        """Levels in percent of the CPUs: a number of tasks per CPU, of which the key counts groups of `tasks`."""
        percents, tasks = d["percent-of-cpus"], self._count(d, "tasks", 1, 1)
        cpus = self._cpus(scenario, sets)
        if not isinstance(percents, list) or not percents:
            self._fail("not a list of percentages", "percent-of-cpus")
        levels = []
        for percent in percents:
            if not isinstance(percent, int) or isinstance(percent, bool) or percent < 1:
                self._fail(f"{percent!r} is not a load", "percent-of-cpus", "a whole number of percent")
            count, rest = divmod(percent * cpus, 100 * tasks)
            if rest or not count:
                near = sorted({100 * tasks * max(1, n) / cpus for n in (count, count + 1)})
                self._fail(
                    f"{percent}% of {cpus} CPUs is not a whole number of {key} of {tasks} tasks",
                    "percent-of-cpus",
                    f"for example {' or '.join(f'{n:.4g}' for n in near)}",
                )
            levels.append(Level(f"{percent}%", {key: count}, float(percent)))
        return levels

    def _level(self, d: Mapping[str, Any]) -> Level:
        self._known(d, LEVEL_KEYS, "axis.level.")
        label, sets = self._string(d, "label"), self._sets(d.get("set", {}), "set")
        return Level(label, sets, number_of(label.rstrip("%x")))

    def _distinct(self, axes: Sequence[Axis]) -> None:
        for what, names in (
            ("axes", [axis.name for axis in axes]),
            *(("levels", [level.label for level in axis.levels]) for axis in axes),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                self._fail(f"two {what} are called {twice}", "axis", "distinct names")
        keys = [_keys(axis) for axis in axes]
        for i, own in enumerate(keys):
            both = own.intersection(*[set().union(*keys[:i])]) if i else set()
            if both:
                self._fail(f"two axes set {min(both)}", min(both), "one axis for each key")

    def _seeds(self, d: Mapping[str, Any]) -> int | tuple[int, ...] | None:
        seeds = d.get("seeds")
        listed = isinstance(seeds, list) and bool(seeds) and all(isinstance(seed, int) for seed in seeds)
        if not (seeds is None or listed or (isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0)):
            self._fail(f"{seeds!r} is not valid here", "seeds", "a count or a list of numbers")
        return tuple(seeds) if isinstance(seeds, list) else seeds

    def _sets(self, value: Any, key: str) -> dict[str, Value]:
        """Keys of the scenario with their values; TOML's dotted keys are tables, and are flattened again."""
        found: dict[str, Value] = {}
        for name, own in self._table(value, key).items():
            word = f'"{name}"' if "." in name and not isinstance(own, dict) and key != "set" else name
            if isinstance(own, dict):
                found |= {f"{word}.{rest}": inner for rest, inner in self._sets(own, name).items()}
            else:
                found[word] = self._value(own, name)
        return found

    def _value(self, value: Any, key: str) -> Value:
        if not isinstance(value, str | int | float | bool):
            self._fail(f"{value!r} is not a value", key, "a text, a number, true or false")
        return value

    def _count(self, d: Mapping[str, Any], key: str, least: int, usual: int | None = None) -> int:
        value = d.get(key, usual)
        most = MOST_POINTS if key in ("points", "steps") else math.inf
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            shown = "nothing" if value is None else repr(value)
            until = "" if most == math.inf else f" to {most:,}"
            self._fail(f"{shown} is not valid for `{key}`", key, f"a whole number from {least}{until}")
        return value

    def _string(self, d: Mapping[str, Any], key: str, usual: str | None = None) -> str:
        value = d.get(key, usual)
        if not isinstance(value, str):
            self._fail(f"`{key}` is missing" if value is None else f"{value!r} is not a text", key, f"`{key}`, a text")
        return value

    def _strings(self, value: Any, key: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self._fail(f"{value!r} is not a list of texts", key)
        return value

    def _one_of(self, d: Mapping[str, Any], key: str, known: Sequence[str], usual: str) -> str:
        value = self._string(d, key, usual)
        if value not in known:
            self._fail(f"{value!r} is not valid for `{key}`", key, " or ".join(known))
        return value

    def _table(self, value: Any, key: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self._fail(f"`{key}` is not a table", key)
        return value

    def _known(self, d: Mapping[str, Any], known: Collection[str], where: str) -> None:
        for key in d:
            if key not in known:
                hint = spelling.hint(key, known, "the keys are")
                if not where and d.keys() & {"machine", "workload", "variant"}:
                    hint = f'this is a scenario; a sweep is a file of its own that names it: scenario = "{self._file}"'
                raise InputError(f"unknown key `{where}{key}`", hint=hint, file=str(self._file), line=self._line(key))

    def _fail(self, message: str, key: str, expected: str | None = None) -> NoReturn:
        text = message if expected is None else f"{message}; expected {expected}"
        raise InputError(text, file=str(self._file), line=self._line(key), key=key)

    def _line(self, key: str) -> int | None:
        """The first line that names the key: tomllib keeps no positions."""
        word = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
        lines = self._text.splitlines()
        return next((n for n, line in enumerate(lines, 1) if word.search(line.partition("#")[0])), None)


def _keys(axis: Axis) -> set[str]:
    """The keys that an axis sets."""
    return {key for level in axis.levels for key in level.sets} | ({axis.span.key} if axis.span else set())


def _fewer(axis: Axis, count: int) -> Axis:
    """The axis with at most this many of its levels, its ends among them."""
    levels, last = axis.levels, len(axis.levels) - 1
    if count > last:
        return axis
    kept = sorted({round(i * last / (count - 1)) for i in range(count)} if count > 1 else {0})
    return Axis(axis.name, tuple(levels[i] for i in kept), axis.span, axis.unit)
