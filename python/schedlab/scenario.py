"""A validated scenario as plain typed data; the rules of the file itself are the engine's (crate schedlab-scenario)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from schedlab import fragment
from schedlab import shape as s
from schedlab.frozen import Frozen, hidden, made

ARMS_DEFAULTS: Mapping[str, Any] = {
    "driver": None,
    "host": {"order": "abba", "noise_limit_pct": 5.0, "time_limit_s": 60.0},
    "vm": {
        "image": None,
        "repeatable": False,
        "memory_mb": 1024,
        "cgroup": "v1",
        "append": "",
        "time_limit_s": 300.0,
    },
}
"""For results that were stored before there were arms; the engine fills in everything."""

HOST = s.table({"noise_limit_pct": s.number, "time_limit_s": s.number, "order": s.string})
CHANGES = s.table(
    {},
    {
        **dict.fromkeys(("features", "knobs", "sysctl"), s.maybe(s.mapping(s.anything))),
        "hotplug": s.items(s.mapping(s.string)),
        **dict.fromkeys(("tasks", "workloads", "cgroups"), s.maybe(s.mapping(s.mapping(s.anything)))),
    },
)
WORKLOAD = s.table(
    {"name": s.string, "use": s.string},
    {
        "tasks": s.whole,
        "options": s.mapping(s.anything),
        "given": s.items(s.string),
        "attributes": s.mapping(s.anything),
    },
)
DESCRIPTION = s.table(
    {
        "name": s.string,
        "file": s.string,
        "machine": s.table(
            {"name": s.string, "summary": s.string, "cpus": s.whole, "calibrated": s.flag},
            {"sources": s.items(s.string), "topology": s.mapping(s.items(s.string)), "hz": s.maybe(s.number)},
        ),
        "duration_ns": s.whole,
        "warmup_ns": s.whole,
        "noise": s.flag,
        "seeds": s.items(s.whole),
        "arm": s.one_of("sim", "host", "vm"),
        "variants": s.distinct(
            s.items(
                s.table(
                    {**dict.fromkeys(("name", "kernel", "summary"), s.string), "changes": CHANGES},
                    {"settings": s.items(s.items(s.string, 2)), "release": s.string, "in_debian": s.flag},
                ),
                1,
            ),
            "name",
        ),
        "metrics": s.distinct(
            s.items(
                s.table(
                    {
                        **dict.fromkeys(("name", "of", "unit", "help"), s.string),
                        "stat": s.maybe(s.string),
                        "better": s.one_of("lower", "higher", "neither"),
                        "margin_pct": s.number,
                        "declared": s.flag,
                    }
                )
            ),
            "name",
        ),
        "workloads": s.items(WORKLOAD),
    },
    {
        "cgroups": s.mapping(s.mapping(s.anything)),
        "guests": s.items(s.string),
        "overrides": s.items(s.string),
        "inactive": s.items(s.string),
        "arms": s.table({}, {"host": s.maybe(HOST), "driver": s.maybe(s.string), "vm": s.maybe(s.mapping(s.anything))}),
    },
)
"""A scenario as the engine describes it and results store it, as far as schedlab reads it."""

Better = Literal["lower", "higher", "neither"]


class Metric(Frozen):
    """One number that every run yields, and how to judge it."""

    name: str
    of: str
    stat: str | None
    unit: str
    better: Better
    margin_pct: float
    """The smallest difference that matters, in percent of the baseline."""
    help: str
    declared: bool
    """The scenario names it; otherwise it is one of its workload's defaults."""


class Variant(Frozen):
    """One of the alternatives that are compared: a kernel row and what is changed on it."""

    name: str
    kernel: str
    summary: str
    changes: Mapping[str, Any]
    settings: tuple[tuple[str, str], ...] = ()
    """The settings on a real kernel: files and the values to write to them."""
    release: str = ""
    """The release that the row models; empty in results of earlier versions."""
    in_debian: bool | None = None
    """Whether Debian has an image of the row, which `--arm vm` can boot; None in results of earlier versions."""
    not_simulated: Mapping[str, Any] | None = None
    """Why the simulator cannot run it: the first setting that only a real kernel can take, with its place."""
    boot: Mapping[str, Any] = made(default_factory=dict)
    """Configuration of the kernel and groups of its tasks; empty in results of earlier versions."""

    @property
    def named(self) -> str:
        """The row, and the distribution whose configuration it has."""
        config = self.boot.get("config")
        return f"{self.kernel} ({config})" if config else self.kernel


class Machine(Frozen):
    """The machine that is simulated, and where its numbers come from."""

    name: str
    summary: str
    cpus: int
    calibrated: bool
    sources: tuple[str, ...]
    topology: Mapping[str, Sequence[str]] = made(default_factory=dict)
    """CPU lists of the cores, last-level caches, sockets and nodes."""


class Scenario(Frozen):
    """What a scenario file says after validation. The first variant is the baseline."""

    name: str
    file: str
    machine: Machine
    duration_ns: int
    warmup_ns: int
    noise: bool
    seeds: tuple[int, ...]
    arm: str
    variants: tuple[Variant, ...]
    metrics: tuple[Metric, ...]
    workloads: tuple[Mapping[str, Any], ...]
    arms: Mapping[str, Any]
    """How real kernels run it."""
    guests: tuple[str, ...]
    """The virtual machines that the machine hosts."""
    overrides: tuple[str, ...]
    """What replaces keys of the file, as `KEY=VALUE` (`--set`)."""
    inactive: tuple[str, ...]
    """Settings without an effect on the simulated machine, each with the reason."""
    description: Mapping[str, Any] = hidden()
    """The whole description as the engine gave it."""
    handle: Any = hidden(default=None)
    """The engine's own object; None for a scenario that was read back from a stored result."""

    @classmethod
    def from_description(cls, d: Mapping[str, Any], handle: Any = None) -> Self:
        machine = d["machine"]
        return cls(
            name=d["name"],
            file=d["file"],
            machine=Machine(**{**_only(Machine, machine), "sources": tuple(machine.get("sources", ()))}),
            duration_ns=d["duration_ns"],
            warmup_ns=d["warmup_ns"],
            noise=d["noise"],
            seeds=tuple(d["seeds"]),
            arm=d["arm"],
            variants=tuple(_variant(v) for v in d["variants"]),
            metrics=tuple(Metric(**_only(Metric, m)) for m in d["metrics"]),
            workloads=tuple(d["workloads"]),
            guests=tuple(d.get("guests", ())),
            overrides=tuple(d.get("overrides", ())),
            inactive=tuple(d.get("inactive", ())),
            arms={name: d.get("arms", {}).get(name) or usual for name, usual in ARMS_DEFAULTS.items()},
            description=d,
            handle=handle,
        )

    def __repr__(self) -> str:
        """One line: machine, duration, variants."""
        variants = ", ".join(v.name for v in self.variants)
        return f"<Scenario {self.name}: {self.machine.name}, {self.duration_ns / 1e9:g} s, {variants}>"

    def _repr_html_(self) -> str:
        rows = [
            ("machine", self.machine.name, f"{self.machine.summary}; {self.machine.cpus} CPUs"),
            ("run", "run", f"{self.duration_ns / 1e9:g} s, {len(self.seeds)} seeds"),
            *(("workload", w["name"], f"{w['use']}, {w.get('tasks', 0)} tasks at the start") for w in self.workloads),
            *(("variant", v.name, f"kernel {v.kernel}") for v in self.variants),
            *(("overridden", *text.split("=", 1)) for text in self.overrides),
        ]
        return fragment.table(repr(self), ("kind", "name", "what"), rows)

    def variant(self, name: str) -> Variant | None:
        """The variant of that name."""
        return next((v for v in self.variants if v.name == name), None)


def _variant(d: Mapping[str, Any]) -> Variant:
    settings = tuple((str(file), str(value)) for file, value in d.get("settings", ()))
    return Variant(**{**_only(Variant, d), "settings": settings})


def _only(kind: type[Frozen], d: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `kind`: the engine's document may have more than this version reads."""
    return {k: v for k, v in d.items() if k in kind._names}
