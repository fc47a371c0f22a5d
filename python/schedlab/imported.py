"""What pasted settings of a kernel are as keys of a variant: features, tunables, sysctls and a kernel's configuration.

Read are `cat /sys/kernel/debug/sched/features`, `grep . /sys/kernel/debug/sched/*`, `sysctl -a`, the file `preempt` of
that directory, and the `.config` of a kernel, alone or behind each other in one file. Lines that do not concern the
scheduler are passed over; of those that do, what has no key is listed with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from schedlab.frozen import Frozen

FEATURE = re.compile(r"(NO_)?[A-Z][A-Z0-9_]+")
CONFIG = re.compile(r"CONFIG_(\w+)=(\S+)|# CONFIG_(\w+) is not set")
RELEASE = re.compile(r"# Linux/\S+ (\d\S*) Kernel Configuration")
PREEMPT = re.compile(r"(?=.*\()(?:\(?(?:none|voluntary|full|lazy)\)? ?)+")
VALUE = re.compile(r"(?:\S*/)?(?:kernel[./])?(?:sched[_/])?([\w/]+?)\s*(?:[ =:]\s*)(\S+)")
MODELS = {"PREEMPT_NONE": "none", "PREEMPT_VOLUNTARY": "voluntary", "PREEMPT": "full", "PREEMPT_LAZY": "lazy"}
RATES = ("100", "250", "300", "1000")
WITHOUT_KEY = {
    "SCHED_CORE": "core scheduling is not modelled",
    "UCLAMP_TASK": "utilisation clamps are not modelled",
    "SCHED_CLASS_EXT": "sched_ext schedulers run under `schedlab scx stress` only",
    "RT_GROUP_SCHED": "groups of real-time tasks are not modelled",
}
"""Options that change what the scheduler does and have no key."""


class Imported(Frozen):
    """Keys of a variant, and what could not be taken over: a setting and why."""

    kernel: str
    features: Mapping[str, bool]
    knobs: Mapping[str, str | int]
    others: Mapping[str, Any]
    left_out: Sequence[tuple[str, str]]
    read: int
    """How many settings of the scheduler were found."""


def release(text: str) -> str | None:
    """The release that the first line of a kernel's configuration names."""
    found = RELEASE.search(text)
    return found[1] if found else None


def imported(
    text: str,
    kernel: str,
    features: Sequence[Mapping[str, Any]],
    knobs: Sequence[Mapping[str, Any]],
    changed: Collection[str] = (),
) -> Imported:
    """The settings in `text` that differ from the defaults of a row; the listings are those of that row.

    Settings in `changed` are read even if they are the defaults.
    """
    reader = _Reader({f["id"]: f for f in features}, {k["id"]: k for k in knobs}, changed)
    for line in text.splitlines():
        reader.line(line.strip())
    reader.end()
    return Imported(
        kernel=kernel,
        features=reader.switched,
        knobs=reader.values,
        others=reader.others,
        left_out=reader.left_out,
        read=reader.read,
    )


class _Reader:
    def __init__(
        self,
        features: Mapping[str, Mapping[str, Any]],
        knobs: Mapping[str, Mapping[str, Any]],
        changed: Collection[str],
    ) -> None:
        self._features, self._knobs, self._changed = features, knobs, changed
        self.switched: dict[str, bool] = {}
        self.values: dict[str, str | int] = {}
        self.others: dict[str, Any] = {}
        self.left_out: list[tuple[str, str]] = []
        self.read = 0
        self._model: str | None = None

    def line(self, line: str) -> None:
        """One line of any of the formats."""
        if found := CONFIG.fullmatch(line):
            self._config(found[1] or found[3], found[2] or "n")
        elif PREEMPT.fullmatch(line):
            self.read += 1
            self.others["preempt"] = line.partition("(")[2].partition(")")[0]
        elif line and not line.startswith("#"):
            words = line.rpartition("features:")[2].split()
            if words and all(FEATURE.fullmatch(word) for word in words) and any(self._named(w) for w in words):
                for word in words:
                    self._feature(word)
            elif found := VALUE.fullmatch(line):
                self._value(line, found[1], found[2])

    def end(self) -> None:
        """What several lines decide together."""
        if self._model and "preempt" not in self.others:
            self.others["preempt"] = self._model

    def _named(self, word: str) -> bool:
        return word.removeprefix("NO_") in self._features or word in self._features

    def _feature(self, word: str) -> None:
        name, on = (word, True) if word in self._features else (word.removeprefix("NO_"), not word.startswith("NO_"))
        self.read += 1
        known = self._features.get(name)
        if known is None:
            self.left_out.append((word, "the row has no such feature"))
        elif next(iter(known["defaults"].values()), None) == on and name not in self._changed:
            pass
        elif why := _refused(known):
            self.left_out.append((word, why))
        else:
            self.switched[name] = on

    def _value(self, line: str, name: str, value: str) -> None:
        name = name.removeprefix("sched_")
        knob = next((k for k in (name, f"{name}_ns", f"sched_{name}") if k in self._knobs), None)
        if name == "autogroup_enabled":
            self.read += 1
            self.others["autogroup"] = value == "1"
        elif knob is None:
            if "sched" in line:
                self.left_out.append((line, "a variant has no key for it"))
        elif not value.lstrip("-").isdigit():
            self.left_out.append((line, "not a whole number"))
        else:
            self._knob(knob, int(value))

    def _knob(self, name: str, value: int) -> None:
        self.read += 1
        known = self._knobs[name]
        given: str | int = f"{value}ns" if name.endswith("_ns") else value
        if _ns(known["default"]) == _ns(given) and name not in self._changed:
            return
        if why := _refused(known):
            self.left_out.append((f"{name} = {value}", why))
        else:
            self.values[name] = given

    def _config(self, name: str, value: str) -> None:
        on = value in ("y", "m")
        if name == "HZ":
            self.read += 1
            if value in RATES:
                self.others["hz"] = int(value)
            else:
                self.left_out.append((f"CONFIG_HZ={value}", f"hz is one of {', '.join(RATES)}"))
        elif name == "SCHED_AUTOGROUP":
            self.read += 1
            self.others.setdefault("autogroup", on)
        elif name == "PREEMPT_RT" and on:
            self.read += 1
            self.others["preempt"] = "rt"
        elif name in MODELS and on:
            self.read += 1
            self._model = MODELS[name]
        elif name in WITHOUT_KEY and on:
            self.left_out.append((f"CONFIG_{name}={value}", WITHOUT_KEY[name]))


def _refused(known: Mapping[str, Any]) -> str | None:
    reasons = [one["why"] for one in known["refused"]]
    return reasons[0] if reasons else None if known["modelled"] else "it is not modelled"


UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def _ns(value: Any) -> Any:
    """A time in ns, any other value as it is."""
    found = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", str(value))
    return round(float(found[1]) * UNITS[found[2]]) if found else value


def toml(found: Imported, file: str) -> Iterator[str]:
    """The keys as lines of a `[[variant]]`, and as comments what was left out."""
    yield f"# the settings in {file} that differ from the defaults of kernel {found.kernel}"
    yield f'kernel = "{found.kernel}"'
    if found.features:
        yield f"features = {{ {', '.join(f'{name} = {str(on).lower()}' for name, on in found.features.items())} }}"
    if found.knobs:
        shown = (f'{name} = "{v}"' if isinstance(v, str) else f"{name} = {v}" for name, v in found.knobs.items())
        yield f"knobs = {{ {', '.join(shown)} }}"
    for key, value in found.others.items():
        yield f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {str(value).lower()}"
    if found.left_out:
        yield "# not taken over:"
        yield from (f"#   {what}: {why}" for what, why in found.left_out)
