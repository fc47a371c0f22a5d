"""What ran and how the variants differ, as short facts: the table, the page and JSON print the same ones.

A fact is a kind, a name and a text: `workload`, `load`, `hackbench, groups=2, repeat; by default fds=20 ...`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from schedlab.scenario import Scenario, Variant


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a reader must know to repeat the comparison."""

    kind: str
    """machine, run, workload, group or variant."""
    name: str
    text: str

    def to_record(self) -> dict[str, str]:
        return asdict(self)


def facts(scenario: Scenario, arm: str = "sim") -> tuple[Fact, ...]:
    """Machine, length of a run, every workload with every option, every control group, every variant."""
    return (
        Fact("machine", scenario.machine.name, _machine(scenario, arm)),
        Fact("run", "run", _run(scenario)),
        *(Fact("workload", str(w["name"]), _workload(w)) for w in scenario.workloads),
        *_groups(scenario),
        *(Fact("variant", v.name, variant_text(v)) for v in scenario.variants),
    )


def differing(a: Scenario, b: Scenario) -> tuple[str, ...]:
    """Everything but the variants in which two scenarios differ, in words; as results may."""
    left, right = ({(f.kind, f.name): f.text for f in facts(s) if f.kind != "variant"} for s in (a, b))
    lines = []
    for key in dict.fromkeys((*left, *right)):
        texts = [side.get(key, "none") for side in (left, right)]
        if texts[0] != texts[1]:
            kind, name = key
            lines.append(f"{kind} {name}: {texts[0]} | {texts[1]}" if kind != name else f"{kind}: {' | '.join(texts)}")
    return tuple(lines)


def variant_text(variant: Variant) -> str:
    """The kernel and everything that is not its default."""
    changes = changes_text(variant)
    return f"kernel {variant.kernel}, {changes or 'with its own settings'}"


def changes_text(variant: Variant) -> str:
    """What a variant changes on its kernel, in the words of a scenario file; empty if nothing."""
    changes = variant.changes
    parts = [
        *(f"{name} {'on' if on else 'off'}" for name, on in _items(changes, "features")),
        *(f"{name}={value}" for name, value in _items(changes, "knobs")),
        *(f"{key}={changes[key]}" for key in ("hz", "preempt") if changes.get(key) is not None),
        *(f"{task}.{key}={value}" for task, own in _items(changes, "tasks") for key, value in own.items()),
        *(f"{group} {key}={value}" for group, own in _items(changes, "cgroups") for key, value in own.items()),
        *(f"autogroup {'on' if changes['autogroup'] else 'off'}" for _ in range("autogroup" in changes)),
        *(f"{name}={value}" for name, value in _items(changes, "sysctl")),
    ]
    return ", ".join(parts)


def _machine(scenario: Scenario, arm: str) -> str:
    machine = scenario.machine
    described = scenario.description.get("machine", {})
    hz = f", {described['hz']} Hz" if described.get("hz") else ""
    costs = ", costs measured on it" if machine.calibrated else ", costs not measured on it"
    simulated = hz + costs if arm == "sim" else ""
    return f"{machine.summary}; {machine.cpus} CPU{'s' * (machine.cpus != 1)}{simulated}"


def _run(scenario: Scenario) -> str:
    warmup = f", the first {_time(scenario.warmup_ns)} not measured" if scenario.warmup_ns else ""
    return f"{_time(scenario.duration_ns)}{warmup}{'' if scenario.noise else ', nothing drawn at random'}"


def _workload(workload: Mapping[str, Any]) -> str:
    """Options given first, then the defaults."""
    options, given = workload.get("options", {}), workload.get("given", [])
    own = [_pair(name, options[name]) for name in given if name in options]
    own += [_pair(name, value) for name, value in workload.get("attributes", {}).items()]
    usual = [_pair(name, value) for name, value in options.items() if name not in given and value is not False]
    tasks = workload.get("tasks", 0)
    uses = {"program": "steps of its own"}.get(workload["use"], str(workload["use"]))
    text = ", ".join([uses, *own, f"{tasks:,} task{'s' * (tasks != 1)} at the start"])
    return text + (f"; by default {', '.join(usual)}" if usual else "")


def _groups(scenario: Scenario) -> Iterator[Fact]:
    declared: Mapping[str, Mapping[str, Any]] = scenario.description.get("cgroups", {})
    for path, files in declared.items():
        yield Fact("group", path, ", ".join(_pair(k, v) for k, v in files.items()) or "as the kernel makes it")


def _pair(name: str, value: Any) -> str:
    if value is True:
        return name
    return f"{name}={'false' if value is False else value}"


def _items(changes: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    return list((changes.get(key) or {}).items())


def _time(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.6g} {unit}"
    return f"{ns} ns"
