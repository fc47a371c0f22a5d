"""`schedlab explain`: the first decision that differs between two variants, or why a task waits at a moment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from schedlab import api
from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.cli.scenario import loaded
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.scenario import Scenario

STAT = re.compile(r"\.(p[0-9]+(\.[0-9]+)?|max|min|mean|median)$")
"""The statistic behind the name of a metric."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, whether the variants differ or not."""
    from schedlab.render.document import dump
    from schedlab.render.explanation import divergence_document, divergence_text, why_document, why_text

    engine = engine or native_engine()
    scenario = loaded(options, engine)
    seed = scenario.seeds[0] if options.seed is None else options.seed
    if options.task is not None or options.at is not None:
        variant, task, at = _moment(scenario, options)
        answer = interruptible(engine, lambda cancel: engine.why(scenario, variant, seed, task, at, cancel=cancel))
        text, document = why_text(scenario, variant, seed, answer), why_document(scenario, variant, seed, answer)
    elif options.metric is not None:
        text, document = _metric(scenario, options, seed, engine)
    else:
        a, b = pair(scenario, options)
        divergence = interruptible(engine, lambda cancel: engine.explain(scenario, a, b, seed, cancel=cancel))
        text, document = (
            divergence_text(scenario, (a, b), seed, divergence),
            divergence_document(scenario, (a, b), seed, divergence),
        )
    if options.json == "-":
        console.result(dump(document))
    else:
        console.text(text)
    if options.json not in (None, "-"):
        write_file(Path(options.json), dump(document) + "\n")
    return 0


def _metric(scenario: Scenario, options: Options, seed: int, engine: Engine) -> tuple[str, dict[str, Any]]:
    from schedlab.render.metric_difference import metric_document, metric_text

    a, b = pair(scenario, options)
    series = STAT.sub("", options.metric or "")
    found = interruptible(engine, lambda cancel: engine.explain_metric(scenario, a, b, seed, series, cancel=cancel))
    if found is None:
        raise InputError(
            f"{a} and {b} do not both have samples of `{series}` in seed {seed}",
            hint="--metric takes a metric with samples of a duration, such as web.latency or sched.wakeup_latency",
        )
    return metric_text(scenario, (a, b), seed, found), metric_document(scenario, (a, b), seed, found)


def _moment(scenario: Scenario, options: Options) -> tuple[str, str, int]:
    if options.metric is not None:
        raise InputError("--metric cannot be used with --task", hint="it compares two variants")
    if options.task is None or options.at is None:
        raise InputError("--task and --at must be used together", hint="for example --task 3 --at 12.5ms")
    if len(options.variants) > 1:
        raise InputError("--task needs a single variant", hint="name one with --variant, or omit --task to compare two")
    variant = options.variant or (options.variants[0] if options.variants else None)
    return api.pick_variant(scenario, variant), options.task, options.at


def pair(scenario: Scenario, options: Options) -> tuple[str, str]:
    """The two variants that were named, or the only two."""
    if getattr(options, "variant", None) is not None:
        raise InputError("--variant can only be used with --task", hint="name the two variants after the scenario: A B")
    names = options.variants or [variant.name for variant in scenario.variants]
    if len(names) != 2:
        known = ", ".join(variant.name for variant in scenario.variants)
        raise InputError(f"two variants are needed, not {len(names)}", hint=f"name two of: {known}")
    a, b = (api.pick_variant(scenario, name) for name in names)
    if a == b:
        raise InputError(f"`{a}` is named twice", hint="name two different variants")
    return a, b
