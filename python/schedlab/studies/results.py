"""The stored results of the studies, results.json in this folder: from it and the study files the page is rendered."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from schedlab import files
from schedlab.errors import InputError, not_written, reason
from schedlab.statistics import Interval
from schedlab.studies.figures import Published
from schedlab.studies.reasons import Reason
from schedlab.studies.report import Report, StudyReport, report_of
from schedlab.studies.score import Simulated, SpreadBetweenUnits
from schedlab.studies.study import Case, Study

SCHEMA = "schedlab.studies.results/2"
FILE = Path(__file__).with_name("results.json")
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the results of a study are from."""

    name: str
    """The column of the history that was recorded with them; empty if nothing was recorded."""
    command: str
    date: str
    engine: str
    units: int
    seconds: float
    """The wall time of all runs of the study together."""
    note: str
    """A remark on this recording, such as why it has fewer units."""


Origins = Mapping[str, Origin]
"""By the name of the study."""


def write(file: Path, report: Report, origins: Origins) -> None:
    """Every simulated value of a report, with its reasons and origin."""
    studies = {one.study.name: {"origin": asdict(origins[one.study.name]), **_study(one)} for one in report.studies}
    document = {"schema": SCHEMA, "did_not_fit": list(report.unfit), "studies": studies}
    try:
        files.replace(file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    except OSError as e:
        raise not_written(f"cannot write {file}", e) from None


def read(
    file: Path, load: Callable[[str, int], Study], *, leave_out: Collection[str] = ()
) -> tuple[Report, dict[str, Origin]]:
    """The stored report without some studies; `load` finds a study by name and number of units."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        hint = "schedlab reproduce all --record NAME writes it"
        raise InputError(f"no stored results: {reason(e)}", file=str(file), hint=hint) from None
    except ValueError as e:
        raise InputError(f"not the results of studies: {e}", file=str(file)) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"not the results of studies of schema {SCHEMA}", file=str(file))
    try:
        kept = {name: stored for name, stored in document["studies"].items() if name not in leave_out}
        origins = {name: Origin(**stored["origin"]) for name, stored in kept.items()}
        studies = [_stored(load(name, origins[name].units), stored) for name, stored in kept.items()]
        unfit = [label for label in document["did_not_fit"] if label.partition(": ")[0] in kept]
        return Report(tuple(studies), tuple(unfit)), origins
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise InputError(f"not the results of studies: {e!r}", file=str(file)) from None


def origins(
    report: Report, name: str, command: str, engine: str, seconds: Callable[[str], float], note: str
) -> dict[str, Origin]:
    """The origins of what was reproduced today; `seconds` is the wall time of the runs of a study."""
    today = datetime.now(UTC).date().isoformat()
    return {
        one.study.name: Origin(name, command, today, engine, one.study.units, round(seconds(one.study.name)), note)
        for one in report.studies
    }


def joined(stored: tuple[Report, Origins], new: tuple[Report, Origins], order: Sequence[str]) -> tuple[Report, Origins]:
    """What was stored and what is new, of each study once, in the order of the names."""
    reports = [*stored[0].studies, *new[0].studies]
    reports.sort(key=lambda one: order.index(one.study.name) if one.study.name in order else len(order))
    return Report(tuple(reports), (*stored[0].unfit, *new[0].unfit)), {**stored[1], **new[1]}


def _study(report: StudyReport) -> dict[str, Any]:
    return {
        "rows": [
            {"row": _key(case.case, row.published), "simulated": _rounded(asdict(row.simulated))}
            for case in report.cases
            for row in case.rows
            if row.simulated
        ],
        "reasons": [
            {"case": list(key), "variant": variant, **asdict(found)} for (key, variant), found in report.reasons.items()
        ],
    }


def _stored(study: Study, stored: Mapping[str, Any]) -> StudyReport:
    rows = {tuple(one["row"]): _simulated(one["simulated"]) for one in stored["rows"]}
    used = set()

    def simulated(case: Case, published: Sequence[Published]) -> list[Simulated | None]:
        keys = [tuple(_key(case, row)) for row in published]
        used.update(keys)
        return [rows.get(key) for key in keys]

    report = report_of(study, simulated, _reasons(stored["reasons"]))
    if gone := [key for key in rows if key not in used]:
        raise ValueError(f"{study.name} has no such row: {', '.join(str(part) for part in gone[0] if part)}")
    return report


def _reasons(stored: Sequence[Mapping[str, Any]]) -> dict[tuple[tuple[str, str, str], str], Reason]:
    found = {}
    for one in stored:
        experiment, workload, case = one["case"]
        text = {key: value for key, value in one.items() if key not in ("case", "variant")}
        found[(experiment, workload, case), one["variant"]] = Reason(**text)
    return found


def _key(case: Case, row: Published) -> list[str]:
    return [*case.key, case.alternative or "", row.case, row.metric, row.variant]


def _simulated(stored: Mapping[str, Any]) -> Simulated:
    spread = stored["spread"]
    if spread is not None:
        change = spread["change"] and Interval(**spread["change"])
        spread = SpreadBetweenUnits(spread["a_pct"], spread["b_pct"], change)
    return Simulated(**{**stored, "spread": spread})


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return value
