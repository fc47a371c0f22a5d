"""Studies as text and as a JSON document: published and simulated side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from schedlab.engine import ARMS
from schedlab.render.grid import NOTHING, columns, percent, value
from schedlab.render.table import plural
from schedlab.studies.report import CaseRows, Report, StudyReport
from schedlab.studies.score import Row, Score

SCHEMA = "schedlab.reproduce/1"
WIDTH = 120
SHORT_FORM = "short form: it shows that the study runs, and says nothing about agreement"


def text(report: Report) -> str:
    """Every study, then the sum."""
    blocks = [study_text(study) for study in report.studies]
    if len(report.studies) > 1:
        blocks.append("\n".join(columns(score_table(report.scores()), "<>>>>>>>>>>")))
    if report.unfit:
        labels = [f"  {task.label}" for task in report.unfit]
        blocks.append("\n".join([f"did not fit into the time: {plural(len(labels), 'case')}", *labels]))
    return "\n\n".join(blocks)


def study_text(report: StudyReport) -> str:
    """One study: conditions, rows, score, disagreements."""
    study = report.study
    head = f"{study.name}: {study.summary}"
    where = f"{ARMS['sim']} {report.machine}, {plural(study.units, 'unit')}" if report.machine else "nothing is simulated"
    blocks = [
        "\n".join([*textwrap.wrap(head, WIDTH), where, *([SHORT_FORM] if study.short else [])]),
        "\n".join(_conditions(report)),
    ]
    own = [case for case in report.cases if case.case.alternative is None]
    counted = [(case, row) for case in own for row in case.rows if row.counted]
    inside = [(case, row) for case in own for row in case.rows if not row.counted]
    if counted:
        blocks.append("\n".join(columns(_table(report, counted), _ALIGN)))
    if inside:
        title = "inside the noise of the publication, not counted"
        blocks.append("\n".join([title, *columns(_table(report, inside), _ALIGN)]))
    other = [(case, row) for case in report.cases if case.case.alternative for row in case.rows if row.simulated]
    if other:
        title = "alternatives to what is assumed, not counted"
        blocks.append("\n".join([title, *columns(_table(report, other), _ALIGN)]))
    blocks.append("\n".join(score_lines(report.score)))
    if disagreements := _disagreements(report, counted):
        blocks.append("\n".join(["rows that disagree", *disagreements]))
    return "\n\n".join(blocks)


def _conditions(report: StudyReport) -> list[str]:
    lines = []
    for c in report.study.conditions:
        kind = f"stated: {c.source}" if c.source else f"assumed: {c.assumed}"
        lines += textwrap.wrap(f"{c.what}: {c.holds} ({kind})", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return ["conditions", *lines]


_HEAD = ["", "published", "", "change", "noise", "simulated", "", "change", "size", ""]
_ALIGN = "<>>>>>>>><"


def _table(report: StudyReport, rows: Sequence[tuple[CaseRows, Row]]) -> list[list[str]]:
    table = [_HEAD]
    for case, row in rows:
        p, s = row.published, row.simulated
        name = f"{case.case.label if case.case.alternative else p.label}: {p.metric}"
        pair = "" if p.unit.startswith(("delta", "direction")) or p.unit == "x" else f" {p.unit}".rstrip()
        noise = NOTHING if p.change_pct is None else f"{p.noise_pct:.3g}%"
        table.append(
            [
                f"{name}{pair if pair else ''} ({p.variant} against {p.baseline})",
                value(p.a),
                value(p.b),
                percent(p.change_pct) if p.change_pct is not None else ("up" if p.sign > 0 else "down"),
                noise,
                value(s.a) if s else NOTHING,
                value(s.b) if s else NOTHING,
                percent(s.change_pct) if s else NOTHING,
                ratio(row.size_ratio),
                outcome(row),
            ]
        )
    del report
    return table


def outcome(row: Row) -> str:
    """The verdict of a row."""
    if row.outcome == "missing":
        return f"missing: {row.missing}"
    return row.outcome


def ratio(x: float | None) -> str:
    """A ratio such as `0.42x`."""
    return NOTHING if x is None else f"{x:.2f}x" if x < 100 else f"{x:,.0f}x"


def score_lines(s: Score) -> list[str]:
    """The score in words."""
    parts = [
        (s.wrong, "with the wrong sign"),
        (s.unchanged, "without a change"),
        (s.missing, "missing"),
        (s.not_run, "not run"),
    ]
    missed = ", ".join(f"{n} {words}" for n, words in parts if n)
    share = "" if s.agreement is None else f" ({100 * s.agreement:.0f}%)"
    lines = [
        f"sign agreement: {s.agreed} of {plural(s.counted, 'row')} beyond noise{share}"
        + (f"; {missed}" if missed else ""),
        f"inside noise: {plural(s.inside_noise, 'row')}",
    ]
    if s.agreed:
        lines.append(f"of those that agree, {s.certain} have a 95% interval that leaves out 0")
    rank = NOTHING if s.rank is None else f"{s.rank:+.2f}"
    lines.append(f"rank correlation of the changes: {rank} over {plural(s.ranked, 'row')}")
    lines.append(f"median size ratio: {ratio(s.size)}; within a factor of 2: {s.close_sizes} of {s.sized}")
    lines.append(f"absolute times: median {ratio(s.absolute)}; within a factor of 3: {s.close_absolutes} of {s.absolutes}")
    return lines


def _disagreements(report: StudyReport, counted: Sequence[tuple[CaseRows, Row]]) -> list[str]:
    """Each reason once, with the rows that it stands for."""
    groups: dict[str, list[str]] = {}
    for case, row in counted:
        if row.outcome in ("wrong sign", "no change"):
            name = f"{row.published.label}: {row.published.metric}"
            groups.setdefault(report.why(case, row), []).append(name)
    lines = []
    for why, names in groups.items():
        rows = ", ".join(dict.fromkeys(names))
        lines += textwrap.wrap(f"{rows}: {why}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


SCORE_HEAD = [
    "study", "rows beyond noise", "sign agrees", "wrong", "no change", "missing", "not run", "rank", "size", "absolute",
    "inside noise",
]  # fmt: skip


def score_table(scores: Mapping[str, Score]) -> list[list[str]]:
    """A line per study."""
    table = [SCORE_HEAD]
    for name, s in scores.items():
        agreement = NOTHING if s.agreement is None else f"{s.agreed} ({100 * s.agreement:.0f}%)"
        rank = NOTHING if s.rank is None else f"{s.rank:+.2f}"
        counts = [str(n) for n in (s.wrong, s.unchanged, s.missing, s.not_run)]
        tail = [rank, ratio(s.size), ratio(s.absolute), str(s.inside_noise)]
        table.append([name, str(s.counted), agreement, *counts, *tail])
    return table


def document(report: Report) -> dict[str, Any]:
    """Everything, with plain rows."""
    return {
        "schema": SCHEMA,
        "arm_word": ARMS["sim"],
        "interrupted": report.interrupted,
        "did_not_fit": [task.label for task in report.unfit],
        "scores": {name: _score(s) for name, s in report.scores().items()},
        "studies": [_study(study) for study in report.studies],
    }


def _score(s: Score) -> dict[str, Any]:
    return {**asdict(s), "agreement": s.agreement}


def _study(report: StudyReport) -> dict[str, Any]:
    study = report.study
    return {
        "name": study.name,
        "summary": study.summary,
        "source": study.source,
        "short": study.short,
        "units": study.units,
        "machine": report.machine,
        "conditions": [asdict(c) for c in study.conditions],
        "score": _score(report.score),
        "rows": [_row(report, case, row) for case in report.cases for row in case.rows],
    }


def _row(report: StudyReport, case: CaseRows, row: Row) -> dict[str, Any]:
    return {
        **asdict(row.published),
        "counted": row.counted,
        "alternative": row.alternative,
        "simulated": asdict(row.simulated) if row.simulated else None,
        "missing": row.missing,
        "outcome": row.outcome,
        "size_ratio": row.size_ratio,
        "absolute_ratios": row.absolute_ratios,
        "why": report.why(case, row) or None,
    }
