"""The goal of a search: a metric to minimise or maximise, and bounds on the cost in other metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab import spelling
from schedlab.errors import InputError
from schedlab.judge import Judgement
from schedlab.scenario import Metric, Scenario
from schedlab.statistics import Difference


@dataclass(frozen=True, slots=True)
class Bound:
    """`METRIC<=+2%` or `METRIC>=-1%`: how far a metric may change from the default."""

    metric: str
    at_most: bool
    percent: float

    def __str__(self) -> str:
        return f"{self.metric}{'<=' if self.at_most else '>='}{self.percent:+g}%"

    def excess(self, change: float) -> float:
        """By how many percent points a change violates the bound; 0 or less if it keeps it."""
        return change - self.percent if self.at_most else self.percent - change

    def holds(self, d: Difference) -> str:
        """`holds` or `is violated` if the interval shows it, otherwise `is not settled`."""
        if d.estimate is None or not d.percent:
            return "is not settled"
        low, high = (d.interval.low, d.interval.high) if d.interval else (d.estimate, d.estimate)
        if not d.interval and not d.constant:
            return "is not settled"
        worst, best = (high, low) if self.at_most else (low, high)
        return "holds" if self.excess(worst) <= 0 else "is violated" if self.excess(best) > 0 else "is not settled"


@dataclass(frozen=True, slots=True)
class Goal:
    """The metric to improve, and the bounds."""

    metric: str
    minimise: bool
    bounds: tuple[Bound, ...] = ()

    def __str__(self) -> str:
        under = f" subject to {', '.join(map(str, self.bounds))}" if self.bounds else ""
        return f"{'minimise' if self.minimise else 'maximise'} {self.metric}{under}"

    def loss(self, change: float) -> float:
        """A change in percent as a number to minimise."""
        return change if self.minimise else -change

    def improved(self, j: Judgement) -> bool:
        """Whether a judgement shows a change in the wanted direction that is larger than the margin."""
        estimate = j.difference.estimate
        return j.effect != "none" and estimate is not None and self.loss(estimate) < 0


def parse_bound(text: str) -> Bound:
    """One bound; InputError says what is wrong with the text."""
    found = re.fullmatch(r"\s*(\S+?)\s*(<=|>=)\s*([+-]?\d+(?:\.\d+)?)\s*%\s*", text, re.ASCII)
    if not found:
        hint = "write METRIC<=+2% or METRIC>=-1%: the change from the default that is allowed"
        raise InputError(f"--subject-to {text}: not a bound", hint=hint)
    return Bound(found[1], found[2] == "<=", float(found[3]))


def goal_of(scenario: Scenario, minimise: str | None, maximise: str | None, bounds: Sequence[str]) -> Goal:
    """The goal, with every metric checked against those of the scenario."""
    if (minimise is None) == (maximise is None):
        raise InputError("one metric is needed", hint="--minimise METRIC or --maximise METRIC")
    goal = Goal(minimise or maximise or "", minimise is not None, tuple(parse_bound(text) for text in bounds))
    known = {m.name: m for m in scenario.metrics}
    for name in (goal.metric, *(b.metric for b in goal.bounds)):
        if name not in known:
            hint = spelling.hint(name, known, "the metrics are")
            raise InputError(f"there is no metric `{name}`", hint=hint, file=scenario.file)
    _check_direction(known[goal.metric], goal)
    return goal


def _check_direction(metric: Metric, goal: Goal) -> None:
    if metric.better == ("higher" if goal.minimise else "lower"):
        other = "--maximise" if goal.minimise else "--minimise"
        raise InputError(f"{metric.name} is better when it is {metric.better}", hint=f"use {other} {metric.name}")
