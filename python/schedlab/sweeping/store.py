"""An experiment on disk: what was planned, and one synced line per run that ended, found by the run's id.

    manifest.json, manifest-PLAN.json   the sweep, every point's scenario and machine; the first is the newest
    plan-PLAN.jsonl                     a line per planned run: id, point, variant, seed
    results.jsonl, shards/1of2.jsonl    a line per run that ended, never changed

An id is a hash of everything that decides a result, the build of the engine included. Runs of a changed sweep, or of
another build, therefore stand beside the older ones, which their own manifest still finds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import documents, files, lines, shape
from schedlab.errors import InputError, reason
from schedlab.outcome import Failure, Outcome, Run, checked_record
from schedlab.scenario import Scenario
from schedlab.store import Result
from schedlab.sweeping.plan import Plan, Planned, digest

SCHEMA = "schedlab.sweep/1"
MANIFEST = shape.table(
    {
        "plan": shape.string,
        "build": shape.string,
        "engine": shape.string,
        "sweep": shape.table({"name": shape.string, "metrics": shape.items(shape.string)}),
        "axes": shape.items(shape.table({"name": shape.string, "numeric": shape.flag, "unit": shape.string})),
        "points": shape.items(
            shape.table({"levels": shape.items(shape.table({"label": shape.string})), "scenario": shape.anything})
        ),
        "parts": shape.mapping(shape.anything),
    },
    {"provenance": shape.mapping(shape.anything)},
)
HEAD = re.compile(rb'\{"id":"([0-9a-f]{32})","status":"(ok|failed)",')
"""How every line begins, so that a resumed sweep need not read the rest."""
OF_THE_MOMENT = ("wall_s", "host", "worker")
"""What the canonical export leaves out: it differs from one execution of the same run to the next."""


@dataclass(frozen=True, slots=True)
class AxisRecord:
    """An axis as the manifest keeps it."""

    name: str
    numeric: bool
    unit: str


@dataclass(frozen=True, slots=True)
class LevelRecord:
    """A level as the manifest keeps it."""

    label: str
    number: float | None


@dataclass(frozen=True)
class Experiment:
    """An experiment read back."""

    path: Path
    manifest: Mapping[str, Any]
    axes: tuple[AxisRecord, ...]
    points: tuple[tuple[LevelRecord, ...], ...]
    scenarios: tuple[Scenario, ...]
    runs: tuple[Planned, ...]
    outcomes: Mapping[str, Outcome]
    """By run id."""
    records: Mapping[str, Mapping[str, Any]]
    """The stored lines of these runs, by run id."""

    @property
    def missing(self) -> int:
        """How many planned runs have not ended."""
        return len({run.id for run in self.runs} - self.outcomes.keys())

    @property
    def failures(self) -> list[tuple[Planned, Failure]]:
        """Each failed run once, at the first place of the plan that it stands for."""
        found = {run.id: run for run in reversed(self.runs)}
        pairs = ((found[run_id], outcome) for run_id, outcome in self.outcomes.items())
        return [(run, outcome) for run, outcome in pairs if isinstance(outcome, Failure)]

    def label(self, point: int) -> str:
        return ", ".join(level.label for level in self.points[point])

    def result(self, point: int) -> Result:
        """The runs of one point, as a comparison stores them."""
        scenario = self.scenarios[point]
        here = (run for run in self.runs if run.point == point and run.id in self.outcomes)
        own = [_as_variant(self.outcomes[run.id], run.variant) for run in here]
        provenance = self.manifest.get("provenance", {})
        return Result.of(scenario, "sim", scenario.seeds, own, provenance)


def _as_variant(outcome: Outcome, variant: str) -> Outcome:
    """The same run under another variant's name: what was simulated is equal."""
    if outcome.variant == variant:
        return outcome
    if isinstance(outcome, Run):
        return Run.from_record({**outcome.record, "variant": variant})
    return Failure(variant, outcome.seed, outcome.message, outcome.hint)


def result_files(path: Path) -> list[Path]:
    """Every file with runs of an experiment."""
    return [file for file in (path / "results.jsonl", *sorted((path / "shards").glob("*.jsonl"))) if file.exists()]


def statuses(path: Path) -> dict[str, str]:
    """The status of every run that ended: `ok` or `failed`; one that succeeded once counts as `ok`."""
    found: dict[str, str] = {}
    for file in result_files(path):
        for number, line in enumerate(lines.whole(file), 1):
            head = HEAD.match(line)
            if not head:
                raise InputError("not a stored run", file=str(file), line=number, hint="was the file edited?")
            name, status = head[1].decode(), head[2].decode()
            if found.get(name) != "ok":
                found[name] = status
    return found


def describe(path: Path, plan: Plan, provenance: Mapping[str, Any]) -> None:
    """Write plan and manifest; the directory shows the newest, those of older plans stay."""
    rows = (json.dumps({"id": r.id, "point": r.point, "variant": r.variant, "seed": r.seed}) for r in plan.runs)
    _once(path / f"plan-{plan.id}.jsonl", "".join(row + "\n" for row in rows))
    own = path / f"manifest-{plan.id}.json"
    _once(own, json.dumps(_manifest(plan, provenance), indent=1) + "\n")
    text = own.read_bytes()
    newest = path / "manifest.json"
    if not newest.exists() or newest.read_bytes() != text:
        files.replace(newest, text, sync=True)


def _once(file: Path, text: str) -> None:
    if not file.exists():
        files.replace(file, text, sync=True)


def _manifest(plan: Plan, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Scenarios share most of their parts, such as the machine: each part is kept once, under its digest."""
    parts: dict[str, Any] = {}

    def described(scenario: Scenario) -> dict[str, Any]:
        kept = {}
        for key, value in scenario.description.items():
            name = digest(json.dumps(value, sort_keys=True))
            parts.setdefault(name, value)
            kept[key] = name
        return kept

    sweep = plan.sweep
    return {
        "schema": SCHEMA,
        "plan": plan.id,
        "build": plan.build,
        "engine": plan.engine,
        "sweep": {
            "name": sweep.name,
            "summary": sweep.summary,
            "file": sweep.file,
            "text": sweep.text,
            "short": sweep.short,
            "scenario": str(sweep.scenario),
            "metrics": list(sweep.metrics),
        },
        "axes": [{"name": axis.name, "numeric": axis.numeric, "unit": axis.unit} for axis in sweep.axes],
        "points": [
            {
                "levels": [{"label": level.label, "number": level.number} for level in point.levels],
                "sets": point.sets,
                "scenario": described(scenario),
            }
            for point, scenario in zip(sweep.points, plan.scenarios, strict=True)
        ],
        "parts": parts,
        "provenance": dict(provenance),
    }


def holds_sweep(path: Path) -> bool:
    """Whether a stored result is one of a sweep."""
    file = path / "manifest.json" if path.is_dir() else path
    try:
        with file.open("rb") as stream:
            return SCHEMA.encode() in stream.read(200)
    except OSError:
        return False


def read(path: Path) -> Experiment:
    """Read an experiment, or one of its older plans by the name of the manifest."""
    file = path / "manifest.json" if path.is_dir() else path
    try:
        manifest = shape.loads(file.read_bytes())
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            raise InputError(f"not a manifest of schema {SCHEMA}", file=str(file))
        shape.fits(manifest, MANIFEST)
        texts = manifest.pop("parts")
        parts = {name: documents.cleaned({documents.TEXT: value})[documents.TEXT] for name, value in texts.items()}
        scenarios = tuple(_scenario(point["scenario"], parts) for point in manifest["points"])
        manifest = documents.cleaned(manifest)
        folder = file.parent
        runs = tuple(
            Planned(row["id"], row["point"], row["variant"], row["seed"])
            for row in map(json.loads, lines.whole(folder / f"plan-{manifest['plan']}.jsonl"))
        )
    except OSError as e:
        raise InputError(f"there is no sweep: {reason(e)}", file=str(path)) from None
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(f"not a manifest: {e}", file=str(file), hint="was the file edited?") from None
    records = merged(result_files(folder), {run.id for run in runs})
    return Experiment(
        path=folder,
        manifest=manifest,
        axes=tuple(AxisRecord(a["name"], a["numeric"], a["unit"]) for a in manifest["axes"]),
        points=tuple(
            tuple(LevelRecord(level["label"], level.get("number")) for level in point["levels"])
            for point in manifest["points"]
        ),
        scenarios=scenarios,
        runs=runs,
        outcomes={name: checked_record(record) for name, record in records.items()},
        records=records,
    )


def _scenario(point: Mapping[str, str], parts: Mapping[str, Any]) -> Scenario:
    return Scenario.from_description({key: parts[name] for key, name in point.items()})


def merged(sources: Sequence[Path], wanted: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """The lines of several files by run id, in the order of the ids.

    The same run may be there twice if both results are equal; two different ones are an error, since a run is
    deterministic. A run that failed once and succeeded once has succeeded.
    """
    chosen = None if wanted is None else {*wanted}
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for file in sources:
        for number, line in enumerate(lines.whole(file), 1):
            head = HEAD.match(line)
            if head and chosen is not None and head[1].decode() not in chosen:
                continue
            record = _checked(line, file, number)
            place, name = f"{file}:{number}", record["id"]
            before = found.get(name)
            if before is None or before[0]["status"] == "failed":
                found[name] = record, place
            elif record["status"] == "ok" and canonical(record) != canonical(before[0]):
                raise InputError(
                    f"the run {name} has two results, which differ: {before[1]} and {place}",
                    hint="a run is deterministic, so one of the two files was changed or one computer is at fault",
                )
    return {name: found[name][0] for name in sorted(found)}


def _checked(line: bytes, file: Path, number: int) -> dict[str, Any]:
    try:
        record: dict[str, Any] = shape.loads(line)
        if not documents.harmless(line):
            record = documents.cleaned(record)
        checked_record(record)
        if not isinstance(record.get("id"), str):
            raise shape.ShapeError("`id` is missing")
    except ValueError as e:
        text = f"not a stored run: {e}"
        raise InputError(text, file=str(file), line=number, hint="was the file edited?") from None
    return record


def canonical(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run without what differs from one execution to the next.

    The name of the variant is left out as well: a run stands for every place of a plan with the same content.
    """
    return {key: value for key, value in record.items() if key not in (*OF_THE_MOMENT, "variant")}


def ended_in(path: Path) -> dict[str, str]:
    """The status of every run that ended in an experiment, which need not exist yet."""
    return statuses(path) if path.is_dir() else {}


def seconds_in(path: Path, plan: Plan) -> dict[tuple[int, str], float]:
    """The mean wall time of the stored runs of the newest plan, by point and variant of this one."""
    if not (path / "manifest.json").exists():
        return {}
    records = {name: r for name, r in read(path).records.items() if r["status"] == "ok"}
    found: dict[tuple[int, str], list[float]] = {}
    for run in plan.runs:
        if run.id in records:
            found.setdefault((run.point, run.variant), []).append(records[run.id]["wall_s"])
    return {key: sum(own) / len(own) for key, own in found.items()}
