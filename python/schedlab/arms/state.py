"""Records the machine and its settings as text that can be compared between variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from schedlab import plain

FILES = {
    "release": "proc/sys/kernel/osrelease",
    "build": "proc/sys/kernel/version",
    "cmdline": "proc/cmdline",
    "load": "proc/loadavg",
    "online": "sys/devices/system/cpu/online",
    "smt": "sys/devices/system/cpu/smt/control",
    "governor": "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "turbo_off": "sys/devices/system/cpu/intel_pstate/no_turbo",
    "idle_driver": "sys/devices/system/cpu/cpuidle/current_driver",
    "clocksource": "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "hugepages": "sys/kernel/mm/transparent_hugepage/enabled",
}
GROUPS = {
    "vulnerabilities": "sys/devices/system/cpu/vulnerabilities/*",
    "sysctl": "proc/sys/kernel/sched_*",
    "debugfs": "sys/kernel/debug/sched/*",
}
CHANGING = ("load",)
"""Recorded, but not compared because the values always change."""
SKIPPED = ("debug", "verbose")
SHOWN_DIGITS = 16
"""Digits of a sha256 in remarks; results contain the whole digest."""


def read(root: Path = Path("/")) -> dict[str, str]:
    """The state, without files that cannot be read."""
    found = {name: text for name, path in FILES.items() if (text := _line(root / path)) is not None}
    for group, pattern in GROUPS.items():
        for file in sorted(root.glob(pattern)):
            if file.name not in SKIPPED and (text := _line(file)) is not None:
                found[f"{group}.{file.name}"] = text
    found |= _cpu(root)
    return found


def _cpu(root: Path) -> dict[str, str]:
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {}
    wanted = {"model name": "cpu", "microcode": "microcode"}
    pairs = (line.partition(":")[::2] for line in lines)
    return {wanted[key.strip()]: value.strip() for key, value in pairs if key.strip() in wanted}


def _line(file: Path) -> str | None:
    try:
        if not file.is_file():
            return None
        return plain.escaped(file.read_text(errors="replace").partition("\n")[0].strip())
    except OSError:
        return None


def differences(states: Mapping[str, Iterable[Mapping[str, str]]]) -> list[tuple[str, dict[str, str]]]:
    """The items that differ between the runs of the variants: the name, and the values by variant."""
    runs = {variant: list(of) for variant, of in states.items()}
    keys = dict.fromkeys(key for of in runs.values() for state in of for key in state)
    found = []
    for key in keys:
        if key in CHANGING:
            continue
        values = {variant: {state.get(key, "") for state in of} for variant, of in runs.items() if of}
        if len(set().union(*values.values())) > 1:
            found.append((key, {variant: " or ".join(sorted(v)) for variant, v in values.items()}))
    return found


def difference_lines(found: list[tuple[str, dict[str, str]]]) -> list[str]:
    """The differences as text: first items that all variants have, then those that only some have."""
    shared = [(key, values) for key, values in found if all(values.values())]
    lines = [words(key, values) for key, values in shared]
    alone: dict[str, list[str]] = {}
    for key, values in found:
        if not all(values.values()):
            for variant, value in values.items():
                if value:
                    alone.setdefault(variant, []).append(f"{key} {value}")
    return lines + [f"only {variant} has {', '.join(has)}" for variant, has in alone.items()]


def words(key: str, values: Mapping[str, str]) -> str:
    """One difference as a line; of lists of words, only the words that differ."""
    if key.endswith("sha256"):
        values = {variant: value[:SHOWN_DIGITS] for variant, value in values.items()}
    sets = {variant: value.split() for variant, value in values.items()}
    common = set.intersection(*(set(value) for value in sets.values()))
    if any(len(value) > 3 for value in sets.values()):
        shown = {variant: " ".join(w for w in value if w not in common) or "-" for variant, value in sets.items()}
    else:
        shown = {variant: value or "-" for variant, value in values.items()}
    return f"{key}: " + ", ".join(f"{variant} {value}" for variant, value in shown.items())
