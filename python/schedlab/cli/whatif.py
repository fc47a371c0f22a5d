"""`schedlab whatif`: what the tasks of a recorded trace would get under another kernel or other settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.engine import Cancel, Engine, native_engine
from schedlab.errors import InputError
from schedlab.overrides import engine_overrides
from schedlab.whatif import predict

SEEDS = 10
"""How many seeds run unless `--seeds` says otherwise."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, whatever is predicted or refused."""
    from schedlab.render.whatif import render

    engine = engine or native_engine()
    extraction = interruptible(
        engine, lambda cancel: engine.whatif(str(options.source), options.recorded_on, cancel=cancel)
    )
    kernels = options.kernels or [extraction["row"]]
    names = predict.variant_names(kernels, bool(options.overrides))
    text = predict.with_variants(extraction["text"], {predict.RECORDED: extraction["row"], **names}, None)
    if options.out:
        write_file(options.out, text)
        console.say(f"wrote {options.out}; `schedlab compare {options.out}` runs it")
    if not options.kernels and not options.overrides and options.cpus is None:
        if options.out:
            return 0
        raise InputError(
            "nothing to predict", hint="name another kernel with --kernel, settings with --set, or CPUs with --cpus"
        )
    given = {"machine": options.machine} if options.machine else {}
    seeds = options.seeds if isinstance(options.seeds, list) else list(range(1, (options.seeds or SEEDS) + 1))
    source = str(options.source)
    base = engine.loads(
        predict.with_variants(extraction["text"], {predict.RECORDED: extraction["row"]}, None), source,
        engine_overrides(seeds, None, given),
    )  # fmt: skip
    other = engine.loads(
        predict.with_variants(extraction["text"], names, options.cpus), source,
        engine_overrides(seeds, options.overrides, given),
    )  # fmt: skip
    pools = {task: pool["name"] for pool in extraction["pools"] for task in pool["tasks"]}
    jobs = options.jobs or os.cpu_count() or 1

    def work(cancel: Cancel) -> tuple[predict.Runs, predict.Runs]:
        first = predict.run_all(engine, base, [predict.RECORDED], seeds, pools, cancel, jobs)
        return first, predict.run_all(engine, other, list(names), seeds, pools, cancel, jobs)

    runs, predicted = interruptible(engine, work)
    found = predict.predict(
        options.source, extraction, runs, predicted, _labels(options, names), len(seeds), every=options.every
    )
    document = json.dumps(predict.document(found), indent=2)
    if options.json == "-":
        console.result(document)
    else:
        console.text(render(found))
        if options.json:
            write_file(Path(options.json), document + "\n")
    return 0


def _labels(options: Options, names: dict[str, str]) -> dict[str, str]:
    """What each variant is called in the table."""
    beyond = [*options.overrides, *([f"{options.cpus} CPUs"] if options.cpus else [])]
    return {name: ", ".join([kernel, *beyond]) for name, kernel in names.items()}
