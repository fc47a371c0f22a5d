"""The answers of `explain`: the first difference of two runs, and a task at one moment. Times are in ns."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from schedlab.native.decisions import Action, DecisionView, Flag, Names, QueueView, State

Question = Literal[
    "tick",
    "hrtick",
    "preempt_check",
    "throttle",
    "runtime",
    "accounting",
    "pick",
    "pull",
    "placement",
    "delayed_wakeup",
    "order",
]


class Side(TypedDict):
    """One of the two runs at their first difference."""

    kernel: str
    hz: int
    preempt: str
    groups: list[str]
    features: list[str]
    event: str | None
    event_ns: int | None
    decision: DecisionView | None
    queue: QueueView | None
    overhead_ns: int


class MovedEvent(TypedDict):
    """An event that the runs have at different times; None: one of them does not have it."""

    event: str
    at_ns: tuple[int | None, int | None]


class Costs(TypedDict):
    """How costs changed the order of events."""

    events: tuple[MovedEvent | None, MovedEvent | None]
    since_ns: tuple[int, int]
    overhead_ns: tuple[int, int]


class Differing(TypedDict):
    """A question that the runs of two variants decide differently."""

    cpu: int
    question: Question
    pid: int
    time_ns: int
    sides: tuple[Side, Side]
    same_rule: bool
    tasks: Names
    groups: Names


class FirstDifference(Differing):
    """Where the runs of two variants first differ."""

    common_events: int
    first: int
    equal_decisions: int
    first_different: tuple[DecisionView, DecisionView] | None
    costs: Costs | None


class Rule(TypedDict):
    """A rule, and its outcome."""

    action: Action
    function: str
    feature: str | None
    rule: str


class Cause(TypedDict):
    """Waits of slow samples that one pair of rules decided, that of the slower run first."""

    question: Question
    rules: tuple[Rule | None, Rule | None]
    samples: int
    waits: int
    ns: int


class Shown(Differing):
    """One slow sample, with the decision that differs."""

    sample_pid: int
    other_pid: int
    ns: tuple[int, int]
    at_ns: tuple[int, int]
    waiter: int
    wait_ns: tuple[int, int]


class MetricDifference(TypedDict):
    """What the slow samples of a metric depend on; `mean_ns` has the slower run first."""

    metric: str
    second_slower: bool
    slow: int
    samples: int
    from_ns: int
    mean_ns: tuple[int, int]
    paired: int
    same_begin: int
    waits: int
    causes: list[Cause]
    shown: Shown | None


class Moment(TypedDict):
    """A task at one moment; what only a simulated run shows is not required."""

    kernel: str
    at_ns: int
    pid: int
    state: State
    waits_for: str | None
    since_ns: int | None
    woken_ns: int | None
    cpu: int
    placed: NotRequired[DecisionView | None]
    idle_cpus: NotRequired[list[int]]
    runner: int | None
    queue: QueueView
    throttled_by: NotRequired[int | None]
    throttle: NotRequired[DecisionView | None]
    picked: list[DecisionView]
    kept: list[DecisionView]
    kept_total: int
    need_resched: Flag | None
    executes: NotRequired[str | None]
    next_tick_ns: int | None
    ended_ns: int | None
    ended_by: list[DecisionView]
    tasks: Names
    groups: Names


class RecordedMoment(Moment):
    """A task of a recorded trace at one moment."""

    agrees: bool | None
    """Whether row and kernel picked the same task; None if the pick is not in the trace."""
