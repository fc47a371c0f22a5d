"""`schedlab tune`: search, confirm, show; exit code 1 if nothing better was found or the winner was not confirmed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from schedlab import api
from schedlab.arms import arm_of
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.design import further_seeds
from schedlab.engine import Engine, native_engine
from schedlab.errors import ScenarioError, SchedlabError
from schedlab.overrides import engine_overrides
from schedlab.render.document import dump
from schedlab.render.tuning import document, text
from schedlab.scenario import Scenario
from schedlab.tuning.confirm import Confirmation, confirm
from schedlab.tuning.goal import goal_of
from schedlab.tuning.runs import Kept, Measured
from schedlab.tuning.search import Load, Plan, Trial, search, winner
from schedlab.tuning.space import Axis, parse

NOT_CONFIRMED = 1


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """0: the winner is confirmed; 1: it is not, or no trial is better than the default."""
    engine = engine or native_engine()

    def load(overrides: Sequence[str]) -> Scenario:
        flags = {key: getattr(options, key) for key in ("machine", "duration", "noise")}
        both = [*options.overrides, *overrides]
        return engine.load(options.scenario, engine_overrides(options.seeds, both, flags))

    default = load([])
    goal = goal_of(default, options.minimise, options.maximise, options.bounds)
    axes = tuple(parse(one) for one in options.over)
    variant = api.pick_variant(default, options.variant)
    plan = Plan(goal, axes, variant, default.seeds, options.trials, options.sampler, options.pruner, options.seed or 0)
    for axis in axes:
        _check_axis(axis, variant, load)
    _check(options, engine, default, variant)
    trials = _searched(options, console, engine, plan, load, default)
    best = winner(trials, goal)
    try:
        found = _confirmed(options, console, engine, plan, load, default, best) if best else None
    except SchedlabError:
        console.result(text(plan, default, trials, best, None))
        raise
    shown = document(plan, default, trials, best, found)
    if options.json == "-":
        console.result(dump(shown))
    else:
        console.text(text(plan, default, trials, best, found))
    if options.json not in (None, "-"):
        write_file(Path(options.json), dump(shown) + "\n")
    return 0 if found and found.confirmed else NOT_CONFIRMED


def _check_axis(axis: Axis, variant: str, load: Load) -> None:
    """Refuse a key of which neither end of the range, or no choice, is accepted: every trial would be refused."""
    refused: ScenarioError | None = None
    for value in axis.choices or (axis.low, axis.high):
        try:
            load([axis.override(value, variant)])
        except ScenarioError as e:
            refused = refused or e
        else:
            return
    if refused:
        raise refused


def _check(options: Options, engine: Engine, default: Scenario, variant: str) -> None:
    """Refuse before the search what could not be confirmed after it."""
    if options.confirm_on == "sim":
        return
    own = tuple(v for v in default.variants if v.name == variant)
    arm = arm_of(options.confirm_on, engine)
    try:
        arm.prepare(dataclasses.replace(default, arm=options.confirm_on, variants=own))
        arm.threads(options.jobs, api.default_jobs())
    finally:
        arm.close()


def _searched(
    options: Options, console: Console, engine: Engine, plan: Plan, load: Load, default: Scenario
) -> list[Trial]:
    asked = {
        "build": engine.build(),
        "scenario": default.description,
        "goal": str(plan.goal),
        "over": options.over,
        **{key: getattr(plan, key) for key in ("variant", "seeds", "trials", "sampler", "pruner", "seed")},
    }
    kept = Kept(options.out, asked)
    arm = arm_of("sim", engine)
    progress = console.progress((plan.trials + 1) * len(plan.seeds), engine.under_way)
    try:
        arm.prepare(dataclasses.replace(default, variants=tuple(v for v in default.variants if v.name == plan.variant)))
        threads = arm.threads(options.jobs, api.default_jobs())
        return search(plan, load, default, Measured(arm, kept, plan.variant, threads, progress.step))
    finally:
        progress.clear()
        kept.close()
        arm.close()


def _confirmed(
    options: Options, console: Console, engine: Engine, plan: Plan, load: Load, default: Scenario, best: Trial
) -> Confirmation:
    fresh = further_seeds(plan.seeds)
    count = options.confirm or len(fresh)
    seeds = tuple(range(fresh[0], fresh[0] + count))
    both = [dataclasses.replace(s, arm=options.confirm_on) for s in (default, load(best.overrides))]
    only = [dataclasses.replace(s, variants=tuple(v for v in s.variants if v.name == plan.variant)) for s in both]
    arm = arm_of(options.confirm_on, engine, console.detail)
    progress = console.progress(2 * count, engine.under_way)
    try:
        # Once for both: an arm that is prepared keeps its kernel for itself.
        arm.prepare(dataclasses.replace(only[0], variants=only[0].variants + only[1].variants))
        threads = arm.threads(options.jobs, api.default_jobs())
        return confirm(arm, plan.goal, only[0], only[1], plan.variant, seeds, threads, progress.step)
    finally:
        progress.clear()
        arm.close()
