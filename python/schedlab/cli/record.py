"""`schedlab record`: a scheduler trace of a real kernel."""

from __future__ import annotations

from pathlib import Path

from schedlab.cli.console import Console
from schedlab.cli.missing_records import say_missing
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.record import Order, chaos, record

EXIT_WORKLOAD = 3


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, or 3 if the workload failed; its trace is written nevertheless."""
    order = _order(options)
    done = record(order, engine or native_engine(), console.detail)
    counts = done.counts
    cpus = "1 CPU" if counts["cpus"] == 1 else f"{counts['cpus']} CPUs"
    probed = ", state probes" if done.probes else ""
    span = f"{counts['span_ns'] / 1e9:.6f} s"
    console.text(f"{done.out}: {counts['kernel']}, {cpus}, {counts['records']:,} records{probed}, {span}")
    say_missing(console, counts)
    if done.cut:
        console.say("the trace ends where a buffer was full; increase --memory or limit --records")
    if done.exit_code:
        console.say(f"the workload ended with exit code {done.exit_code}")
        for line in done.console[-8:]:
            console.say(f"  | {line}")
        return EXIT_WORKLOAD
    return 0


def _order(options: Options) -> Order:
    kernel = str(options.kernel)
    for flag in ("cpus", "smp", "nodes", "emulation"):
        if kernel == "running" and getattr(options, flag) is not None:
            raise InputError(f"--{flag} is not supported for the running kernel", hint=f"omit --{flag}")
    if kernel == "running" and options.check_points:
        raise InputError("--check-points is not supported for the running kernel", hint="omit --check-points")
    cpus, nodes = options.cpus or 1, options.nodes or 1
    if cpus % nodes:
        raise InputError(f"{cpus} CPUs cannot be divided among {nodes} nodes of equal size")
    if (options.chaos is None) == (not options.workload):
        raise InputError("record takes either WORKLOAD or --chaos SEED", hint="schedlab record --help has examples")
    load = tuple(options.workload) if options.chaos is None else (chaos.workload(options.chaos, cpus),)
    name = "running" if kernel == "running" else f"{Path(kernel).name}-{cpus}cpu"
    return Order(
        kernel=kernel,
        workload=load,
        out=options.out or Path(f"{name}.ftrace.gz"),
        cpus=cpus,
        memory_mb=options.memory,
        time_limit_s=options.time_limit,
        probes=options.probes,
        records=options.records,
        append=options.append,
        smp=options.smp,
        nodes=nodes,
        emulation=options.emulation,
        autogroup=options.autogroup,
        check_points=options.check_points,
    )
