"""`schedlab scx`: sched_ext schedulers, checked against kernels, and run under random loads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedlab import documents
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.guests import btf
from schedlab.guests.btf import Types
from schedlab.render import extensible

CHECK = "schedlab.scx-check/1"
STRESS = "schedlab.scx-stress/1"
SEEDS = 10
CPUS = 4
TASKS = 12
DURATION_NS = 60_000_000_000
"""Of a load: twice the longest time that the watchdog allows a task to wait."""
OF_STRESS = ("seeds", "load_cpus", "load_tasks", "load_ns", "variables")
NAMES = ("--seeds", "--cpus", "--tasks", "--duration", "--rodata")


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 1 if a kernel lacks what a scheduler needs, or a scheduler fails under a load; otherwise 0."""
    engine = engine or native_engine()
    if options.action == "check":
        for attribute, name in zip(OF_STRESS, NAMES, strict=True):
            if getattr(options, attribute) is not None:
                raise InputError(f"{name} has no effect on scx check", hint="it goes with scx stress")
    kernels = [btf.find(name, engine.kernel_btf) for name in options.kernels]
    run = _check if options.action == "check" else _stress
    schema, found, text, good = run(options, kernels, engine)
    document = documents.dumps({"schema": schema, "objects": found}, indent=1)
    if options.json == "-":
        console.result(document)
    else:
        console.text(text)
        if options.json:
            write_file(Path(options.json), document + "\n")
    return 0 if good else 1


Answer = tuple[str, list[dict[str, Any]], str, bool]
"""The schema, a document per object, the text, and whether nothing is wrong."""


def _check(options: Options, kernels: Sequence[Types], engine: Engine) -> Answer:
    files = [str(kernel.file) for kernel in kernels]
    found: list[dict[str, Any]] = []
    for path in options.objects:
        answer = engine.scx_check(str(path), files)
        lacks = [
            {"kernel": kernel.kernel, "runs": not any(lack["needed"] for lack in lacks), "lacks": lacks}
            for kernel, lacks in zip(kernels, answer["lacks"], strict=True)
        ]
        found.append({"object": str(path), **answer, "lacks": lacks})
    good = all(kernel["runs"] for one in found for kernel in one["lacks"])
    return CHECK, found, extensible.text(found), good


def _stress(options: Options, kernels: Sequence[Types], engine: Engine) -> Answer:
    seeds = options.seeds or SEEDS
    if isinstance(seeds, int):
        seeds = list(range(1, seeds + 1))
    load: dict[str, Any] = {
        "cpus": options.load_cpus or CPUS,
        "tasks": options.load_tasks or TASKS,
        "duration_ns": options.load_ns or DURATION_NS,
        "variables": options.variables or [],
    }
    found: list[dict[str, Any]] = []
    for path in options.objects:
        for kernel in kernels:
            # One seed per call, so that Ctrl-C does not wait for all of them.
            answers = [engine.scx_stress(str(path), str(kernel.file), [seed], **load) for seed in seeds]
            runs = [run for answer in answers for run in answer["runs"]]
            name = answers[0]["scheduler"]
            found.append({"object": str(path), "scheduler": name, "kernel": kernel.kernel, "load": load, "runs": runs})
    good = all(run["exit"] is None for one in found for run in one["runs"])
    return STRESS, found, extensible.stress_text(found), good
