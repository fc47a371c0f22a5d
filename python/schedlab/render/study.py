"""Studies as text and as a JSON document: published and simulated side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from schedlab.engine import ARMS
from schedlab.render.cells import plural
from schedlab.render.grid import NOTHING, WIDTH, columns, percent, value
from schedlab.studies.report import CaseRows, Report, StudyReport
from schedlab.studies.score import SMALLEST_CHANGE_PCT, Row, Score

SCHEMA = "schedlab.reproduce/1"
SHORT_FORM = "short form: it shows that the study runs, and says nothing about agreement"
Rows = Sequence[tuple[CaseRows, Row]]


def text(report: Report) -> str:
    """Every study, then the total."""
    blocks = [study_text(study) for study in report.studies]
    if len(report.studies) > 1:
        blocks.append("\n".join(columns(score_table(report.scores()), "<" + ">" * (len(SCORE_HEAD) - 1))))
    if report.unfit:
        labels = [f"  {label}" for label in report.unfit]
        blocks.append("\n".join([f"did not fit into the time: {plural(len(labels), 'case')}", *labels]))
    return "\n\n".join(blocks)


def study_text(report: StudyReport) -> str:
    """One study: conditions, rows by experiment, score, reasons."""
    study = report.study
    units = plural(study.units, "unit")
    where = f"{ARMS['sim']} {report.machine}, {units}" if report.machine else "nothing of it can be simulated"
    head = textwrap.wrap(f"{study.name}: {study.summary}", WIDTH)
    blocks = [[*head, where, *([SHORT_FORM] if study.short else [])], conditions(report)]
    blocks += [[title, *columns(row_table(rows), _ALIGN)] for title, rows in counted_rows(report)]
    if inside := inside_rows(report):
        blocks.append([INSIDE, *columns(row_table(inside), _ALIGN)])
    if other := alternative_rows(report):
        blocks.append([ALTERNATIVES, *columns(alternative_table(report, other), "<<>>>><")])
    if len(table := spread_table(report)) > 1:
        blocks.append([SPREADS, *columns(table, "<<>>>>>>")])
    blocks.append(score_lines(report.score))
    if lines := disagreements(report):
        blocks.append(["rows that disagree", *lines])
    return "\n\n".join("\n".join(block) for block in blocks)


INSIDE = "not counted: the published change is inside its noise"
ALTERNATIVES = "not counted: alternatives to what is assumed"
SPREADS = "spread between runs, published as a standard deviation, simulated as a mean absolute deviation"


def counted_rows(report: StudyReport) -> Iterator[tuple[str, Rows]]:
    """The rows beyond noise of each experiment, under a title that says what is compared."""
    for experiment in report.study.experiments:
        rows = [(c, r) for c, r in _own(report) if c.case.experiment == experiment.name and r.counted]
        if rows:
            yield f"{experiment.name}, against {experiment.variants[0]}", rows


def inside_rows(report: StudyReport) -> Rows:
    """The rows whose published change is inside its noise."""
    return [(case, row) for case, row in _own(report) if not row.counted]


def alternative_rows(report: StudyReport) -> Rows:
    """What the alternatives gave."""
    return [(case, row) for case in report.cases if case.case.alternative for row in case.rows if row.simulated]


ALTERNATIVE_HEAD = ["", "variant", "published", "as assumed", "alternative", "units", ""]


def alternative_table(report: StudyReport, rows: Rows) -> list[list[str]]:
    """What each alternative changes: whether the simulated change keeps its sign, or was settled."""
    return [ALTERNATIVE_HEAD, *(_alternative_cells(report, case, row) for case, row in rows)]


def _alternative_cells(report: StudyReport, case: CaseRows, row: Row) -> list[str]:
    p, assumed = row.published, report.assumed(case, row)
    usual = assumed.simulated.change_pct if assumed and assumed.simulated else None
    other = row.simulated.change_pct if row.simulated else None
    return [
        f"{p.label} [{case.case.alternative}]: {p.metric}",
        p.variant,
        ("up" if p.sign > 0 else "down") if p.change_pct is None else percent(p.change_pct),
        percent(usual),
        percent(other),
        str(row.simulated.units if row.simulated else 0),
        _comparison(usual, other),
    ]


def _comparison(usual: float | None, other: float | None) -> str:
    if usual is None or other is None:
        return NOTHING
    signs = [0 if abs(x) < SMALLEST_CHANGE_PCT else 1 if x > 0 else -1 for x in (usual, other)]
    return "same sign" if signs[0] == signs[1] else "another sign"


SPREAD_HEAD = ["", "variant", "published", "", "simulated", "", "change", "95% interval"]


def spread_table(report: StudyReport) -> list[list[str]]:
    """How much the metrics vary from run to run, of rows that have both spreads, published and simulated."""
    cells = []
    for _, row in _own(report):
        p, s = row.published, row.simulated and row.simulated.spread
        if p.spread_a_pct is not None and p.spread_b_pct is not None and s:
            change = s.change
            cells.append(
                [
                    f"{p.label}: {p.metric}",
                    p.variant,
                    f"{p.spread_a_pct:.3g}%",
                    f"{p.spread_b_pct:.3g}%",
                    f"{s.a_pct:.3g}%",
                    f"{s.b_pct:.3g}%",
                    percent(change.estimate) if change else NOTHING,
                    f"{percent(change.low)} to {percent(change.high)}" if change else NOTHING,
                ]
            )
    return [SPREAD_HEAD, *cells]


def _own(report: StudyReport) -> Rows:
    return [(case, row) for case in report.cases if not case.case.alternative for row in case.rows]


def conditions(report: StudyReport) -> list[str]:
    """Each condition with its source, or the reason why it is assumed."""
    lines = ["conditions"]
    for c in report.study.conditions:
        kind = f"stated: {c.source}" if c.source else f"assumed: {c.assumed}"
        lines += textwrap.wrap(f"{c.what}: {c.holds} ({kind})", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


ROW_HEAD = ["", "variant", "published", "", "change", "noise", "simulated", "", "change", "size", ""]
_ALIGN = "<<>>>>>>>><"


def row_table(rows: Rows) -> list[list[str]]:
    """A line per row."""
    return [ROW_HEAD, *(row_cells(case, row) for case, row in rows)]


def row_cells(case: CaseRows, row: Row) -> list[str]:
    """One row, published beside simulated."""
    p, s = row.published, row.simulated
    name = f"{p.label} [{case.case.alternative}]" if case.case.alternative else p.label
    unit = "" if p.unit in ("x", "direction") or p.unit.startswith("delta") else f" {p.unit}"
    direction = "up" if p.sign > 0 else "down"
    return [
        f"{name}: {p.metric}{unit}",
        p.variant,
        value(p.a),
        value(p.b),
        direction if p.change_pct is None else percent(p.change_pct),
        NOTHING if p.change_pct is None else f"{p.noise_pct:.3g}%",
        value(s.a) if s else NOTHING,
        value(s.b) if s else NOTHING,
        percent(s.change_pct) if s else NOTHING,
        ratio(row.size_ratio) if row.published.counted else NOTHING,
        verdict(row) + fewer(case, row),
    ]


def fewer(case: CaseRows, row: Row) -> str:
    """Says so where not every unit has run."""
    units = row.simulated.units if row.simulated else 0
    return f" ({units} of {case.units} units)" if 0 < units < case.units else ""


def verdict(row: Row) -> str:
    """The outcome of a row; of one inside the noise, whether the simulated change is inside it too."""
    if row.outcome == "missing":
        return f"missing: {row.missing}"
    if row.published.counted or row.outcome == "not run":
        return row.outcome
    change = row.simulated.change_pct if row.simulated else None
    return "inside too" if change is not None and abs(change) <= row.published.noise_pct else "simulated beyond it"


def ratio(x: float | None) -> str:
    """A ratio such as `0.42x`."""
    if x is None:
        return NOTHING
    return f"{x:.2f}x" if x < 100 else f"{x:,.0f}x"


def score_lines(s: Score) -> list[str]:
    """The score in words."""
    misses = {
        "with the wrong sign": s.wrong,
        "without a change": s.unchanged,
        "missing": s.missing,
        "not run": s.not_run,
    }
    missed = ", ".join(f"{n} {words}" for words, n in misses.items() if n)
    share = "" if s.agreement is None else f" ({100 * s.agreement:.0f}%)"
    sign = f"sign agreement: {s.agreed} of {plural(s.counted, 'row')} beyond noise{share}"
    lines = [f"{sign}; {missed}" if missed else sign, f"inside noise: {plural(s.inside_noise, 'row')}"]
    if s.agreed and s.certain:
        verb = "has" if s.certain == 1 else "have"
        lines.append(f"of those that agree, {s.certain} {verb} a 95% interval that excludes 0")
    elif s.agreed:
        lines.append("none of those that agree has a 95% interval that excludes 0")
    if any(s.tiny):
        agreed, wrong = s.tiny
        lines.append(f"simulated changes below 1%: {agreed} of those that agree, {wrong} of those with the wrong sign")
    if s.sized:
        rank = NOTHING if s.rank is None else f"{s.rank:+.2f}"
        lines.append(f"rank correlation of the changes: {rank} over {plural(s.ranked, 'row')}")
        lines.append(f"median size ratio: {ratio(s.size)}; within a factor of 2: {s.close_sizes} of {s.sized}")
    if s.absolutes:
        close = f"within a factor of 3: {s.close_absolutes} of {s.absolutes}"
        lines.append(f"absolute times: median {ratio(s.absolute)}; {close}")
    return lines


def disagreements(report: StudyReport) -> list[str]:
    """Each reason once, with the rows that it stands for."""
    groups: dict[str, dict[str, list[str]]] = {}
    for case, row in _own(report):
        if row.counted and row.outcome in ("wrong sign", "no change"):
            of_case = groups.setdefault(report.why(case, row), {}).setdefault(row.published.label, [])
            of_case += [row.published.metric] * (row.published.metric not in of_case)
    lines = []
    for why, cases in groups.items():
        rows = "; ".join(f"{label}: {', '.join(metrics)}" for label, metrics in cases.items())
        lines += textwrap.wrap(why, WIDTH, initial_indent="  ", subsequent_indent="  ")
        lines += textwrap.wrap(rows, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return lines


SCORE_HEAD = [
    "study", "beyond noise", "sign agrees", "wrong", "no change", "missing", "not run", "rank", "size", "absolute",
    "inside noise",
]  # fmt: skip


def score_table(scores: Mapping[str, Score]) -> list[list[str]]:
    """A line per study."""
    return [SCORE_HEAD, *(_score_cells(name, s) for name, s in scores.items())]


def _score_cells(name: str, s: Score) -> list[str]:
    agreement = NOTHING if s.agreement is None else f"{s.agreed} ({100 * s.agreement:.0f}%)"
    rank = NOTHING if s.rank is None else f"{s.rank:+.2f}"
    counts = [str(n) for n in (s.wrong, s.unchanged, s.missing, s.not_run)]
    return [name, str(s.counted), agreement, *counts, rank, ratio(s.size), ratio(s.absolute), str(s.inside_noise)]


def document(report: Report) -> dict[str, Any]:
    """Everything, with plain rows."""
    return {
        "schema": SCHEMA,
        "arm_word": ARMS["sim"],
        "interrupted": report.interrupted,
        "did_not_fit": list(report.unfit),
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
