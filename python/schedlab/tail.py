"""Where the time of the slowest samples of every seed went; the engine divides the samples.

The slowest 1 % are those of all seeds of a variant together; the stored histograms say from which duration on a sample
is one of them. The samples between the 40th and the 60th percentile are divided too: what slow samples have more of is
what makes them slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schedlab.errors import RunError

if TYPE_CHECKING:
    from schedlab.comparison import Column
    from schedlab.engine import Cancel, Engine
    from schedlab.native import runs
    from schedlab.outcome import Series
    from schedlab.scenario import Scenario

PARTS = ("queued", "throttled", "behind", "waking", "stolen", "ran", "served", "slept", "unknown")
"""The parts of a sample in the order of the page; see the engine's `tail` for what each is."""
SLOW_SHARE = 0.01
FEWEST = 10
"""The least number of samples that count as the slowest, if there are as many."""
MIDDLE = (0.4, 0.6)
UNITS_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
LONGEST_NS = 2**63 - 1


@dataclass(slots=True)
class Parts:
    """What samples consist of along their critical path, in ns; of one sample, or the sums over many."""

    ns: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    elsewhere: int = 0
    """The part of `behind` for which another CPU was idle with nothing on its runqueue."""
    before: Counter[str] = field(default_factory=Counter)
    """What ran during `behind`, by name."""
    thieves: Counter[str] = field(default_factory=Counter)
    """What ran on the host during `stolen`, by name."""
    wakers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What ended the sleeps: its kind (interrupt, task, unknown) and the name of a task."""
    threads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """What the threads of the program did during `in_queue`: ns times threads running, runnable, asleep, throttled."""
    in_queue: int = 0
    """The time in a queue of the workload; the parts contain it."""
    pools: Counter[str] = field(default_factory=Counter)
    """What was out of runtime during `throttled`: the path of a group, or what else has a budget."""
    waiters: Counter[str] = field(default_factory=Counter)
    """What waited during `behind`, `waking` and `throttled`, by name."""
    servers: Counter[str] = field(default_factory=Counter)
    """What ran during `served`, by name."""

    @classmethod
    def of(cls, d: runs.Account) -> Parts:
        wakers = Counter({(kind, name): ns for kind, name, ns in d["wakers"]})
        running, runnable, asleep, throttled = d["threads"]
        return cls(
            d["ns"],
            Counter(d["parts"]),
            d["elsewhere"],
            Counter(d["before"]),
            Counter(d["thieves"]),
            wakers,
            (running, runnable, asleep, throttled),
            d["in_queue"],
            Counter(d["pools"]),
            Counter(d["waiters"]),
            Counter(d["servers"]),
        )

    def add(self, other: Parts) -> None:
        self.ns += other.ns
        self.elsewhere += other.elsewhere
        self.in_queue += other.in_queue
        for mine, theirs in (
            (self.parts, other.parts),
            (self.before, other.before),
            (self.thieves, other.thieves),
            (self.pools, other.pools),
            (self.waiters, other.waiters),
            (self.servers, other.servers),
        ):
            mine.update(theirs)
        self.wakers.update(other.wakers)
        a, b, c, d = (x + y for x, y in zip(self.threads, other.threads, strict=True))
        self.threads = (a, b, c, d)


@dataclass(slots=True)
class Band:
    """The samples of a band of durations."""

    count: int = 0
    parts: Parts = field(default_factory=Parts)
    tasks: Counter[str] = field(default_factory=Counter)
    lanes: Counter[str] = field(default_factory=Counter)
    tenths: Counter[int] = field(default_factory=Counter)
    """Samples by the tenth of the time after the warm-up in which they ended, 0 to 9."""

    @classmethod
    def of(cls, d: runs.Band) -> Band:
        tenths = Counter(dict(enumerate(d["tenths"])))
        return cls(d["count"], Parts.of(d), Counter(d["tasks"]), Counter(d["lanes"]), tenths)

    @classmethod
    def sum(cls, bands: Iterable[Band]) -> Band:
        total = cls()
        for band in bands:
            total.count += band.count
            total.parts.add(band.parts)
            total.tasks.update(band.tasks)
            total.lanes.update(band.lanes)
            total.tenths.update(band.tenths)
        return total

    def mean(self, part: str) -> float:
        """The mean time in one part, in ns per sample."""
        return self.parts.parts[part] / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the longest samples of a run."""

    at_ns: int
    """When it ended."""
    pid: int
    task: str
    lane: str
    parts: Parts

    @property
    def ns(self) -> int:
        return self.parts.ns


@dataclass(frozen=True, slots=True)
class Load:
    """How the CPUs of one kernel were used after the warm-up; times in ns."""

    kernel: str
    time: int
    busy: Sequence[int]
    waiting: Sequence[int]
    """Of each CPU: time times waiting tasks."""
    runnable: int
    """Time times runnable tasks, those that run included."""
    over: int
    """With more runnable tasks than CPUs."""
    full: int
    """With every CPU busy."""
    lost: int
    """With an idle CPU while a task waited on another one's runqueue."""
    most: int


@dataclass(frozen=True, slots=True)
class SeedTail:
    """The tail of one run."""

    seed: int
    slow: Band
    middle: Band
    tenths: Sequence[tuple[int, float]]
    """Number and ns of all samples by tenth of the run."""
    slowest: Sequence[Sample]
    loads: Sequence[Load]
    quota: bool = False
    """Whether a control group has a quota in a kernel whose throttling is not shown: that of the host, or of a guest
    that is not the first. There, time in which it is throttled is part of `behind`, `waking` and `stolen`."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a variant."""

    variant: str
    from_ns: int
    """The slowest samples are those that took as long or longer."""
    samples: int
    """Of all durations."""
    seeds: Sequence[SeedTail]

    @property
    def slow(self) -> Band:
        return Band.sum(one.slow for one in self.seeds)

    @property
    def middle(self) -> Band:
        return Band.sum(one.middle for one in self.seeds)


def tail_of(
    engine: Engine, scenario: Scenario, column: Column, metric: str, *, threads: int = 1, cancel: Cancel | None = None
) -> Tail:
    """The tail of every run of a variant. Runs whose samples were not kept are repeated; RunError if one of them is
    not the run that was judged."""
    series = [run.series[metric] for run in column.runs.values()]
    slow, middle = bands(series)

    def one(seed: int) -> SeedTail:
        run = column.runs[seed]
        found = run.kept and run.kept.tail(metric, [slow, middle])
        found = found or engine.tail(scenario, column.name, seed, metric, [slow, middle], cancel=cancel)
        if found["digest"] != run.digest:
            raise RunError(f"seed {seed} of {column.name} gave a different digest from the stored run")
        return _seed(seed, found)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        seeds = list(pool.map(one, sorted(column.runs)))
    return Tail(column.name, slow[0], sum(s.count for s in series), seeds)


def bands(series: Sequence[Series]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The durations of the slowest samples and of those in the middle, from the histograms of all runs together.

    Bounds are those of buckets, whose width is below 1 % of their value, so that every run is cut at the same duration.
    """
    counts: Counter[int] = Counter()
    for one in series:
        for largest, count in one.histogram:
            counts[round(largest * UNITS_NS[one.unit])] += count
    edges = sorted(counts)
    total = counts.total()
    wanted = min(total, max(round(SLOW_SHARE * total), FEWEST))
    below = 0
    first, low, high = 0, 0, LONGEST_NS
    for before, edge in zip([-1, *edges], edges, strict=False):
        if total - below >= wanted:
            first = before + 1
        if below <= MIDDLE[0] * total:
            low = before + 1
        below += counts[edge]
        if below >= MIDDLE[1] * total and high == LONGEST_NS:
            high = edge
    return (first, LONGEST_NS), (low, high)


def usable(series: Series | None) -> bool:
    """Whether a series is of durations, with the histogram that results of older versions lack."""
    return series is not None and series.unit in UNITS_NS and bool(series.histogram)


def _seed(seed: int, found: runs.Tail) -> SeedTail:
    slow, middle = (Band.of(band) for band in found["bands"])
    slowest = [Sample(d["at"], d["pid"], d["task"], d["lane"], Parts.of(d)) for d in found["slowest"]]
    tenths = [(count, ns) for count, ns in found["tenths"]]
    return SeedTail(seed, slow, middle, tenths, slowest, [_load(d) for d in found["load"]], found.get("quota", False))


def _load(d: runs.Load) -> Load:
    cpus = d["cpus"]
    sums = (d["runnable"], d["over"], d["full"], d["lost"], d["most"])
    return Load(d["kernel"], d["time"], [c[0] for c in cpus], [c[1] for c in cpus], *sums)
