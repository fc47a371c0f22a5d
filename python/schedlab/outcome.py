"""The outcome of one run: its numbers, or why there are none; both survive a round trip through JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from schedlab import fragment
from schedlab import shape as s
from schedlab.frozen import Frozen, hidden

if TYPE_CHECKING:
    from schedlab.engine import Kept

SERIES = s.table(
    {"unit": s.string, "count": s.whole, "curve": s.items(s.items(s.number, 2))},
    {"mean": s.maybe(s.number), "max": s.maybe(s.number), "histogram": s.items(s.items(s.number, 2))},
)
TASK = s.table(
    {"name": s.string, "pid": s.whole, "cpu_ns": s.whole},
    {**dict.fromkeys(("wait_ns", "switches", "migrations"), s.maybe(s.whole)), "tasks": s.whole},
)
PLACE = s.table(
    {},
    {
        "machine": s.maybe(s.string),
        "state": s.mapping(s.string),
        "noise": s.maybe(s.mapping(s.number)),
        "untimed": s.maybe(s.string),
    },
)
RUN = s.table(
    {
        **dict.fromkeys(("variant", "kernel", "engine", "digest", "ended"), s.string),
        "seed": s.whole,
        "events": s.whole,
        "wall_s": s.number,
        "metrics": s.mapping(s.maybe(s.number)),
    },
    {
        "handled": s.whole,
        "switches": s.maybe(s.number),
        "sim_s": s.number,
        "run_s": s.number,
        "series": s.mapping(SERIES),
        "tasks": s.items(TASK),
        "tasks_total": s.whole,
        "trace_error": s.maybe(s.string),
        "place": s.maybe(PLACE),
        "drivers": s.maybe(s.mapping(s.string)),
        "unavailable": s.maybe(s.mapping(s.string)),
        "noise": s.maybe(s.table({}, {"foreign": s.maybe(s.mapping(s.number))})),
    },
)
FAILURE = s.table(
    {"variant": s.string, "seed": s.whole, "error": s.table({"message": s.string}, {"hint": s.maybe(s.string)})}
)
"""What a line of a results file looks like, as far as schedlab reads it."""


class Task(Frozen):
    """The share of a run that one task had, or the ended tasks of one name beyond the first thousand together."""

    name: str
    pid: int
    cpu_ns: int
    wait_ns: int | None
    """None, like those below, where the running kernel does not report it."""
    switches: int | None
    migrations: int | None
    tasks: int = 1
    """How many tasks this stands for; `pid` is 0 if more than one."""


class Series(Frozen):
    """One sampled metric of one run, reduced to a percentile curve."""

    unit: str
    count: int
    mean: float | None
    max: float | None
    curve: tuple[tuple[float, float], ...]
    """(percentile 0..100, value), rising."""
    histogram: tuple[tuple[float, int], ...] = ()
    """(largest value, count) of each bucket; empty in results of older versions."""


class Run(Frozen):
    """One variant with one seed, finished."""

    variant: str
    seed: int
    kernel: str
    engine: str
    digest: str
    events: int
    """Trace events."""
    handled: int
    """Engine events."""
    switches: int
    sim_s: float
    """Simulated seconds; of a real run, measured ones."""
    wall_s: float
    ended: str
    metrics: Mapping[str, float | None]
    series: Mapping[str, Series]
    tasks: tuple[Task, ...]
    record: Mapping[str, Any] = hidden()
    """The whole document of the engine."""
    trace_error: str | None = None
    """Why there is no trace file; the numbers are not affected."""
    kept: Kept | None = hidden(default=None)
    """The samples that the engine kept, from which the slowest are divided without another run; None for a run that
    was read back."""

    @classmethod
    def from_record(cls, d: Mapping[str, Any], kept: Kept | None = None) -> Self:
        return cls(
            variant=d["variant"],
            seed=d["seed"],
            kernel=d["kernel"],
            engine=d["engine"],
            digest=d["digest"],
            events=d["events"],
            handled=d.get("handled", 0),
            switches=int(d.get("switches") or 0),
            sim_s=d["sim_s"] if "sim_s" in d else d["run_s"],
            wall_s=d["wall_s"],
            ended=d["ended"],
            metrics=d["metrics"],
            series={name: _series(s) for name, s in d.get("series", {}).items()},
            tasks=tuple(_task(t) for t in d.get("tasks", ())),
            record=d,
            trace_error=d.get("trace_error"),
            kept=kept,
        )

    def __repr__(self) -> str:
        """One line: the samples would be pages."""
        return f"<Run {self.variant} ({self.kernel}) seed {self.seed}: {self.ended} after {self.sim_s:.6g} s>"

    def _repr_html_(self) -> str:
        return fragment.table(repr(self), ("metric", "value"), self.metrics.items())

    @property
    def volume(self) -> str:
        """How much happened, in words: switches, where they could be counted, and trace events."""
        switches = "" if self.record.get("switches") is None else f"{self.switches:,} switches, "
        return f"{switches}{self.events:,} trace events"


class Failure(Frozen):
    """One variant with one seed whose run failed."""

    variant: str
    seed: int
    message: str
    hint: str | None

    @classmethod
    def from_record(cls, d: Mapping[str, Any]) -> Self:
        return cls(d["variant"], d["seed"], d["error"]["message"], d["error"].get("hint"))


Outcome = Run | Failure
KEPT_TASKS = 50
_SUMS = ("cpu_ns", "wait_ns", "switches", "migrations")


def to_record(outcome: Outcome) -> dict[str, Any]:
    """One line of a results file: the busiest tasks, and the others, which may be thousands, added up by name."""
    if isinstance(outcome, Run):
        return {"status": "ok", **outcome.record, "tasks": _kept(outcome.record.get("tasks", ()))}
    error = {"message": outcome.message, "hint": outcome.hint}
    return {"status": "failed", "variant": outcome.variant, "seed": outcome.seed, "error": error}


def checked_record(d: Any) -> Outcome:
    """`from_record` of a line that may have been edited: ShapeError names what is wrong with it."""
    s.fits(d, s.table({"status": s.one_of("ok", "failed")}))
    s.fits(d, RUN if d["status"] == "ok" else FAILURE)
    if d["status"] == "ok" and not {"sim_s", "run_s"} & {*d}:
        raise s.ShapeError("`sim_s` is missing")
    return from_record(d)


def _kept(tasks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    ordered = sorted(tasks, key=lambda t: (-t["cpu_ns"], t["pid"]))
    rest: dict[str, dict[str, Any]] = {}
    for task in ordered[KEPT_TASKS:]:
        total = rest.setdefault(task["name"], {"name": task["name"], "pid": 0, "tasks": 0, **dict.fromkeys(_SUMS, 0)})
        total["tasks"] += task.get("tasks", 1)
        for key in _SUMS:
            known = total[key], task.get(key)
            total[key] = None if None in known else sum(known)
    return [*ordered[:KEPT_TASKS], *rest.values()]


def from_record(d: Mapping[str, Any]) -> Outcome:
    """The inverse of `to_record`."""
    return Run.from_record(d) if d["status"] == "ok" else Failure.from_record(d)


def _series(d: Mapping[str, Any]) -> Series:
    curve = tuple((float(point[0]), float(point[1])) for point in d["curve"])
    histogram = tuple((float(bucket[0]), int(bucket[1])) for bucket in d.get("histogram", ()))
    return Series(d["unit"], d["count"], d.get("mean"), d.get("max"), curve, histogram)


def _task(d: Mapping[str, Any]) -> Task:
    return Task(
        d["name"], d["pid"], d["cpu_ns"], d.get("wait_ns"), d.get("switches"), d.get("migrations"), d.get("tasks", 1)
    )
