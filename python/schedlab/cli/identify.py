"""`schedlab identify`: which kernel row decides as a recorded kernel did."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.parser import Options
from schedlab.engine import Engine, native_engine
from schedlab.record import Order, record

HOG = "sh -c 'while :; do :; done'"
LOAD = (
    f"for n in -5 0 5 19; do timeout 3 nice -n $n {HOG} & done; timeout 3 chrt -i 0 {HOG} & "
    "for i in $(seq 40); do sleep 0.05; sh -c 'sleep 0.01'; done; wait"
)
"""Nice values, SCHED_IDLE, sleepers and forks, with programs that busybox has."""
RECORDS = 12_000


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, however well the best row fits."""
    engine = engine or native_engine()
    if Path(options.source).suffix and Path(options.source).is_file():
        return _identify(str(options.source), options, console, engine)
    with tempfile.TemporaryDirectory(prefix="schedlab-identify-") as folder:
        trace = Path(folder) / "load.ftrace.gz"
        record(Order(str(options.source), (LOAD,), trace, records=RECORDS), engine, console.detail)
        return _identify(str(trace), options, console, engine)


def _identify(trace: str, options: Options, console: Console, engine: Engine) -> int:
    from schedlab.render.document import dump
    from schedlab.render.identity import document, text

    reports: list[dict[str, Any]] = interruptible(
        engine, lambda cancel: engine.replay(trace, matrix=True, first=1, cancel=cancel)
    )
    ranked: list[Mapping[str, Any]] = sorted(reports, key=fit, reverse=True)
    if options.json == "-":
        console.result(dump(document(ranked)))
        return 0
    console.result(text(str(options.source), ranked))
    if options.json:
        write_file(Path(options.json), dump(document(ranked)) + "\n")
    return 0


def fit(report: Mapping[str, Any]) -> tuple[float, int]:
    """By decisions (unexplained ones do not agree), then by state: probed events, or steps of the printed vruntime."""
    decisions = sum(_share(report, side) for side in ("picks", "preemptions"))
    return decisions, int(report["state"]["events"]["agreed"]) + int(report["vruntime"]["equal"])


def _share(report: Mapping[str, Any], side: str) -> float:
    asked = report[side]["decisions"] + report["unexplained"][side]
    return float(report[side]["agreed"] / asked) if asked else 1.0
