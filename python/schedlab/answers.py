"""The commands that answer questions as functions: `explain`, `why`, `ablate`, `replay`, and scenarios from code."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schedlab import spelling
from schedlab.api import default_jobs, load, pick_variant
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.overrides import Overrides, engine_overrides
from schedlab.scenario import Scenario


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The answer to a question: `str()` is the text of the command, `document` the content of its `--json`."""

    question: str
    """The question in one line."""
    text: str = field(compare=False)
    document: Mapping[str, Any]
    """Plain data; docs/explain.md and docs/results.md describe its keys. Times are in ns and end in `_ns`."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Answer: {self.question}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def build(
    document: Mapping[str, Any],
    *,
    name: str = "scenario",
    seeds: int | Sequence[int] | None = None,
    overrides: Overrides | None = None,
    engine: Engine | None = None,
) -> Scenario:
    """A scenario from a mapping with the keys of docs/scenario.md; paths in it are relative to the current directory.

    `name` stands for the file in messages and is the scenario's name unless the document has one. `seeds` and
    `overrides` are as for `load`. ScenarioError says what is not valid, with its line in the TOML of the document.
    """
    import tomli_w

    try:
        text = tomli_w.dumps(document)
    except (TypeError, ValueError) as e:
        raise InputError(f"the document is not a scenario: {e}") from None
    return (engine or native_engine()).loads(text, name, engine_overrides(seeds, overrides, {}))


def explain(
    scenario: Scenario | str | os.PathLike[str],
    a: str | None = None,
    b: str | None = None,
    *,
    seed: int | None = None,
    engine: Engine | None = None,
) -> Answer:
    """The first decision that differs between two variants: by default the only two, with the first seed."""
    from schedlab.render.explanation import divergence_document, divergence_text

    engine, scenario = _both(scenario, engine)
    pair = _pair(scenario, a, b)
    seed = scenario.seeds[0] if seed is None else seed
    divergence = engine.explain(scenario, *pair, seed)
    said = f"{scenario.name}, seed {seed}: where do {pair[0]} and {pair[1]} first differ?"
    return Answer(
        said, divergence_text(scenario, pair, seed, divergence), divergence_document(scenario, pair, seed, divergence)
    )


def why(
    scenario: Scenario | str | os.PathLike[str],
    task: str,
    at_ns: int,
    *,
    variant: str | None = None,
    seed: int | None = None,
    engine: Engine | None = None,
) -> Answer:
    """Why a task (a pid, workload or program) waits, runs or sleeps `at_ns` nanoseconds after the start of a run."""
    from schedlab.render.explanation import why_document, why_text

    engine, scenario = _both(scenario, engine)
    variant = pick_variant(scenario, variant)
    seed = scenario.seeds[0] if seed is None else seed
    answer = engine.why(scenario, variant, seed, task, at_ns)
    said = f"{scenario.name}, {variant} seed {seed}: what of {task} at {at_ns / 1e6:g} ms?"
    return Answer(said, why_text(scenario, variant, seed, answer), why_document(scenario, variant, seed, answer))


def ablate(
    scenario: Scenario | str | os.PathLike[str],
    a: str | None = None,
    b: str | None = None,
    *,
    metric: str | None = None,
    jobs: int | None = None,
    engine: Engine | None = None,
) -> Answer:
    """What each mechanism contributes to the difference of two variants in one metric, by default the first."""
    from schedlab import ablation
    from schedlab.render.ablation import document, text

    engine, scenario = _both(scenario, engine)
    pair = _pair(scenario, a, b)
    known = {m.name: m for m in scenario.metrics}
    name = next(iter(known), "") if metric is None else metric
    if name not in known:
        raise InputError(f"the scenario has no metric `{name}`", hint=spelling.hint(name, known, "the metrics are"))
    found = ablation.ablate(engine, scenario, *pair, known[name], jobs=jobs or default_jobs())
    said = f"{scenario.name}: what makes the difference of {pair[0]} and {pair[1]} in {name}?"
    return Answer(said, text(found), document(found))


def replay(
    trace: str | os.PathLike[str],
    kernel: str | None = None,
    *,
    matrix: bool = False,
    engine: Engine | None = None,
) -> Answer:
    """How often a kernel row decides as the recorded kernel did; by default the recorded kernel's row.

    With `matrix`, every row is replayed and the answer has a line for each. `document["reports"]` has all counts.
    """
    from schedlab.render import agreement

    if matrix and kernel:
        raise InputError("matrix replays every row", hint="omit kernel or matrix")
    name = os.fspath(trace)
    reports = (engine or native_engine()).replay(name, kernel, matrix=matrix, first=1)
    text = agreement.matrix(name, reports) if matrix else agreement.report(name, reports[0])
    return Answer(f"{name}: which decisions agree?", text, agreement.document(name, reports))


def _both(scenario: Scenario | str | os.PathLike[str], engine: Engine | None) -> tuple[Engine, Scenario]:
    engine = engine or native_engine()
    return engine, scenario if isinstance(scenario, Scenario) else load(scenario, engine=engine)


def _pair(scenario: Scenario, a: str | None, b: str | None) -> tuple[str, str]:
    """The two variants that were named, or the only two."""
    names = [v.name for v in scenario.variants]
    if a is None and b is None and len(names) == 2:
        return names[0], names[1]
    if a is None or b is None or a == b:
        raise InputError("two different variants are needed", hint=f"name two of: {', '.join(names)}")
    return pick_variant(scenario, a), pick_variant(scenario, b)
