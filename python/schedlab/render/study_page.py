"""Studies as a Markdown page for the documentation: the scores, the misses by mechanism, the history, every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedlab.render.cells import plural
from schedlab.render.grid import NOTHING, percent, value
from schedlab.render.study import (
    INSIDE,
    counted_rows,
    fewer,
    inside_rows,
    ratio,
    score_lines,
    score_table,
    verdict,
)
from schedlab.studies.history import Entry
from schedlab.studies.report import CaseRows, Report, StudyReport
from schedlab.studies.score import Row

INTRODUCTION = """\
Every figure here is simulated or published; nothing was measured for this page. A row counts if its published change is
larger than its own noise. Rows that cannot be simulated yet count as missed. [conditions.md](conditions.md) says which
conditions hold and how a row is judged, [format.md](format.md) what a study file can say."""


def page(report: Report, entries: Sequence[Entry], command: str) -> str:
    """Markdown, whole."""
    parts = [
        "# Published studies, reproduced",
        f"Written by `{command}`.\n{INTRODUCTION}",
        _markdown(score_table(report.scores())),
        "## Misses, by what is missing",
        _markdown(_misses(report)),
    ]
    if report.unfit:
        names = [f"- {task.label}" for task in report.unfit]
        parts += ["## What did not fit into the time", "\n".join(names)]
    if entries:
        parts += [
            "## History",
            "Rows beyond noise whose sign agrees, as recorded after each mechanism landed.",
            _markdown(_history(entries)),
        ]
    for study in report.studies:
        parts += _study(study)
    return "\n\n".join(parts) + "\n"


def _misses(report: Report) -> list[list[str]]:
    """Each mechanism with the number of counted rows that miss it, most rows first."""
    groups: dict[str, dict[str, int]] = {}
    for study in report.studies:
        for row in study.rows:
            if row.counted and row.outcome != "agrees":
                of = groups.setdefault(study.mechanism(row), {})
                of[study.study.name] = of.get(study.study.name, 0) + 1
    table = [["what the model lacks", "rows beyond noise", "studies"]]
    for mechanism, studies in sorted(groups.items(), key=lambda item: -sum(item[1].values())):
        names = ", ".join(f"{name} ({n})" for name, n in studies.items())
        table.append([mechanism, str(sum(studies.values())), names])
    return table


def _history(entries: Sequence[Entry]) -> list[list[str]]:
    names = list(dict.fromkeys(study for entry in entries for study in entry.scores))
    names.sort(key=lambda name: name == "all")
    head = ["study", *(f"{entry.name} ({entry.date}, {plural(entry.units, 'unit')})" for entry in entries)]
    return [head, *([name, *(_recorded(entry.scores.get(name)) for entry in entries)] for name in names)]


def _recorded(score: Mapping[str, object] | None) -> str:
    if score is None:
        return NOTHING
    rank = score["rank"]
    shown = f"{score['agreed']} of {score['counted']}"
    return f"{shown}, rank {rank:+.2f}" if isinstance(rank, float) else shown


_HEAD = ["row", "variant", "published", "change", "noise", "simulated", "change", "size", "outcome"]


def _study(report: StudyReport) -> list[str]:
    study = report.study
    where = (
        f"Simulated on {report.machine}, {plural(study.units, 'unit')}." if report.machine else "Nothing is simulated."
    )
    parts = [
        f"## {study.name}",
        f"{study.summary[0].upper()}{study.summary[1:]}. {where}",
        _list(score_lines(report.score)),
    ]
    kinds = [
        (f"{c.what}: {c.holds}", f"stated: {c.source}" if c.source else f"assumed: {c.assumed}")
        for c in study.conditions
    ]
    parts.append(_list([f"{what} ({why})" for what, why in kinds]))
    for title, rows in counted_rows(report):
        ordered = sorted(rows, key=lambda one: _ORDER[one[1].outcome])
        table = [[*_HEAD], *([*_cells(row)[:-1], _outcome(report, case, row)] for case, row in ordered)]
        parts += [f"### {title}", _markdown(table)]
    inside = inside_rows(report)
    if inside:
        parts += [f"### {INSIDE}", _markdown([[*_HEAD], *(_cells(row) for _, row in inside)])]
    return parts


_ORDER = {"wrong sign": 0, "no change": 1, "not run": 2, "missing": 3, "agrees": 4}


def _cells(row: Row) -> list[str]:
    p, s = row.published, row.simulated
    pair = NOTHING if p.a is None else f"{value(p.a)}, {value(p.b)} {p.unit}"
    direction = "up" if p.sign > 0 else "down"
    return [
        f"{p.label}: {p.metric}",
        p.variant,
        pair,
        direction if p.change_pct is None else percent(p.change_pct),
        NOTHING if p.change_pct is None else f"{p.noise_pct:.3g}%",
        f"{value(s.a)}, {value(s.b)}" if s else NOTHING,
        percent(s.change_pct) if s else NOTHING,
        ratio(row.size_ratio) if p.counted else NOTHING,
        verdict(row),
    ]


def _outcome(report: StudyReport, case: CaseRows, row: Row) -> str:
    why = report.why(case, row)
    outcome = row.outcome + fewer(case, row)
    return why if row.outcome == "missing" else f"{outcome}: {why}" if why else outcome


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _markdown(table: Sequence[Sequence[str]]) -> str:
    head, *rest = table
    rows = [[cell.replace("|", "\\|") for cell in cells] for cells in (head, ["---"] * len(head), *rest)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
