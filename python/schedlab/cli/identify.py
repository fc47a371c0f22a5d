"""`schedlab identify`: which kernel row decides as a recorded kernel did. The answer about a kernel is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.cli.progress import QUIET_S
from schedlab.engine import Cancel, Engine, native_engine
from schedlab.errors import InputError
from schedlab.guests import identity, kernels
from schedlab.native.replayed import Report
from schedlab.record import Order, identifying, record
from schedlab.render.identity import SIDES, asked, followed, share

TRACES = (".ftrace", ".dat", ".data", ".txt", ".json", ".perfetto-trace", ".pb")
"""The suffixes of traces, before `.gz`: a name that ends in one is no kernel's."""
GIVE = "give a trace, an image of a kernel, or a version such as 6.12"
ENOUGH = 0.5
"""A row is compared with the others by how well it fits if it judges at least this share of the picks, and of the
preemptions, that the row judges which judges most of them."""
LIMIT_S = 900.0
"""For the boot and a load of some five seconds in an emulated guest."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, however well the best row fits."""
    engine = engine or native_engine()
    source = str(options.source)
    if _is_trace(source):
        return _identify(source, options, console, engine)
    with tempfile.TemporaryDirectory(prefix="schedlab-identify-") as folder:
        trace = Path(folder) / "load.ftrace.gz"
        key = _key(source)
        record(
            Order(source, (identifying.load(),), trace, records=identifying.RECORDS, time_limit_s=LIMIT_S),
            engine,
            console.detail,
        )
        return _identify(str(trace), options, console, engine, key)


def _is_trace(source: str) -> bool:
    """Whether `source` is a trace: any file that is no kernel image. What it holds is the reader's to judge."""
    if not source:
        raise InputError("no kernel and no trace is named", hint=GIVE)
    path = Path(source)
    if path.is_dir():
        raise InputError("this is a directory", file=source, hint=GIVE)
    if path.is_file():
        return not kernels.is_image(path)
    if source.removesuffix(".gz").endswith(TRACES):
        raise InputError(f"no such file: {source}", hint=GIVE)
    return False


def _key(source: str) -> str:
    """The key under which the answer about a kernel is kept."""
    return identity.running() if source == kernels.RUNNING else kernels.find(source).sha256


def _identify(trace: str, options: Options, console: Console, engine: Engine, key: str | None = None) -> int:
    from schedlab.render.document import dump
    from schedlab.render.identity import document, known, named, text

    trial = Trial(trace)
    try:
        interruptible(engine, lambda cancel: trial.run(engine, console, cancel))
    except KeyboardInterrupt:
        if trial.reports and options.json is None:
            console.text(text(str(options.source), best_first(trial.reports), left=trial.left))
        raise
    ranked = best_first(trial.reports)
    if key is not None and named(ranked):
        identity.keep(key, known(ranked))
    if options.json == "-":
        console.result(dump(document(ranked)))
        return 0
    console.text(text(str(options.source), ranked))
    if options.json:
        write_file(Path(options.json), dump(document(ranked)) + "\n")
    return 0


class Trial:
    """Every row on parts of a trace, one after the other, so that what is known so far can be shown at any time."""

    def __init__(self, trace: str) -> None:
        self._trace = trace
        self.reports: list[Report] = []
        self.left: Sequence[str] = ()
        """The rows that were not tried yet."""

    def run(self, engine: Engine, console: Console, cancel: Cancel) -> None:
        """Try all rows, that of the recorded kernel first."""
        sample = engine.sample(self._trace, cancel=cancel)
        rows = sample.rows()
        progress = console.progress(len(rows), what="rows", quiet_s=QUIET_S)
        try:
            for at, row in enumerate(rows):
                self.left = rows[at:]
                self.reports.append(sample.replay(row, cancel=cancel))
                progress.step(row)
            self.left = ()
        finally:
            progress.clear()


def best_first(reports: Sequence[Report]) -> list[Report]:
    """The rows that judge enough of what can be judged, by how well they fit; then the others.

    How much of a trace can be judged depends on the row, for instance on how it follows the lag of a task that slept
    before the recording. A row that judges next to nothing fits next to everything.
    """
    most = {side: max((asked(r, side) for r in reports), default=0) for side in SIDES}

    def enough(report: Report) -> bool:
        # Of the records that it followed.
        return all(asked(report, side) >= ENOUGH * most[side] * followed(report) for side in SIDES)

    return sorted(reports, key=lambda report: (enough(report), *fit(report)), reverse=True)


def fit(report: Report) -> tuple[float, int, bool]:
    """By decisions (neither unexplained nor solved ones agree), then by state: probed events or steps of vruntime.

    Among equals the row of the trace's own release comes first.
    """
    decisions = sum(share(report, side) for side in SIDES)
    return (
        decisions,
        int(report["state"]["events"]["agreed"]) + int(report["vruntime"]["equal"]),
        report.get("recorded_row") == report["row"],
    )
