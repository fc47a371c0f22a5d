"""The search: Optuna proposes values, seeds are the steps of a trial, and a trial that falls behind is pruned.

Every trial is compared with the default on the same seeds, so that what is optimised is a paired difference and the
seeds' own spread cancels. Trials run one after the other and the seeds of a step in parallel: neither the number of
threads nor an interruption changes what is proposed next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedlab import extras
from schedlab.errors import InputError, ScenarioError
from schedlab.scenario import Scenario
from schedlab.statistics import paired_difference
from schedlab.tuning.goal import Goal
from schedlab.tuning.runs import Measured
from schedlab.tuning.space import Axis

if TYPE_CHECKING:
    import optuna

SAMPLERS = ("tpe", "random", "qmc")
PRUNERS = ("median", "halving", "none")
FIRST_STEP = 2
"""Seeds of the first step; each further step doubles their number."""

Metrics = dict[int, dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of values, and what they change."""

    number: int
    overrides: tuple[str, ...]
    seeds: int
    """Of how many seeds the changes are."""
    change: float | None
    """Of the goal's metric, in percent of the default; None if there is no value or the values were refused."""
    costs: Mapping[str, float]
    """By how many percent points each bound is exceeded; 0 or less if it is kept."""
    state: str
    """complete, pruned, or why it was refused or failed."""

    @property
    def feasible(self) -> bool:
        """It has a value over all seeds and keeps every bound."""
        return self.state == "complete" and self.change is not None and all(c <= 0 for c in self.costs.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """What is searched and how."""

    goal: Goal
    axes: tuple[Axis, ...]
    variant: str
    seeds: tuple[int, ...]
    trials: int = 50
    sampler: str = "tpe"
    pruner: str = "median"
    seed: int = 1
    """Of the sampler."""


Load = Callable[[Sequence[str]], Scenario]
"""The scenario with further overrides."""


def search(plan: Plan, load: Load, default: Scenario, measured: Measured) -> list[Trial]:
    """All trials, in the order in which they were made."""
    optuna = _optuna()
    study = optuna.create_study(sampler=_sampler(optuna, plan), pruner=_pruner(optuna, plan))
    baseline = measured.metrics(default, "default", plan.seeds)
    space = {axis.key: _distribution(optuna, axis) for axis in plan.axes}
    return [_trial(plan, load, measured, baseline, study, space) for _ in range(plan.trials)]


def winner(trials: Sequence[Trial], goal: Goal) -> Trial | None:
    """The feasible trial with the best change; the first of equal ones."""
    feasible = [t for t in trials if t.feasible]
    return min(feasible, key=lambda t: (goal.loss(t.change or 0.0), t.number), default=None)


def steps(seeds: int) -> list[int]:
    """How many seeds have run after each step: 2, 4, 8, ... and all."""
    found = []
    step = FIRST_STEP
    while step < seeds:
        found.append(step)
        step *= 2
    return [*found, seeds]


def _trial(
    plan: Plan, load: Load, measured: Measured, baseline: Metrics, study: optuna.Study, space: Mapping[str, Any]
) -> Trial:
    trial = study.ask(dict(space))
    overrides = tuple(axis.override(trial.params[axis.key], plan.variant) for axis in plan.axes)
    try:
        scenario = load(overrides)
    except ScenarioError as e:
        _record_loss(study, trial, None)
        return Trial(trial.number, overrides, 0, None, {}, f"refused: {e.message}")
    found: Metrics = {}
    change: float | None = None
    ran = 0
    for ran in steps(len(plan.seeds)):
        found |= measured.metrics(scenario, " ".join(overrides), plan.seeds[len(found) : ran])
        change = _change(plan.goal.metric, baseline, found)
        if change is None:
            break
        trial.report(plan.goal.loss(change), ran)
        if ran < len(plan.seeds) and trial.should_prune():
            study.tell(trial, state=_optuna().trial.TrialState.PRUNED)
            return Trial(trial.number, overrides, ran, change, {}, "pruned")
    costs = {str(b): _cost(b.excess, _change(b.metric, baseline, found)) for b in plan.goal.bounds}
    for name, cost in costs.items():
        trial.set_constraint(name, cost)
    _record_loss(study, trial, None if change is None else plan.goal.loss(change))
    return Trial(trial.number, overrides, ran, change, costs, "failed" if change is None else "complete")


def _cost(excess: Callable[[float], float], change: float | None) -> float:
    """A metric without a value keeps no bound."""
    return float("inf") if change is None else excess(change)


def _change(metric: str, baseline: Metrics, found: Metrics) -> float | None:
    """The paired change in percent over the seeds of `found`; None if a seed has no value, or the default is 0."""
    pairs = [(baseline[seed].get(metric), found[seed].get(metric)) for seed in found]
    if any(a is None or b is None for a, b in pairs):
        return None
    d = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
    return d.estimate if d.percent else None


def _record_loss(study: optuna.Study, trial: optuna.Trial, loss: float | None) -> None:
    if loss is None:
        study.tell(trial, state=_optuna().trial.TrialState.FAIL)
    else:
        study.tell(trial, loss)


def _distribution(optuna: Any, axis: Axis) -> Any:
    of = optuna.distributions
    if axis.choices:
        return of.CategoricalDistribution(axis.choices)
    if axis.kind == "whole":
        return of.IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return of.FloatDistribution(axis.low, axis.high, log=axis.log)


def _sampler(optuna: Any, plan: Plan) -> Any:
    of = optuna.samplers
    if plan.sampler == "tpe":
        return of.TPESampler(seed=plan.seed)
    return of.RandomSampler(seed=plan.seed) if plan.sampler == "random" else of.QMCSampler(seed=plan.seed)


def _pruner(optuna: Any, plan: Plan) -> Any:
    of = optuna.pruners
    if plan.pruner == "median":
        return of.MedianPruner()
    return of.SuccessiveHalvingPruner(min_resource=FIRST_STEP) if plan.pruner == "halving" else of.NopPruner()


def _optuna() -> Any:
    try:
        import warnings

        import optuna
    except ImportError:
        raise InputError("tune needs Optuna", hint=extras.install("tune")) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna
