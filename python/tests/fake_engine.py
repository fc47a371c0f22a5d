"""A stand-in for the compiled engine: the same calls, exceptions and documents, numbers drawn from the seed.

It lets the Python half be tested for what it does itself: judging, keeping, showing, failing.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
from pathlib import Path
from typing import Any

ENGINE = "fake 1"

METRICS = [
    ("probe.latency.p50", "probe.latency", "p50", "us", "lower", 5.0, "median wakeup latency of the probe"),
    ("probe.latency.p99", "probe.latency", "p99", "us", "lower", 5.0, "99th percentile of the same"),
    ("load.rate", "load.rate", None, "1/s", "higher", 2.0, "rounds of the load per second"),
    ("sched.switches", "sched.switches", None, "", "neither", 2.0, "context switches"),
]


class EngineError(Exception):
    def __init__(self, message: str, exit_code: int = 2, **where: Any) -> None:
        super().__init__(message)
        self.message, self.exit_code = message, exit_code
        for name in ("hint", "file", "line", "column", "key"):
            setattr(self, name, where.get(name))


class ScenarioError(EngineError):
    pass


class TraceFileError(EngineError):
    pass


class RunError(EngineError):
    pass


class Cancelled(EngineError):
    pass


class PanicException(BaseException):
    """What PyO3 makes of a panic that nothing in the engine caught."""


class Cancel:
    def __init__(self) -> None:
        self.event = threading.Event()

        self.now_ns = 0

    def cancel(self) -> None:
        self.event.set()

    def of_run(self) -> Cancel:
        """Half a second of the simulated second has passed as soon as the run begins."""
        one = Cancel()
        one.event, one.now_ns = self.event, 500_000_000
        return one


class Scenario:
    """Understands JSON only: what a description should say beyond the defaults."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.description = description

    def describe(self) -> str:
        return json.dumps(self.description)


def describe(name: str = "toy", file: str = "toy.toml", **changes: Any) -> dict[str, Any]:
    keys = ("name", "of", "stat", "unit", "better", "margin_pct", "help")
    return {
        "name": name,
        "file": file,
        "machine": {"name": "laptop-8", "summary": "8 CPUs", "cpus": 8, "calibrated": True, "sources": ["measured"]},
        "duration_ns": 10**9,
        "warmup_ns": 0,
        "noise": True,
        "seeds": list(range(1, 11)),
        "arm": "sim",
        "variants": [
            {"name": "cfs", "kernel": "6.1", "summary": "CFS", "changes": {}},
            {"name": "eevdf", "kernel": "6.12.0", "summary": "EEVDF", "changes": {}},
        ],
        "metrics": [{**dict(zip(keys, m, strict=True)), "declared": False} for m in METRICS],
        "workloads": [{"name": "probe", "use": "cyclictest", "tasks": 1}],
        **changes,
    }


def row_of(release: str) -> str | None:
    return {"6.1": "6.1", "6.12": "6.12.107"}.get(".".join(release.split("-")[0].split(".")[:2]))


def run_keeping(
    scenario: Scenario, variant: str, seed: int, metrics: list[str], *, cancel: Cancel | None = None
) -> tuple[str, None]:
    return run(scenario, variant, seed, cancel=cancel), None


def load(path: str, overrides: str | None = None) -> Scenario:
    try:
        text = Path(path).read_text()
    except OSError as e:
        raise ScenarioError(f"cannot read the scenario: {e.strerror}", file=path, hint="is the name right?") from None
    return loads(text, path, overrides)


def loads(text: str, name: str = "<scenario>", overrides: str | None = None) -> Scenario:
    changes = json.loads(overrides or "{}")
    if isinstance(changes.get("seeds"), int):
        changes["seeds"] = list(range(1, changes["seeds"] + 1))
    try:
        return Scenario({**describe(file=name, **json.loads(text or "{}")), **changes})
    except (ValueError, TypeError):
        raise ScenarioError("unknown key `grups`", file=name, line=3, column=5, hint="did you mean `groups`?") from None


class Study:
    """A study file here is the JSON of a description; its scenarios are made of the changes at each case."""

    def __init__(self, description: dict[str, Any], units: int) -> None:
        self.description = description
        self.units = units

    def describe(self) -> str:
        return json.dumps(self.description)

    def scenario(self, number: int) -> Scenario:
        changes = self.description["scenarios"][number]
        return Scenario(describe(name=f"case {number}", seeds=list(range(1, self.units + 1)), **changes))


def load_study(name: str, short: bool = False, units: int | None = None) -> Study:
    description = json.loads(Path(name).with_suffix(".json").read_text())  # an id is a file's name here
    return Study({**description, "short": short, "units": units or 6}, units or 6)


def run(
    scenario: Scenario,
    variant: str,
    seed: int,
    *,
    trace: str | None = None,
    cancel: Cancel | None = None,
    check_determinism: bool = False,
) -> str:
    d = scenario.description
    behaviour = d.get("behaviour", {}).get(variant, {})
    if "by_cost" in behaviour:
        # A metric that follows a cost of the machine.
        metric, cost = behaviour["by_cost"]
        behaviour = {**behaviour, "factor": {metric: d.get("costs", {}).get(cost, 1.0)}}
    if "by_ties" in behaviour:
        # A metric that is larger in every second draw of the ties.
        behaviour = {**behaviour, "factor": {behaviour["by_ties"]: 1.0 + d.get("ties", 0) % 2}}
    if "by_grouping" in behaviour:
        # Metrics of the other grouping.
        behaviour = {**behaviour, "factor": behaviour["by_grouping"].get(d.get("grouping", "given"), {})}
    if behaviour.get("panic"):
        raise PanicException("index out of bounds")
    if behaviour.get("bug"):
        raise ValueError("a bug in the stand-in")
    released = Path(behaviour.get("hangs_until", "/")).exists() and "hangs_until" in behaviour
    if seed in behaviour.get("hang_on", []) and cancel is not None and not released:
        cancel.event.wait()
    if cancel is not None and cancel.event.is_set():
        raise Cancelled("cancelled", exit_code=130)
    if seed in behaviour.get("fail_on", []):
        raise RunError("deadlock at 12.5 ms: a waits on m, b waits on n", exit_code=3, hint="replay with --seed")
    torn = trace is not None and behaviour.get("full_disk")
    if trace is not None and not torn:
        Path(trace).write_text(f"# {variant} {seed}\n")
    kernel = next(v["kernel"] for v in d["variants"] if v["name"] == variant)
    found = record(variant, seed, kernel, values(seed, behaviour))
    found["series"]["probe.latency"]["count"] = behaviour.get("samples", 900)
    if "drift" in behaviour:
        # From the second to the last third.
        found["parts"] = {name: [1.0, factor + seed / 1000] for name, factor in behaviour["drift"].items()}
    if "rest" in behaviour:
        # The level of both.
        found["parts"] = {name: 2 * [level * (1 + (seed % 3) / 100)] for name, level in behaviour["rest"].items()}
    if torn:
        found["trace_error"] = "t.ftrace: No space left on device"
    if check_determinism:
        found["determinism"] = behaviour.get("determinism", "same")
    return json.dumps(found)


def values(seed: int, behaviour: dict[str, Any]) -> dict[str, float | None]:
    shared, own = random.Random(seed), random.Random(f"{seed} {behaviour}")
    base = shared.lognormvariate(0, 0.4)
    noise = behaviour.get("noise", 0.01)
    factor = behaviour.get("factor", {})
    found = {}
    for name, level in (("probe.latency.p50", 4.0), ("probe.latency.p99", 800.0), ("load.rate", 5000.0)):
        found[name] = level * base * factor.get(name, 1.0) * own.lognormvariate(0, noise)
    found["sched.switches"] = 1000
    by_seed = {name: numbers[seed - 1] for name, numbers in behaviour.get("by_seed", {}).items()}
    return {**found, **behaviour.get("fixed", {}), **by_seed}


def record(variant: str, seed: int, kernel: str, metrics: dict[str, float | None]) -> dict[str, Any]:
    p50, p99 = metrics.get("probe.latency.p50") or 1.0, metrics.get("probe.latency.p99") or 2.0
    curve = [[0, p50 / 2], [50, p50], [90, (p50 + p99) / 2], [99, p99], [99.9, p99 * 2], [100, p99 * 3]]
    return {
        "variant": variant,
        "seed": seed,
        "kernel": kernel,
        "engine": ENGINE,
        "digest": hashlib.md5(f"{variant}{seed}{metrics}".encode()).hexdigest(),
        "events": 1234,
        "handled": 5678,
        "switches": 1000,
        "sim_s": 1.0,
        "wall_s": 0.01 * seed,
        "ended": "duration",
        "metrics": metrics,
        "series": {"probe.latency": {"unit": "us", "count": 900, "mean": p50, "max": p99 * 3, "curve": curve}},
        "tasks": [{"name": "probe", "pid": 100, "cpu_ns": 5000, "wait_ns": 700, "switches": 90, "migrations": 2}],
        "cpus": [{"busy_ns": 1, "idle_ns": 2, "cost_ns": 3}],
        "checks": {"one task per CPU": 1000},
    }


def listing(kind: str, kernel: str | None = None) -> str:
    if kernel == "6.13":
        raise EngineError("no kernel `6.13`", hint="the nearest is `6.12.0`")
    if kind == "kernels":
        return json.dumps([{"id": "6.1", "summary": "CFS", "in_debian": True}])
    machines = [("laptop-8", "Core i7", 8, ["tick: a table"]), ("rpi4", "no SMT, " + 20 * "many words, ", 4, [])]
    keys = ("id", "summary", "cpus", "sources")
    return json.dumps([{**dict(zip(keys, machine, strict=True)), "calibrated": False} for machine in machines])


def explain(scenario: Scenario, a: str, b: str, seed: int, *, cancel: Cancel | None = None) -> str:
    decision = {
        "function": "pick_eevdf",
        "feature": "RUN_TO_PARITY",
        "rule": "earliest eligible deadline",
        "action": "pick",
        "time_ns": 1_500_000,
        "compared": [["deadline", 3_000_000]],
        "need_resched": None,
        **dict.fromkeys(("pid", "other_cpu", "group")),
    }
    side = {
        "kernel": "6.12.0",
        "hz": 250,
        "preempt": "none",
        "groups": [],
        "features": [],
        "event": None,
        "event_ns": None,
        "queue": None,
    }
    divergence = {
        "time_ns": 1_500_000,
        "cpu": 0,
        "pid": 100,
        "costs": None,
        "question": "pick",
        "common_events": 12,
        "same_rule": False,
        "tasks": {"100": "probe"},
        "groups": {},
        "sides": [{**side, "decision": decision}, {**side, "decision": {**decision, "feature": None}}],
    }
    return json.dumps(scenario.description.get("divergence", divergence))


def why(scenario: Scenario, variant: str, seed: int, task: str, at_ns: int, *, cancel: Cancel | None = None) -> str:
    raise EngineError(f"no task `{task}` at that time")


def timeline(scenario: Scenario, variant: str, seed: int, *, cancel: Cancel | None = None) -> str:
    raise EngineError("made-up runs have no events")


def convert(source: str, target: str, *, buffer: str | None = None, cancel: Cancel | None = None) -> str:
    raise NotImplementedError("traces are for the compiled engine")


def replay(
    trace: str,
    kernel: str | None = None,
    *,
    matrix: bool = False,
    first: int | None = None,
    warm_up_ms: int | None = None,
    explain: tuple[str, int] | None = None,
    cancel: Cancel | None = None,
) -> str:
    raise NotImplementedError("traces are for the compiled engine")
