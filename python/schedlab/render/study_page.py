"""Studies as a page, Markdown or HTML: the scores, the misses by mechanism, the history, then every row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from schedlab.render.blocks import Block, Chart, Heading, Items, Paragraph, Table
from schedlab.render.cells import plural
from schedlab.render.charts import Spec
from schedlab.render.grid import NOTHING, percent, value
from schedlab.render.study import (
    ALTERNATIVES,
    INSIDE,
    SPREADS,
    alternative_rows,
    alternative_table,
    counted_rows,
    fewer,
    inside_rows,
    ratio,
    score_lines,
    score_table,
    spread_table,
    verdict,
)
from schedlab.render.study_charts import dumbbells, scatter
from schedlab.studies.history import Entry
from schedlab.studies.report import CaseRows, Report, StudyReport
from schedlab.studies.results import Origin, Origins
from schedlab.studies.score import Row

INTRODUCTION = (
    "Every figure on this page is simulated or published; nothing was measured for it. A row counts if its published "
    "change is larger than its own noise. Rows that cannot be simulated yet count as missed. "
    "[conditions.md](conditions.md) says which conditions hold and how a row is judged, [format.md](format.md) what a "
    "study file can say."
)


def page(report: Report, entries: Sequence[Entry], origins: Origins, *, stored: bool = True) -> list[Block]:
    """The whole page; `stored`: `--stored` can render it again."""
    parts: list[Block] = [
        Heading(1, "Published studies, reproduced"),
        Paragraph(summary(report, origins)),
        Paragraph(INTRODUCTION),
        *_origins(origins, stored=stored),
        Heading(2, "Misses, by what is missing"),
        Table(_misses(report)),
        Heading(2, "Scores"),
        Table(score_table(report.scores())),
        *_chart("scatter", scatter(report)),
    ]
    if report.unfit:
        parts += [Heading(2, "What did not fit into the time"), Items(report.unfit)]
    if entries:
        text = "Rows beyond noise whose sign agrees, as recorded after each mechanism landed."
        parts += [Heading(2, "History"), Paragraph(text), Table(_history(entries))]
    for study in report.studies:
        parts += _study(study)
    return parts


def _chart(name: str, spec: Spec | None) -> list[Block]:
    return [] if spec is None else [Chart(name, spec)]


def summary(report: Report, origins: Origins) -> str:
    """The short form for the README, misses first."""
    total = report.total()
    missed = {"cannot be simulated yet": total.missing, "have the wrong sign": total.wrong,
              "do not change in the simulation": total.unchanged, "were not run": total.not_run}  # fmt: skip
    singular = {"have": "has", "do": "does", "were": "was"}
    words = ", ".join(f"{n} {_agreeing(what, singular) if n == 1 else what}" for what, n in missed.items() if n)
    share = 0.0 if total.agreement is None else 100 * total.agreement
    rank = NOTHING if total.rank is None else f"{total.rank:+.2f}"
    return (
        f"Of {total.counted} published changes beyond their own noise, {words}; the sign agrees for {total.agreed} "
        f"({share:.0f}%). Over the {total.ranked} simulated rows with a published size the rank correlation of the "
        f"changes is {rank} and the median size ratio {ratio(total.size)}; {total.close_absolutes} of "
        f"{total.absolutes} absolute times lie within a factor of 3 ({_when(origins.values())})."
    )


def _agreeing(words: str, singular: Mapping[str, str]) -> str:
    """The words for one row."""
    verb, _, rest = words.partition(" ")
    return f"{singular.get(verb, verb)} {rest}"


def _when(origins: Collection[Origin]) -> str:
    """How many units, and the days on which they were recorded, the first and the last."""
    units = sorted({origin.units for origin in origins})
    dates = sorted({origin.date for origin in origins})
    count = plural(units[0], "unit") if len(units) == 1 else f"{units[0]} to {units[-1]} units"
    return f"{count}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}"


def _origins(origins: Origins, *, stored: bool) -> list[Block]:
    """How the results were made; studies that were recorded together share a line."""
    groups: dict[Origin, list[str]] = {}
    seconds: dict[Origin, float] = {}
    for name, origin in origins.items():
        together = replace(origin, seconds=0)
        groups.setdefault(together, []).append(name)
        seconds[together] = seconds.get(together, 0) + origin.seconds
    rendered = (
        "`schedlab reproduce --stored --page docs/studies/README.md` renders this page from `results.json`, "
        "`history.json` and the study files; nothing in it is edited by hand."
    )
    if not stored:
        rendered = "These results are not recorded; `--record NAME` keeps results."
    done = "Recorded" if stored else "Run"
    lines = [_origin(origin, seconds[origin]) for origin in groups]
    if len(groups) == 1:
        return [Paragraph(f"{done} {lines[0]} {rendered}")]
    named = [f"{done} {line} Studies: {', '.join(names)}." for names, line in zip(groups.values(), lines, strict=True)]
    return [*map(Paragraph, named), Paragraph(rendered)]


def _origin(origin: Origin, seconds: float) -> str:
    note = f" {origin.note}" if origin.note else ""
    return (
        f"on {origin.date} by `{origin.command}` with {plural(origin.units, 'unit')} per variant, engine "
        f"{origin.engine}; the runs took at most {plural(max(1, round(seconds / 60)), 'minute')} of one CPU.{note}"
    )


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


def _study(report: StudyReport) -> list[Block]:
    study = report.study
    where = (
        f"Simulated on {report.machine}, {plural(study.units, 'unit')}." if report.machine else "Nothing is simulated."
    )
    parts: list[Block] = [
        Heading(2, study.name),
        Paragraph(f"{study.summary[0].upper()}{study.summary[1:]}. {where}"),
        Items(score_lines(report.score)),
        Heading(3, f"{study.name}: conditions"),
        Items(
            [
                f"{c.what}: {c.holds} ({f'stated: {c.source}' if c.source else f'assumed: {c.assumed}'})"
                for c in study.conditions
            ]
        ),
    ]
    parts += _chart(f"changes-{study.name}", dumbbells(report))
    for title, rows in counted_rows(report):
        ordered = sorted(rows, key=lambda one: _ORDER[one[1].outcome])
        reasons: dict[str, int] = {}
        cells = [[*_cells(row)[:-1], _outcome(report, case, row, reasons)] for case, row in ordered]
        parts += [Heading(3, f"{study.name}: {title}"), Table([_HEAD, *cells])]
        if reasons:
            parts.append(Items([f"({number}) {reason}" for reason, number in reasons.items()]))
    if inside := inside_rows(report):
        cells = [_cells(row) for _, row in inside]
        parts += [Heading(3, f"{study.name}: {INSIDE}"), Table([_HEAD, *cells])]
    if other := alternative_rows(report):
        parts += [Heading(3, f"{study.name}: {ALTERNATIVES}"), Table(alternative_table(report, other))]
    if len(table := spread_table(report)) > 1:
        parts += [Heading(3, f"{study.name}: {SPREADS}"), Table(table)]
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


def _outcome(report: StudyReport, case: CaseRows, row: Row, reasons: dict[str, int]) -> str:
    """The outcome, and the number of its reason, which stands below the table; a new reason gets the next number."""
    why = report.why(case, row)
    outcome = row.outcome + fewer(case, row)
    return f"{outcome} ({reasons.setdefault(why, len(reasons) + 1)})" if why else outcome
