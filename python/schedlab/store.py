"""Keeps finished runs on disk so that nothing but the run in flight is ever lost: one JSON line each, synced."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from schedlab.errors import InputError, OutputError, reason
from schedlab.outcome import Failure, Outcome, Run, from_record, to_record
from schedlab.scenario import Scenario

SCHEMA = "schedlab.result/1"


@dataclass(frozen=True, slots=True)
class Result:
    """The runs of one scenario, finished or failed, in whatever number there are."""

    scenario: Scenario
    arm: str
    seeds: tuple[int, ...]
    """The seeds that were asked for."""
    runs: Mapping[tuple[str, int], Run]
    failures: tuple[Failure, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """The directory that holds it."""

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        arm: str,
        seeds: Iterable[int],
        outcomes: Iterable[Outcome],
        provenance: Mapping[str, Any],
        path: Path | None = None,
    ) -> Self:
        """Sort outcomes, which come in any order, into a result whose order says nothing about timing.

        Of a run that was repeated, as one that failed before a comparison was resumed, the last counts.
        """
        latest = {(o.variant, o.seed): o for o in outcomes}
        ordered = [latest[key] for key in sorted(latest)]
        runs = {(o.variant, o.seed): o for o in ordered if isinstance(o, Run)}
        failures = tuple(o for o in ordered if isinstance(o, Failure))
        return cls(scenario, arm, tuple(seeds), runs, failures, provenance, path)

    @property
    def missing(self) -> int:
        """How many of the runs that were asked for neither finished nor failed."""
        return len(self.seeds) * len(self.scenario.variants) - len(self.runs) - len(self.failures)


class Store:
    """A result directory that is being written: `manifest.json` once, then a line per run.

    A directory in which no run was kept yet is no result: a start that failed or was killed may be repeated.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self.finished: list[Run] = []
        """With `resume`, the runs that an earlier process of the same comparison finished."""
        text = json.dumps({"schema": SCHEMA, **manifest}, indent=1) + "\n"
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lines = (path / "results.jsonl").open("a", encoding="utf-8")
            try:
                _claim(self._lines.fileno(), path, resume)
                if resume and (path / "manifest.json").exists():
                    self.finished = _finished(path, manifest)
                    return
                _replace(path / "manifest.json", text)
            except BaseException:
                self._lines.close()
                raise
        except OSError as e:
            raise OutputError(
                f"cannot keep results in {path}: {reason(e)}", hint="choose another directory with --out"
            ) from None

    def append(self, outcome: Outcome) -> None:
        """Add one run; it is on the disk when this returns."""
        try:
            self._lines.write(json.dumps(to_record(outcome), separators=(",", ":")) + "\n")
            self._lines.flush()
            os.fsync(self._lines.fileno())
        except OSError as e:
            raise OutputError(f"cannot add to {self.path / 'results.jsonl'}: {reason(e)}") from None

    def close(self) -> None:
        try:
            self._lines.close()
        except OSError:
            pass  # a line that could not be written was reported when it was appended


def _finished(path: Path, manifest: Mapping[str, Any]) -> list[Run]:
    """The runs of an interrupted comparison, if it is the same one; a torn last line is cut off."""
    before = _manifest(path / "manifest.json")
    for key in ("scenario", "arm"):
        if before.get(key) != json.loads(json.dumps(manifest[key])):
            raise InputError(
                f"{path} holds a result of another {key}: it cannot be resumed",
                hint="choose another directory with --out",
            )
    lines = path / "results.jsonl"
    whole = lines.read_bytes().rpartition(b"\n")
    os.truncate(lines, len(whole[0]) + len(whole[1]))
    return [outcome for outcome in _outcomes(lines) if isinstance(outcome, Run)]


def _claim(lines: int, path: Path, resume: bool = False) -> None:
    """Refuse a directory with a result in it, or one that another process is about to fill."""
    hint = "choose another directory with --out"
    try:
        fcntl.flock(lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"another schedlab keeps its results in {path}", hint=hint) from None
    except OSError:
        pass  # some network file systems have no locks
    if os.fstat(lines).st_size and (path / "manifest.json").exists() and not resume:
        raise InputError(f"{path} holds a result already", hint=f"{hint}, or go on with it: --resume")


def _replace(file: Path, text: str) -> None:
    """The whole text under this name, on the disk, or what was there before."""
    part = file.with_name(file.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def read(path: Path) -> Result:
    """Read a result directory back; a last line that a killed process left torn is left out."""
    directory = path if path.is_dir() else path.parent
    manifest = _manifest(directory / "manifest.json", path)
    try:
        scenario = Scenario.from_description(manifest["scenario"])
        arm, seeds, provenance = str(manifest["arm"]), tuple(manifest["seeds"]), manifest.get("provenance", {})
    except (KeyError, TypeError, AttributeError) as e:
        raise InputError(f"the manifest lacks or misuses {e}", file=str(directory / "manifest.json")) from None
    return Result.of(scenario, arm, seeds, _outcomes(directory / "results.jsonl"), provenance, directory)


def _manifest(file: Path, asked: Path | None = None) -> dict[str, Any]:
    """The manifest; `asked`: what the user called the result, where that is not the file."""
    hint = "a result is the directory that `schedlab compare` names when it ends"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise InputError(f"no result is there: {reason(e)}", file=str(asked or file), hint=hint) from None
    except ValueError as e:
        raise InputError(f"not a result manifest: {e}", file=str(file), hint=hint) from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise InputError(f"not a result manifest of schema {SCHEMA}", file=str(file), hint=hint)
    return manifest


def _outcomes(file: Path) -> list[Outcome]:
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as e:
        raise InputError(f"cannot read a result: {reason(e)}", file=str(file)) from None
    torn = lines.pop()  # empty when the last line is whole
    outcomes = []
    for number, line in enumerate(lines, 1):
        try:
            outcomes.append(from_record(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise InputError(
                f"not a stored run: {type(e).__name__} {e}",
                file=str(file),
                line=number,
                hint="only the last line may be torn; was the file edited?",
            ) from None
    del torn
    return outcomes
