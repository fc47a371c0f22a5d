"""The runs of a sweep: every point with every variant and seed, each under an id that its content decides."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from schedlab import spelling
from schedlab.engine import Engine
from schedlab.errors import InputError, SchedlabError
from schedlab.overrides import engine_overrides
from schedlab.scenario import Scenario
from schedlab.sweeping.axes import Point, Value
from schedlab.sweeping.definition import Sweep

ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Planned:
    """One run: it may stand for several places of the plan, since equal content has one id."""

    id: str
    point: int
    variant: str
    seed: int


@dataclass(frozen=True)
class Plan:
    """Every run of a sweep, in the order in which they begin."""

    sweep: Sweep
    scenarios: tuple[Scenario, ...]
    """One per point."""
    build: str
    engine: str
    runs: tuple[Planned, ...]
    """Seed by seed, so that an interrupted sweep has complete seeds at as many points as possible."""

    @cached_property
    def distinct(self) -> dict[str, Planned]:
        """By id, the first place of each run."""
        found: dict[str, Planned] = {}
        for run in self.runs:
            found.setdefault(run.id, run)
        return found

    @property
    def id(self) -> str:
        """Identifies the plan: the ids of its runs and the places that they stand for."""
        return digest(json.dumps([[r.id, r.point, r.variant, r.seed] for r in self.runs]))[:12]

    def text(self, point: int) -> str:
        """The complete scenario of a point as TOML."""
        return str(self.scenarios[point].description.get("text", ""))


def plan(engine: Engine, sweep: Sweep) -> Plan:
    """Validate the scenario of every point and name its runs."""
    build = engine.build()
    scenarios = tuple(scenario_at(engine, sweep, point) for point in sweep.points)
    keys = [{v.name: content(engine, build, scenario, v.name) for v in scenario.variants} for scenario in scenarios]
    seeds = list(dict.fromkeys(seed for scenario in scenarios for seed in scenario.seeds))
    runs = [
        Planned(run_id(keys[point.index][variant.name], seed), point.index, variant.name, seed)
        for seed in seeds
        for point, scenario in zip(sweep.points, scenarios, strict=True)
        if seed in scenario.seeds
        for variant in scenario.variants
    ]
    return Plan(sweep, scenarios, build, engine.version, tuple(runs))


def content(engine: Engine, build: str, scenario: Scenario, variant: str) -> str:
    """Identifies what decides the result of a variant besides its seed: what is simulated, and by which build."""
    return digest(f"{build}\n{engine.spec(scenario, variant)}")


def run_id(content: str, seed: int) -> str:
    """The id of one run."""
    return digest(f"{content} {seed}")


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=ID_BYTES).hexdigest()


def cpus(engine: Engine, scenario: Path, sets: Mapping[str, Value]) -> int:
    """How many CPUs the scenario simulates with these keys replaced."""
    return engine.load(str(scenario), engine_overrides(1, sets, {})).machine.cpus


def scenario_at(engine: Engine, sweep: Sweep, point: Point) -> Scenario:
    """The scenario of a point; an error names the point."""
    sets = {**sweep.sets, **point.sets}
    try:
        scenario = engine.load(str(sweep.scenario), engine_overrides(sweep.seeds, sets, {}))
    except SchedlabError as e:
        text = f"the scenario is not valid at {point.label}: {e.message}"
        where = e.file if e.file and e.file.startswith("--set") else None
        place = f" ({where.removeprefix('--set ')})" if where else ""
        file, line = (sweep.file, None) if where else (e.file, e.line)
        raise InputError(text + place, hint=e.hint, file=file, line=line, key=e.key) from None
    unsimulated = next((v for v in scenario.variants if v.not_simulated), None)
    if scenario.arm != "sim" or unsimulated:
        raise InputError("a sweep is simulated, but its scenario needs a real kernel", file=str(sweep.scenario))
    return dataclasses.replace(scenario, name=f"{sweep.name}: {point.label}")


def shard(runs: Iterable[Planned], part: int, of: int) -> list[Planned]:
    """The runs of one of several shards, chosen by their ids, so that every shard has a share of every point."""
    return [run for run in runs if int(run.id[:8], 16) % of == part - 1]


def metrics(plan: Plan) -> Sequence[str]:
    """The names of the metrics to show: those of the sweep file, else those that the scenario declares."""
    known = {m.name: m for scenario in plan.scenarios for m in scenario.metrics}
    for name in plan.sweep.metrics:
        if name not in known:
            hint = spelling.hint(name, known, "the metrics are")
            raise InputError(f"there is no metric `{name}`", file=plan.sweep.file, key="metrics", hint=hint)
    declared = [name for name, m in known.items() if m.declared]
    return plan.sweep.metrics or declared or list(known)[:3]
