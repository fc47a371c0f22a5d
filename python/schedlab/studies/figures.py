"""Reads published figures and decides how large the change of each row is, and how much of it may be noise."""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.errors import InputError
from schedlab.studies.study import Case, Study

COLUMNS = ("experiment", "workload", "case", "metric", "unit", "better", "variant", "rep", "value", "spread")
USUAL_NOISE_PCT = 5.0
PERCENTILE_NOISE_PCT = 10.0
_PERCENTILE = re.compile(r"(^|_)(p[0-9]|max$|min$)")
_DIRECTIONS = ("better", "worse")


Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed figure."""

    experiment: str
    workload: str
    case: str
    metric: str
    unit: str
    better: str
    variant: str
    rep: int
    value: str
    spread: str
    line: int

    @property
    def key(self) -> Key:
        """What a row is found by."""
        return self.experiment, self.workload, self.case, self.metric, self.variant


Figures = dict[Key, list[Figure]]


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a study: a variant against the baseline in one metric of one case."""

    experiment: str
    workload: str
    case: str
    metric: str
    unit: str
    better: str
    baseline: str
    variant: str
    a: float | None
    """The baseline's value; None where only a change was published."""
    b: float | None
    change_pct: float | None
    """None where only a direction was published."""
    sign: int
    noise_pct: float
    noise_from: str
    spread_a_pct: float | None = None
    """Standard deviation of the baseline in percent of its value, printed or computed from its repeats."""
    spread_b_pct: float | None = None

    @property
    def counted(self) -> bool:
        """Whether the change is larger than its noise."""
        return self.sign != 0 and (self.change_pct is None or abs(self.change_pct) > self.noise_pct)

    @property
    def label(self) -> str:
        """The row's name within its experiment."""
        return f"{self.workload}, {self.case}" if self.case else self.workload


def read(text: str, file: str) -> list[Figure]:
    """The lines of a CSV file of figures."""
    lines = csv.DictReader(io.StringIO(text), strict=True)
    try:
        if tuple(lines.fieldnames or ()) != COLUMNS:
            raise InputError("not a table of figures", file=file, line=1, hint=f"its columns are {','.join(COLUMNS)}")
        figures = [_figure(row, file, lines.line_num) for row in lines]
    except csv.Error as e:
        raise InputError(f"not a CSV table: {e}", file=file, line=lines.line_num) from None
    seen: dict[tuple[object, ...], int] = {}
    for figure in figures:
        key = (*figure.key, figure.rep)
        if key in seen:
            raise InputError(f"duplicate of the figure in line {seen[key]}", file=file, line=figure.line)
        seen[key] = figure.line
    return figures


def published(study: Study) -> dict[tuple[str, str, str], list[Published]]:
    """The rows of every case of a study; a figure that no row uses is an error."""
    figures = read(study.figures, study.figures_file)
    by_key: Figures = {}
    for figure in figures:
        by_key.setdefault(figure.key, []).append(figure)
    rows, used = dict[tuple[str, str, str], list[Published]](), set[Key]()
    for case in study.cases:
        if case.alternative is None:
            own = _rows(study, case, by_key)
            rows[case.key] = [row for row, _ in own]
            used |= {key for _, keys in own for key in keys}
    unused = [f for f in figures if f.key not in used]
    if unused and not study.short:
        words = ", ".join(part for part in unused[0].key if part)
        text = f"no case of the study has this figure: {words}"
        raise InputError(text, file=study.figures_file, line=unused[0].line, hint=f"the cases are in {study.file}")
    return rows


def _rows(study: Study, case: Case, figures: Figures) -> list[tuple[Published, set[Key]]]:
    names = study.experiment(case.experiment).variants
    rows = []
    for measure in case.measures:
        for name in names[1:]:
            keys = [_key(study, case, measure.published, n) for n in (names[0], name)]
            a, b = (figures.get(key, []) for key in keys)
            if b:
                rows.append((_row(study, names[0], name, a, b), {keys[0], keys[1]}))
    if not rows:
        text = f"no figure for the case {case.label}"
        raise InputError(text, file=study.figures_file, hint=f"the case is in {study.file}")
    return rows


def _key(study: Study, case: Case, metric: str, name: str) -> Key:
    variant = study.variant(name)
    label = variant.case if variant.case is not None else case.case
    return case.experiment, case.workload, label, metric, variant.published


def _row(study: Study, baseline: str, name: str, a: Sequence[Figure], b: Sequence[Figure]) -> Published:
    first = b[0]
    values: tuple[float | None, float | None] = (None, None)
    if first.unit == "direction":
        change, noise, source = None, 0.0, "direction"
        sign = _direction(first)
    elif first.unit == "delta_pct":
        change = _number(first.value, first, study)
        noise, source = _noise_of_change(first, study)
        sign = _sign(change)
    elif first.unit == "delta_pct_range":
        low, high = _number(first.value, first, study), _number(first.spread, first, study)
        change, noise, source = (low + high) / 2, abs(high - low) / 2, "range"
        sign = _sign(change)
    else:
        if not a:
            text = f"no figure of the baseline ({study.variant(baseline).published})"
            raise InputError(text, file=study.figures_file, line=first.line)
        values = _mean(a, study), _mean(b, study)
        if values[0] == 0:
            raise InputError("the baseline is 0, so the change has no size", file=study.figures_file, line=a[0].line)
        change = 100 * (values[1] / values[0] - 1)
        noise, source = _noise(a, b, values[0], study)
        sign = _sign(change)
    return Published(
        experiment=first.experiment,
        workload=first.workload,
        case=first.case,
        metric=first.metric,
        unit=first.unit,
        better=first.better,
        baseline=baseline,
        variant=name,
        a=values[0],
        b=values[1],
        change_pct=change,
        sign=sign,
        noise_pct=noise,
        noise_from=source,
        **dict(zip(("spread_a_pct", "spread_b_pct"), _spreads(a, b, study), strict=True)),
    )


def _spreads(a: Sequence[Figure], b: Sequence[Figure], study: Study) -> tuple[float | None, float | None]:
    """The standard deviations of both sides in percent; None where only bounds or nothing was published."""
    if b[0].unit == "delta_pct":
        parts = [part.strip() for part in b[0].spread.split(";")]
        if len(parts) == 2 and all(parts) and not any(part.startswith("<") for part in parts):
            first, second = (_number(part.rstrip("%"), b[0], study) for part in parts)
            return first, second
        return None, None
    if b[0].unit.startswith("d"):
        return None, None
    return _own_spread(a, study), _own_spread(b, study)


def _own_spread(figures: Sequence[Figure], study: Study) -> float | None:
    mean = abs(_mean(figures, study))
    if not mean or figures[0].spread.startswith("<"):
        return None
    if figures[0].spread:
        return 100 * _spread(figures[0], study) / mean
    if len(figures) > 1:
        return 100 * statistics.stdev(_number(f.value, f, study) for f in figures) / mean
    return None


def _noise(a: Sequence[Figure], b: Sequence[Figure], base: float, study: Study) -> tuple[float, str]:
    """In percent of the baseline: the printed spreads, else those of the repeats, else the usual."""
    if any(f.spread for f in (*a, *b)):
        spreads = [_spread(f, study) for f in (a[0], b[0])]
        return 100 * math.hypot(*spreads) / abs(base), "spread"
    if len(a) > 1 and len(b) > 1:
        deviations = [statistics.stdev(_number(f.value, f, study) for f in figures) for figures in (a, b)]
        return 100 * math.hypot(*deviations) / abs(base), "repeats"
    return _usual(a[0].metric)


def _noise_of_change(figure: Figure, study: Study) -> tuple[float, str]:
    """Of a published change: its spreads are in percent already."""
    if not figure.spread:
        return _usual(figure.metric)
    parts = [_number(part.strip().lstrip("<").rstrip("%"), figure, study) for part in figure.spread.split(";")]
    return math.hypot(*parts), "spread"


def _usual(metric: str) -> tuple[float, str]:
    noise = PERCENTILE_NOISE_PCT if _PERCENTILE.search(metric) else USUAL_NOISE_PCT
    return noise, f"{noise:g}%"


def _spread(figure: Figure, study: Study) -> float:
    """A standard deviation in the figure's own unit."""
    if not figure.spread:
        return 0.0
    if figure.spread.endswith("%"):
        percent = _number(figure.spread.lstrip("<").rstrip("%"), figure, study)
        return abs(_number(figure.value, figure, study)) * percent / 100
    return _number(figure.spread, figure, study)


def _mean(figures: Sequence[Figure], study: Study) -> float:
    return statistics.fmean(_number(f.value, f, study) for f in figures)


def _direction(figure: Figure) -> int:
    """`worse` of a metric that should be low is a rise."""
    rises_is_better = figure.better == "higher"
    return 1 if (figure.value == "better") == rises_is_better else -1


def _sign(change: float) -> int:
    return (change > 0) - (change < 0)


def _number(text: str, figure: Figure, study: Study) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"`{text}` is not a number", file=study.figures_file, line=figure.line)
    return value


def _figure(row: dict[str | None, str | None], file: str, line: int) -> Figure:
    if None in row or None in row.values():
        raise InputError(f"a line has {len(COLUMNS)} columns", file=file, line=line)
    cells = {str(k): str(v).strip() for k, v in row.items()}
    if not cells["rep"].isdigit() or cells["rep"] == "0":
        raise InputError(
            f"`{cells['rep']}` is not the number of a repeat", file=file, line=line, hint="they count from 1"
        )
    if cells["better"] not in ("lower", "higher", ""):
        text = f"`{cells['better']}` is no direction"
        raise InputError(text, file=file, line=line, hint="write lower, higher or nothing")
    if cells["unit"] == "direction" and (cells["value"] not in _DIRECTIONS or not cells["better"]):
        text = "a direction is `better` or `worse`, of a metric whose column `better` says which is which"
        raise InputError(text, file=file, line=line)
    rep = int(cells.pop("rep"))
    return Figure(rep=rep, line=line, **cells)
