"""What ran and how the variants differ, as short facts: the table, the page and JSON print the same ones.

A fact is a kind, a name and a text: `workload`, `load`, `hackbench, groups=2, repeat; by default fds=20 ...`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from schedlab.scenario import Scenario, Variant


@dataclass(frozen=True, slots=True)
class Fact:
    """One setting that is needed to repeat the comparison."""

    kind: str
    """machine, run, workload, guest, group, variant or overridden."""
    name: str
    text: str

    def to_record(self) -> dict[str, str]:
        return asdict(self)


def facts(scenario: Scenario, arm: str = "sim") -> tuple[Fact, ...]:
    """Machine, length of a run, every workload with every option, guests, control groups, variants, overrides."""
    return (
        Fact("machine", scenario.machine.name, _machine(scenario, arm)),
        Fact("run", "run", _run(scenario)),
        *(Fact("workload", str(w["name"]), _workload(w)) for w in scenario.workloads),
        *_guests(scenario),
        *_groups(scenario),
        *(Fact("variant", v.name, variant_text(v)) for v in scenario.variants),
        *(Fact("overridden", text.partition("=")[0], text.partition("=")[2]) for text in scenario.overrides),
    )


def differing(a: Scenario, b: Scenario) -> tuple[str, ...]:
    """Everything but the variants in which two scenarios differ, in words; as results may."""
    lines = []
    for kind, name, left, right in _side_by_side(facts(a), facts(b)):
        if left != right:
            lines.append(f"{kind} {name}: {left} | {right}" if kind != name else f"{kind}: {left} | {right}")
    others = (name for name in _programs(a) if name in _programs(b))
    return (*lines, *(f"workload {name}: its steps" for name in others if _programs(a)[name] != _programs(b)[name]))


def of_two(a: Sequence[Fact], b: Sequence[Fact]) -> tuple[Fact, ...]:
    """What ran in two results but for the variants; where they differ, both."""
    machine = next((fact for fact in a if fact.kind == "machine" and fact in b), None)
    return tuple(
        machine if machine and kind == "machine" else Fact(kind, name, left if left == right else f"{left} | {right}")
        for kind, name, left, right in _side_by_side(a, b)
    )


def _side_by_side(a: Sequence[Fact], b: Sequence[Fact]) -> Iterator[tuple[str, str, str, str]]:
    """Kind, name, and the text on both sides. There is one machine on each, whatever its name."""
    left, right = (dict(_keyed(fact) for fact in side if fact.kind not in ("variant", "overridden")) for side in (a, b))
    for kind, name in dict.fromkeys((*left, *right)):
        yield kind, name, left.get((kind, name), "none"), right.get((kind, name), "none")


def _keyed(fact: Fact) -> tuple[tuple[str, str], str]:
    if fact.kind == "machine":
        return ("machine", "machine"), f"{fact.name}, {fact.text}"
    return (fact.kind, fact.name), fact.text


def _programs(scenario: Scenario) -> dict[str, Any]:
    """The tables of workloads with steps of their own, which no fact shows, by name."""
    steps = ("program", "task", "object")
    tables = _tables(scenario, "workload")
    return {str(t.get("name")): {key: t.get(key) for key in steps} for t in tables if any(key in t for key in steps)}


def _tables(scenario: Scenario, key: str) -> list[Mapping[str, Any]]:
    """The tables of that name in the scenario file; none if the result does not contain the file."""
    try:
        tables: list[Mapping[str, Any]] = tomllib.loads(scenario.description.get("text", "")).get(key, [])
    except tomllib.TOMLDecodeError:
        return []
    return tables


def variant_text(variant: Variant) -> str:
    """The kernel, its configuration in one line, and everything else that is not its default."""
    boot = variant.boot
    if not boot:
        return f"kernel {variant.kernel}, {changes_text(variant) or 'with its own settings'}"
    others = {key: value for key, value in variant.changes.items() if key not in SHOWN}
    return ", ".join([f"kernel {variant.named}", boot_text(boot), *filter(None, [_changes_text(others)])])


SHOWN = ("features", "hz", "preempt", "autogroup")
"""Changes that the line of the configuration shows."""


def boot_text(boot: Mapping[str, Any]) -> str:
    """Hz, preemption model, groups, and features that differ from the kernel's defaults, in one line."""
    features = [f"{name} {'on' if on else 'off'}" for name, on in _items(boot, "features")]
    return ", ".join([f"{boot['hz']} Hz", f"preempt={boot['preempt']}", f"groups={groups_text(boot)}", *features])


def groups_text(boot: Mapping[str, Any]) -> str:
    """The control groups of the tasks, `sessions` where autogroup makes one of each workload outside, or `none`."""
    groups = list(boot["groups"])
    named = groups[:GROUPS_NAMED] + [f"{len(groups) - GROUPS_NAMED} more"] * (len(groups) > GROUPS_NAMED)
    sessions = ["sessions"] * bool(boot["autogroup"] and boot["ungrouped"])
    return "+".join([*named, *sessions]) or "none"


GROUPS_NAMED = 4


def boot_defaults(a: Variant, b: Variant) -> str:
    """In which settings two kernels differ only because they boot so; empty if in none."""
    if not a.boot or not b.boot:
        return ""
    found = []
    for key, name in (("preempt", "preempt"), ("hz", "hz"), ("autogroup", "autogroup")):
        given = [variant.changes.get(key) is not None for variant in (a, b)]
        if a.boot[key] != b.boot[key] and not all(given):
            found.append(f"{name} {_word(a.boot[key])} in {a.name} and {_word(b.boot[key])} in {b.name}")
    if not found:
        return ""
    return (
        f"The kernels boot with other settings, which are no changes of the scheduler: {'; '.join(found)}. "
        "Set these keys in both variants to compare the schedulers alone."
    )


def _word(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def changes_text(variant: Variant) -> str:
    """What a variant changes on its kernel, in the words of a scenario file; empty if nothing."""
    return _changes_text(variant.changes)


def _changes_text(changes: Mapping[str, Any]) -> str:
    parts = [
        *(f"{name} {'on' if on else 'off'}" for name, on in _items(changes, "features")),
        *(f"{name}={value}" for name, value in _items(changes, "knobs")),
        *(f"{key}={changes[key]}" for key in ("hz", "preempt") if changes.get(key) is not None),
        *(f"{task}.{key}={value}" for task, own in _items(changes, "tasks") for key, value in own.items()),
        *(f"{name}.{key}={value}" for name, own in _items(changes, "workloads") for key, value in own.items()),
        *(f"{group} {key}={value}" for group, own in _items(changes, "cgroups") for key, value in own.items()),
        *(f"{guest}.{key}={_flat(value)}" for guest, own in _items(changes, "guests") for key, value in own.items()),
        *(" ".join(_pair(key, value) for key, value in event.items()) for event in changes.get("hotplug") or ()),
        *(f"autogroup {'on' if changes['autogroup'] else 'off'}" for _ in range("autogroup" in changes)),
        *(f"{name}={value}" for name, value in _items(changes, "sysctl")),
    ]
    return ", ".join(parts)


def _flat(value: Any) -> str:
    """A value of a guest; features and knobs are tables."""
    if isinstance(value, Mapping):
        return " ".join(_pair(name, own) for name, own in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def _guests(scenario: Scenario) -> Iterator[Fact]:
    for table in _tables(scenario, "guest"):
        own = [_pair(key, value if value is True else _flat(value)) for key, value in table.items() if key != "name"]
        own += [] if "kernel" in table else ["kernel of its host"]
        yield Fact("guest", str(table.get("name")), ", ".join(own))


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
