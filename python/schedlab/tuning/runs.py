"""The runs of a search, each kept on disk as it ends: a search that is repeated finds them and continues.

The search itself is deterministic, so nothing else has to be stored: a repeated one asks for the same runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab import documents, files, lines, shape
from schedlab.errors import InputError, not_written
from schedlab.lines import Busy, Lines
from schedlab.outcome import Failure, Run
from schedlab.runner import Job, Runner, Runs
from schedlab.scenario import Scenario

SCHEMA = "schedlab.tune/1"
LINE = shape.table({"key": shape.string, "metrics": shape.mapping(shape.maybe(shape.number))})


class Kept:
    """The finished runs of a directory: the key of each, and its metrics. Without a directory, in memory."""

    def __init__(self, path: Path | None, asked: Mapping[str, Any]) -> None:
        self._found: dict[str, dict[str, float | None]] = {}
        self._lines: Lines | None = None
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lines = Lines(path / "runs.jsonl")
            try:
                _claim(path, asked)
                self._lines.cut()
                self._read(path / "runs.jsonl")
            except BaseException:
                self._lines.close()
                raise
        except Busy:
            raise InputError(f"another schedlab is writing to {path}", hint="choose another --out") from None
        except OSError as e:
            raise not_written(f"cannot keep runs in {path}", e, then="choose another --out") from None

    def get(self, key: str) -> dict[str, float | None] | None:
        """The metrics of a run that has finished, by its key."""
        return self._found.get(key)

    def add(self, key: str, metrics: Mapping[str, float | None]) -> None:
        """Keep a run; it is on the disk when this returns."""
        self._found[key] = dict(metrics)
        if self._lines is None:
            return
        try:
            self._lines.add(json.dumps({"key": key, "metrics": dict(metrics)}, separators=(",", ":")).encode() + b"\n")
            self._lines.sync()
        except OSError as e:
            raise not_written("cannot keep a run", e, then="the runs before it are kept") from None

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()

    def _read(self, path: Path) -> None:
        for number, line in enumerate(lines.whole(path), 1):
            try:
                record = documents.cleaned(shape.loads(line))
                shape.fits(record, LINE)
            except ValueError as e:
                raise InputError(f"not a kept run: {e}", file=str(path), line=number, hint="was it edited?") from None
            self._found[record["key"]] = record["metrics"]


def _claim(path: Path, asked: Mapping[str, Any]) -> None:
    """Write what is searched, or refuse a directory in which something else was searched."""
    manifest = path / "tune.json"
    wanted = json.loads(json.dumps({"schema": SCHEMA, **asked}))
    try:
        before = json.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        files.replace(manifest, json.dumps(wanted, indent=1) + "\n", sync=True)
        return
    except ValueError:
        before = None
    if before != wanted:
        raise InputError(f"{path} holds another search", hint="choose another directory with --out")


class Measured:
    """Metrics of a scenario's runs, from what is kept or by running them."""

    def __init__(
        self, arm: Runs, kept: Kept, variant: str, threads: int, ended: Callable[[str], None] = lambda _: None
    ) -> None:
        self._arm, self._kept, self._variant, self._threads, self._ended = arm, kept, variant, threads, ended

    def metrics(self, scenario: Scenario, name: str, seeds: Sequence[int]) -> dict[int, dict[str, float | None]]:
        """The metrics of each seed; a run that failed has none. `name` identifies what the scenario overrides."""
        keys = {seed: f"{name} seed {seed}" for seed in seeds}
        todo = [Job(self._variant, seed) for seed in seeds if self._kept.get(keys[seed]) is None]
        runner = Runner(self._arm, scenario, todo, self._threads)
        try:
            for outcome in runner.outcomes() if todo else ():
                self._take(outcome, keys[outcome.seed])
        except KeyboardInterrupt:
            runner.stop()
            for outcome in runner.finished():
                self._take(outcome, keys[outcome.seed])
            raise
        return {seed: self._kept.get(keys[seed]) or {} for seed in seeds}

    def _take(self, outcome: Run | Failure, key: str) -> None:
        self._kept.add(key, outcome.metrics if isinstance(outcome, Run) else {})
        self._ended(key)
