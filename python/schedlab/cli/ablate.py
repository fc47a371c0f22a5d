"""`schedlab ablate`: which mechanism causes the difference between two variants."""

from __future__ import annotations

from pathlib import Path

from schedlab import api, spelling
from schedlab.cli.console import Console, write_file
from schedlab.cli.explain import pair
from schedlab.cli.options import Options
from schedlab.cli.scenario import loaded
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.outcome import Outcome
from schedlab.scenario import Metric, Scenario


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, or 3 if some runs failed."""
    from schedlab.ablation import ablate, count
    from schedlab.render.ablation import document, text
    from schedlab.render.document import dump

    engine = engine or native_engine()
    scenario = loaded(options, engine)
    a, b = pair(scenario, options)
    metric = _metric(scenario, options.metric)
    differences = engine.ablation(scenario, a, b)
    console.say(f"{len(differences)} differences, {count(differences, scenario.seeds)} runs")
    progress = console.progress(count(differences, scenario.seeds), engine.under_way)

    def ended(outcome: Outcome) -> None:
        progress.step(f"{outcome.variant} seed {outcome.seed}")

    try:
        found = ablate(
            engine,
            scenario,
            a,
            b,
            metric,
            jobs=options.jobs or api.default_jobs(),
            on_outcome=ended,
            differences=differences,
        )
    finally:
        progress.clear()
    if options.json == "-":
        console.result(dump(document(found)))
    else:
        console.text(text(found))
    if options.json not in (None, "-"):
        write_file(Path(options.json), dump(document(found)) + "\n")
    return 3 if found.failures else 0


def _metric(scenario: Scenario, name: str | None) -> Metric:
    known = [m.name for m in scenario.metrics]
    if name is None:
        if not scenario.metrics:
            raise InputError("the scenario has no metric")
        return scenario.metrics[0]
    for metric in scenario.metrics:
        if metric.name == name:
            return metric
    raise InputError(f"the scenario has no metric `{name}`", hint=spelling.hint(name, known, "the metrics are"))
