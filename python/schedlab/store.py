"""Keeps finished runs on disk so that nothing but the run in flight is ever lost: one JSON line each, synced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from schedlab import documents, files, shape
from schedlab.design import DESIGN, Design
from schedlab.errors import InputError, not_written, reason
from schedlab.lines import Busy, Lines
from schedlab.outcome import Failure, Outcome, Run, checked_record, to_record
from schedlab.scenario import DESCRIPTION, Scenario

SCHEMA = "schedlab.result/1"
MANIFEST = shape.table(
    {"scenario": DESCRIPTION, "arm": shape.one_of("sim", "host", "vm"), "seeds": shape.items(shape.whole)},
    {"provenance": shape.mapping(shape.anything), "design": DESIGN, "build": shape.string},
)

FILES = ("manifest.json", "results.jsonl")
RESULT = "a result is a directory that `schedlab compare` wrote; compare prints its name at the end"
ELSEWHERE = "choose another directory with --out"
NO_DESIGN = Design()
"""A design without looks at the data and without runs for the noise floor."""


@dataclass(frozen=True, slots=True)
class Result:
    """The runs of one scenario that finished or failed so far."""

    scenario: Scenario
    arm: str
    seeds: tuple[int, ...]
    """The seeds to judge: those that were asked for, up to the last completed look of the design."""
    runs: Mapping[tuple[str, int], Run]
    failures: tuple[Failure, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """The directory that holds it."""
    design: Design = field(default_factory=Design)
    """What was declared before the first run."""

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        arm: str,
        seeds: Iterable[int],
        outcomes: Iterable[Outcome],
        provenance: Mapping[str, Any],
        path: Path | None = None,
        design: Design = NO_DESIGN,
    ) -> Self:
        """Sort outcomes, so that the order in which runs ended does not show.

        If a run was repeated, as when one failed before a comparison was resumed, the last one counts.
        """
        latest = {(o.variant, o.seed): o for o in outcomes}
        ordered = [latest[key] for key in sorted(latest)]
        runs = {(o.variant, o.seed): o for o in ordered if isinstance(o, Run)}
        failures = tuple(o for o in ordered if isinstance(o, Failure))
        asked = tuple(seeds)
        reached = asked[: design.reached(asked, [v.name for v in scenario.variants], latest.keys())]
        return cls(scenario, arm, reached, runs, failures, provenance, path, design)

    @property
    def missing(self) -> int:
        """How many of the runs that were asked for neither finished nor failed."""
        ended = {*self.runs, *((f.variant, f.seed) for f in self.failures)}
        return sum((v.name, seed) not in ended for v in self.scenario.variants for seed in self.seeds)


class Store:
    """A result directory that is being written: `manifest.json` once, then a line per run.

    A directory without a kept run is not a result yet: a start that failed or was killed can be repeated. A comparison
    that is resumed can ask for other seeds than before: it keeps the runs that it has and adds the rest.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self.finished: list[Run] = []
        """With `resume`, the runs that an earlier process finished."""
        self._stored: set[tuple[str, int]] = set()
        self._adding: tuple[Outcome | None, int] = (None, 0)
        """What is being added, and the size of the file before it."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lines = Lines(path / "results.jsonl")
            try:
                if self._lines.size and (path / "manifest.json").exists() and not resume:
                    raise InputError(f"{path} already holds a result", hint=f"{ELSEWHERE}, or resume it with --resume")
                if resume and (path / "manifest.json").exists():
                    self.finished, manifest = _finished(path, manifest)
                    self._stored = {(run.variant, run.seed) for run in self.finished}
                    self._lines.cut()
                text = json.dumps({"schema": SCHEMA, **manifest}, indent=1) + "\n"
                files.replace(path / "manifest.json", text, sync=True)
            except BaseException:
                self._lines.close()
                raise
        except Busy:
            raise InputError(f"another schedlab is writing its results to {path}", hint=ELSEWHERE) from None
        except OSError as e:
            raise not_written(f"cannot keep results in {path}", e, then=ELSEWHERE) from None

    @property
    def kept(self) -> int:
        """How many runs are stored."""
        return len(self._stored)

    def append(self, outcome: Outcome) -> None:
        """Add one run; it is on the disk when this returns.

        If Ctrl-C interrupts it, repeat it with the same object: a line that was written already is not written again.
        """
        try:
            if self._adding[0] is not outcome:
                self._adding = (outcome, self._lines.size)
            if self._lines.size == self._adding[1]:
                self._lines.add(json.dumps(to_record(outcome), separators=(",", ":")).encode() + b"\n")
            self._lines.sync()
        except OSError as e:
            raise not_written(f"cannot add to {self.path / 'results.jsonl'}", e) from None
        if isinstance(outcome, Run):
            self._stored.add((outcome.variant, outcome.seed))

    def close(self) -> None:
        self._lines.close()


def _finished(path: Path, manifest: Mapping[str, Any]) -> tuple[list[Run], Mapping[str, Any]]:
    """The runs of an interrupted comparison, if it is the same one, and the manifest with the seeds of both."""
    before = _manifest(path / "manifest.json")
    for key in ("scenario", "arm", "design"):
        if _without_seeds(before.get(key)) != _without_seeds(
            documents.cleaned(json.loads(json.dumps(manifest.get(key))))
        ):
            raise InputError(
                f"{path} holds a result of another {key}, which cannot be resumed",
                hint=ELSEWHERE,
            )
    if "build" in before and before["build"] != manifest.get("build", before["build"]):
        raise InputError(
            f"{path} holds runs of another build of the engine, which are not mixed with those of this one",
            hint=f"{ELSEWHERE}; those runs stay where they are",
        )
    scenario = Scenario.from_description(before["scenario"])
    again = Design.from_record(before.get("design")).again
    wanted, kept = manifest["seeds"], _outcomes(path / "results.jsonl", scenario, [*before["seeds"], *again])
    seeds = [*before["seeds"], *(seed for seed in wanted if seed not in before["seeds"])]
    both = {**manifest, "seeds": seeds, "scenario": {**manifest["scenario"], "seeds": seeds}}
    runs = {(o.variant, o.seed): o for o in kept if isinstance(o, Run) and o.seed in (*wanted, *again)}
    return list(runs.values()), both


def _without_seeds(value: Any) -> Any:
    """A scenario but for its seeds."""
    return {k: v for k, v in value.items() if k != "seeds"} if isinstance(value, dict) else value


def read(path: Path) -> Result:
    """Read a result directory back; a torn last line, which a killed process left, is skipped."""
    directory = path if path.is_dir() else path.parent
    if path.is_file() and path.name not in FILES:
        raise InputError("this file is not a result", file=str(path), hint=RESULT)
    manifest = _manifest(directory / "manifest.json", path)
    scenario, seeds = Scenario.from_description(manifest["scenario"]), tuple(manifest["seeds"])
    design = Design.from_record(manifest.get("design"))
    outcomes = _outcomes(directory / "results.jsonl", scenario, (*seeds, *design.again))
    return Result.of(scenario, manifest["arm"], seeds, outcomes, manifest.get("provenance", {}), directory, design)


def _manifest(file: Path, asked: Path | None = None) -> dict[str, Any]:
    """The manifest; `asked`: how the user named the result, if not by this file."""
    try:
        manifest: dict[str, Any] = documents.cleaned(shape.loads(file.read_bytes()))
    except OSError as e:
        missing = isinstance(e, FileNotFoundError) and (asked or file.parent).exists()
        why = f"the directory has no {file.name}" if missing else reason(e)
        raise InputError(f"there is no result: {why}", file=str(asked or file), hint=RESULT) from None
    except ValueError as e:
        raise InputError(f"not a result manifest: {e}", file=str(file), hint=RESULT) from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise InputError(f"not a result manifest of schema {SCHEMA}", file=str(file), hint=RESULT)
    try:
        shape.fits(manifest, MANIFEST)
    except shape.ShapeError as e:
        raise InputError(f"not a result manifest: {e}", file=str(file), hint="was the file edited?") from None
    return manifest


def _outcomes(file: Path, scenario: Scenario, seeds: Iterable[int]) -> list[Outcome]:
    """Every line; only the last may be torn."""
    try:
        *lines, _torn = file.read_bytes().split(b"\n")
    except OSError as e:
        raise InputError(f"cannot read the result: {reason(e)}", file=str(file)) from None
    known = {(variant.name, seed) for variant in scenario.variants for seed in seeds}
    outcomes = []
    for number, line in enumerate(lines, 1):
        try:
            outcome = checked_record(documents.cleaned(shape.loads(line)))
            if (outcome.variant, outcome.seed) not in known:
                raise shape.ShapeError(f"the manifest has no run of {outcome.variant} with seed {outcome.seed}")
        except ValueError as e:
            hint = "was the file edited?"
            raise InputError(f"not a stored run: {e}", file=str(file), line=number, hint=hint) from None
        outcomes.append(outcome)
    return outcomes
