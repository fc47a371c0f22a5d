"""The reduction: a smaller candidate that keeps the property replaces the scenario, until there is none."""

from __future__ import annotations

import copy
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.engine import Engine
from schedlab.errors import InputError, RunError, ScenarioError
from schedlab.scenario import Scenario
from schedlab.shrinking.candidates import COUNTS, Document, candidates, get, nanoseconds, paths, time
from schedlab.shrinking.keep import Keep

TESTS = 500
"""How many candidates are run unless stated otherwise."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a scenario is. One is smaller than another if no part is larger and one is smaller."""

    cpus: int
    seeds: int
    duration_ns: int
    tasks: int
    """At the start."""
    values: int
    """Keys and elements in the file."""
    numbers: float
    """The sum of the logarithms of all numbers, options of benchmarks that the file leaves out included."""

    def below(self, other: Size) -> bool:
        pairs = [(getattr(self, part), getattr(other, part)) for part in self.__slots__]
        return all(a <= b + 1e-9 for a, b in pairs) and any(a < b - 1e-9 for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest scenario that was found."""

    text: str
    before: Size
    after: Size
    tests: int
    """How many candidates were run."""
    finished: bool
    """No smaller candidate keeps the property; otherwise the tests ran out, or Ctrl-C ended them."""


def shrink(
    engine: Engine,
    scenario: Scenario,
    keep: Keep,
    *,
    tests: int = TESTS,
    jobs: int | None = None,
    accepted: Callable[[Size], None] = lambda _: None,
) -> Shrunk:
    """Reduce a scenario; InputError if it does not have the property."""
    reducer = _Reducer(engine, scenario, keep, jobs)
    if not reducer.holds(reducer.scenario):
        raise InputError(f"the scenario does not show: {keep}", file=scenario.file, hint="try other --seeds")
    before, finished = reducer.size, False
    try:
        while not finished and reducer.tests < tests:
            finished = not reducer.step(tests)
            accepted(reducer.size)
    except KeyboardInterrupt:
        finished = False
    return Shrunk(reducer.text(), before, reducer.size, reducer.tests, finished)


class _Reducer:
    """The smallest document so far, and what has been tried."""

    def __init__(self, engine: Engine, scenario: Scenario, keep: Keep, jobs: int | None) -> None:
        self._engine, self._file, self._keep, self._jobs = engine, scenario.file, keep, jobs
        self._tried: set[str] = set()
        self.tests = 0
        self.document = explicit(scenario)
        self.scenario = self._load(self.document)
        self.size = size(self.document, self.scenario)

    def text(self) -> str:
        return _dumps(self.document)

    def holds(self, scenario: Scenario) -> bool:
        """Whether a scenario has the property; one that cannot run for another reason has not."""
        try:
            return self._keep.holds(self._engine, scenario, self._jobs)
        except (RunError, InputError):
            return False

    def step(self, tests: int) -> bool:
        """Replace the document by the first smaller one that keeps the property; whether there was one."""
        for document, scenario, found in self._smaller():
            if self.tests >= tests:
                return True
            self.tests += 1
            if self.holds(scenario):
                self.document, self.scenario, self.size = document, scenario, found
                return True
        return False

    def _smaller(self) -> Iterator[tuple[Document, Scenario, Size]]:
        for document in candidates(self.document):
            text = _dumps(document)
            if text in self._tried:
                continue
            self._tried.add(text)
            try:
                scenario = self._load(document)
            except ScenarioError:
                continue
            found = size(document, scenario)
            if found.below(self.size):
                yield document, scenario, found

    def _load(self, document: Document) -> Scenario:
        return self._engine.loads(_dumps(document), self._file)


def explicit(scenario: Scenario) -> Document:
    """The document of a scenario with what a reduction needs to see: duration, seeds, the topology, numeric options."""
    document = copy.deepcopy(tomllib.loads(scenario.description["text"]))
    document.pop("arm", None)  # settings of real kernels; a reduction simulates
    document["duration"] = time(scenario.duration_ns)
    document["seeds"] = list(scenario.seeds)
    home = Path(scenario.file).parent
    for table, shown in zip(document["workload"], _first(document, scenario), strict=True):
        options = shown.get("options", {}).items()
        whole = {key: v for key, v in options if isinstance(v, int) and not isinstance(v, bool) and v > 1}
        table.update({key: value for key, value in whole.items() if key not in table})
        if "rt-app" in table:
            files = table["rt-app"]
            table["rt-app"] = [str(home / f) for f in files] if isinstance(files, list) else str(home / files)
    machine = document["machine"]
    if isinstance(machine, str) and machine.endswith(".toml"):
        machine = tomllib.loads((home / machine).read_text(encoding="utf-8"))
    elif isinstance(machine, str):
        machine = {"base": machine}
    counts = _counts(scenario)
    document["machine"] = {**machine, "topology": {**machine.get("topology", {}), **counts}} if counts else machine
    return document


def _first(document: Document, scenario: Scenario) -> Iterator[Mapping[str, Any]]:
    """The workload of each table: of those of a guest with `count`, which follow each other, the first."""
    counts = {guest["name"]: guest.get("count", 1) for guest in document.get("guest", ())}
    place = 0
    for table in document["workload"]:
        yield scenario.workloads[place]
        place += counts.get(table.get("guest"), 1)


def _counts(scenario: Scenario) -> dict[str, int]:
    """How many of each level the level above it has; empty for a machine whose parts differ."""
    topology = scenario.machine.topology
    sizes = [len(topology.get(level, ())) for level in ("nodes", "llcs", "cores")] + [scenario.machine.cpus]
    above, counts = 1, {}
    for key, count in zip(COUNTS, sizes, strict=True):
        if not above or count % above:
            return {}
        counts[key], above = count // above, count
    return counts


def size(document: Document, scenario: Scenario) -> Size:
    """The size of a scenario and its document."""
    places = list(paths(document))
    numbers = [n for path in places if path[0] != "seeds" and (n := _number(get(document, path))) is not None]
    options = [n for w in scenario.workloads for v in w.get("options", {}).values() if (n := _number(v)) is not None]
    return Size(
        scenario.machine.cpus,
        len(scenario.seeds),
        scenario.duration_ns,
        sum(int(w.get("tasks", 0)) for w in scenario.workloads),
        len(places),
        sum(math.log2(1 + abs(n)) for n in (*numbers, *options)),
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    ns = nanoseconds(value)
    return float(ns) if ns is not None else float(value) if isinstance(value, int | float) else None


def _dumps(document: Document) -> str:
    import tomli_w

    return tomli_w.dumps(document)
