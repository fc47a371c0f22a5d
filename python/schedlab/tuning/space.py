"""The space that is searched: `--over KEY=LOW..HIGH` or `--over KEY=A,B,C`, where KEY is one of `--set`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from schedlab.errors import InputError

UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
LOG_FROM = 8.0
"""A range whose ends are at least this far apart is searched on the logarithmic scale."""
OF_VARIANT = (
    "knobs",
    "features",
    "tasks",
    "workloads",
    "cgroups",
    "guests",
    "hz",
    "preempt",
    "autogroup",
    "physics",
    "kernel",
)
"""Keys that override the tuned variant alone; `--set` overrides them in every variant."""
FIXED = ("seeds", "duration", "warmup", "noise", "metric", "name", "summary", "variant")
"""Keys that decide what is measured; to tune them would compare different things."""
HINT = "write KEY=LOW..HIGH, such as knobs.base_slice=0.5ms..30ms, or KEY=A,B,C"


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and its values: a range of whole numbers, of decimal numbers or of times, or a choice."""

    key: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    """The lower end of a range: in ns if it is one of times."""
    high: float = 0.0
    kind: str = "choice"
    """choice, whole, decimal, time or percent."""

    @property
    def log(self) -> bool:
        """Whether the range is searched on the logarithmic scale."""
        return self.low > 0 and self.high / self.low >= LOG_FROM

    def text(self, value: Any) -> str:
        """A value of the axis as `--set` takes it."""
        if self.kind == "time":
            return _time(round(value))
        if self.kind == "percent":
            return f"{value:.4g}%"
        return str(value) if self.kind != "decimal" else f"{value:.6g}"

    def override(self, value: Any, variant: str) -> str:
        """KEY=VALUE for the tuned variant."""
        prefix = f"variant.{variant}." if self.key.partition(".")[0] in OF_VARIANT else ""
        return f"{prefix}{self.key}={self.text(value)}"


def parse(text: str) -> Axis:
    """One axis; InputError says what is wrong with the text."""
    key, equals, values = text.partition("=")
    key, first = key.strip(), key.strip().partition(".")[0]
    if not (key and equals and values.strip()):
        raise InputError(f"--over {text}: there is no range", hint=HINT)
    if first in FIXED:
        raise InputError(f"--over {text}: {first} decides what is measured and cannot be tuned", hint=HINT)
    if ".." not in values:
        choices = tuple(part.strip() for part in values.split(","))
        if len(set(choices)) < 2 or not all(choices):
            raise InputError(f"--over {text}: at least two different values are needed", hint=HINT)
        return Axis(key, choices)
    low, high = (part.strip() for part in values.split("..", 1))
    for kind, read in (("time", _ns), ("percent", _percent), ("whole", _whole), ("decimal", _decimal)):
        ends = read(low), read(high)
        if ends[0] is None or ends[1] is None:
            continue
        if not ends[0] < ends[1]:
            raise InputError(f"--over {text}: the range is empty", hint="the lower end comes first")
        return Axis(key, (), ends[0], ends[1], kind)
    raise InputError(f"--over {text}: not a range", hint=HINT + "; both ends need the same kind of unit")


def _number(text: str, pattern: str) -> float | None:
    return float(text) if re.fullmatch(pattern, text, re.ASCII) else None


def _whole(text: str) -> float | None:
    return _number(text, r"-?\d{1,15}")


def _decimal(text: str) -> float | None:
    return _number(text, r"-?\d{1,15}(\.\d{1,15})?")


def _percent(text: str) -> float | None:
    return _decimal(text.removesuffix("%")) if text.endswith("%") else None


def _ns(text: str) -> float | None:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|ms|s)", text, re.ASCII)
    return float(found[1]) * UNITS_NS[found[2]] if found else None


def _time(ns: int) -> str:
    """Three significant digits: finer steps than any knob needs."""
    digits = max(0, len(str(ns)) - 3)
    ns = round(ns, -digits)
    unit = next(unit for unit in ("s", "ms", "us", "ns") if ns >= UNITS_NS[unit] or unit == "ns")
    return f"{ns / UNITS_NS[unit]:.6g}{unit}"
