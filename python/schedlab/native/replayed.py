"""The reports of `replay`: how often a kernel row decides as a recorded kernel did. Times are in ns."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from schedlab.native.decisions import Compared
from schedlab.native.explained import RecordedMoment

Side = Literal["picks", "preemptions"]
Field = Literal["vruntime", "deadline", "lag", "zero", "sum", "weight", "count"]
"""Of an entity, then of its queue: zero_vruntime, sum_w_vruntime, sum_weight, nr_queued."""
InputGroup = Literal["operation", "state", "state_again"]


class Answer(TypedDict, total=False):
    """The answer to `--explain`: exactly one of the keys is there."""

    why: RecordedMoment
    tasks: list[int]
    """Not exactly one task of the fair class has the name: these have it."""
    outside: tuple[int, int]
    """The trace does not cover the time: its first and last record."""


class InputCount(TypedDict):
    """How often the model took one kind of input from the trace."""

    kind: str
    group: InputGroup
    name: str
    count: int


class TraceInfo(TypedDict):
    """A trace."""

    kernel: str | None
    cpus: int
    records: int
    lost: int
    wakeups_placed: int
    span_ns: int
    sessions: bool
    grouped: int


class Score(TypedDict):
    """Agreement, with a 95% interval that allows for the dependence of decisions within 10 ms of each other."""

    decisions: int
    agreed: int
    share: float
    low: float
    high: float


class Part(TypedDict):
    """A part of the decisions."""

    name: str
    of: str
    score: Score


class Unjudgeable(TypedDict):
    """Decisions that cannot be judged for one reason."""

    reason: str
    kind: str
    count: int


class UnjudgedSpan(TypedDict):
    """Decisions of a CPU in a row that cannot be judged for one reason."""

    cpu: int
    from_ns: int
    to_ns: int
    count: int
    reason: str


class Unexplained(TypedDict):
    """Unjudged decisions by the side that they belong to."""

    picks: int
    preemptions: int


class Baselines(TypedDict):
    """Rules that use no scheduling state."""

    fifo: Score
    lifo: Score
    keep_running: Score
    lowest_pid: Score
    never_preempts: Score


class PlacementBaselines(TypedDict):
    """Rules that look at nothing but which CPUs are idle."""

    prev: Score
    lowest_idle: Score
    waker: Score


class PlacementMiss(TypedDict):
    """A selection that differs."""

    time_ns: int
    pid: int
    kind: str
    sync: bool
    waker_cpu: int
    prev_cpu: int
    idle: str
    kernel: int
    model: int
    rule: str
    compared: list[Compared]


class PlacementReport(Score):
    """Selections of a CPU (`select_task_rq_fair`) for tasks that may use several."""

    topology_recorded: bool
    kinds: list[Part]
    rules: list[Part]
    moved: Score
    baselines: PlacementBaselines
    unjudged: list[Unjudgeable]
    in_warm_up: int
    histories: Score
    task_loads: Score
    cpu_loads: Score
    disagreements: list[PlacementMiss]


class BalanceBaselines(TypedDict):
    """Rules that look at nothing but the number of tasks."""

    most_tasks: Score
    never: Score


class BalanceMiss(TypedDict):
    """A balancing pass that differs."""

    time_ns: int
    kind: str
    cpu: int
    kernel: str
    model: str
    imbalance: tuple[str, int] | None
    failed: int
    queues: list[str]


class BalanceReport(Score):
    """Balancing passes (`sched_balance_rq`) in which the kernel or the row found an imbalance."""

    source: Score
    kinds: list[Part]
    quiet: int
    task_loads: Score
    preferences: Score
    baselines: BalanceBaselines
    unjudged: list[Unjudgeable]
    in_warm_up: int
    disagreements: list[BalanceMiss]


class Delays(TypedDict):
    """Nearest-rank quantiles of a time."""

    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int


class ReschedPlace(TypedDict):
    """Requests that one kind of check point honours."""

    name: str
    score: Score
    predicted: Delays | None
    recorded: Delays | None


class ReschedMiss(TypedDict):
    """A request that did not end where the model says."""

    time_ns: int
    cpu: int
    requested_ns: int
    lazy: bool
    kernel: str
    model: str


class ReschedReport(Score):
    """Requests to reschedule, each from its first record to its switch."""

    model: str | None
    calls_recorded: bool
    places: list[ReschedPlace]
    unjudged: list[Unjudgeable]
    in_warm_up: int
    disagreements: list[ReschedMiss]


class StepMiss(TypedDict):
    """Growth of a vruntime."""

    time_ns: int
    pid: int
    kernel_step: int
    model_step: int


class VruntimeSteps(TypedDict):
    """Growth of vruntime between two records of a task."""

    compared: int
    equal: int
    absolute: int
    first: list[StepMiss]


class StateMiss(TypedDict):
    """A piece of state that differs."""

    time_ns: int
    cpu: int
    pid: int
    event: str
    what: str
    kernel: int
    model: int


class StateScores(TypedDict):
    """The model's state against probes, at every event that shows it."""

    events: Score
    vruntime: Score
    deadline: Score
    lag: Score
    zero: Score
    sum: Score
    weight: Score
    count: Score
    first: list[StateMiss]


class TaskCounts(TypedDict):
    """Tasks of the fair class."""

    seen: int
    taken: int
    guessed: int
    solved: int


class LookCount(TypedDict):
    """How often later records were consulted for one purpose."""

    purpose: str
    name: str
    records: int


class Queued(TypedDict):
    """A task of a runqueue."""

    pid: int
    name: str
    nice: int
    running: bool
    asleep: bool
    known: bool
    vruntime: int
    key: int
    lag: int | None
    deadline: int | None
    slice: int
    ran: int
    kernel_vruntime: int | None
    kernel_deadline: int | None


class Disagreement(TypedDict):
    """A decision that differs."""

    time_ns: int
    cpu: int
    kind: str
    kernel: str
    model: str
    rule: str | None
    feature: str | None
    compared: list[Compared]
    min_vruntime: int
    avg_vruntime: int | None
    queue: list[Queued]


class Tried(TypedDict):
    """How much of a trace a row was tried on, in records."""

    followed: int
    """By the row."""
    sampled: int
    """In the parts that were read."""
    left_out: int
    """Between these parts."""
    to_the_end: bool
    """The trace ends with the last part."""


class Report(TypedDict):
    """How well one version row decides what a recorded kernel decided."""

    trace: TraceInfo
    row: str
    tried: NotRequired[Tried]
    recorded_row: str | None
    missing: list[str]
    refused: list[str]
    warm_up_ns: int
    picks: Score
    preemptions: Score
    kinds: list[Part]
    cpus: list[Part]
    nice: list[Part]
    unjudged: list[Unjudgeable]
    unjudged_spans: list[UnjudgedSpan]
    unjudged_share: float
    unexplained: Unexplained
    solved: Unexplained
    """Used to solve for unknown lags."""
    not_asked: int
    in_warm_up: int
    baselines: Baselines
    placements: PlacementReport
    balances: BalanceReport
    resched: ReschedReport
    vruntime: VruntimeSteps
    state: StateScores
    tasks: TaskCounts
    inputs: list[InputCount]
    look_ahead: list[LookCount]
    desyncs: int
    disagreements: list[Disagreement]
    explanation: NotRequired[Answer]
