"""Published figures and how simulated ones are judged against them: noise, signs, sizes, ranks, by known answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_engine
from schedlab.engine import native_engine
from schedlab.errors import InputError
from schedlab.outcome import Run
from schedlab.render.blocks import markdown
from schedlab.render.study_page import page, summary
from schedlab.scenario import Scenario
from schedlab.studies import history, results
from schedlab.studies.figures import COLUMNS, Published, published, read
from schedlab.studies.report import Report, report_of
from schedlab.studies.score import Row, Simulated, rank_correlation, rows_of, score, simulated
from schedlab.studies.study import Case, Experiment, Gap, Measure, Study, Variant

HEAD = ",".join(COLUMNS)
ROOT = Path(__file__).parents[2]


def study(figures: str, metric: str = "time", **changes: object) -> Study:
    """One experiment `e` with the workload `w`: variant b against a."""
    scenario = Scenario.from_description(fake_engine.describe(seeds=[1, 2, 3, 4, 5, 6]))
    measure = Measure(metric, "load.rate", None, "us", None)
    whole = Study(
        name="toy",
        summary="a toy",
        source="a test",
        file="toy.toml",
        short=False,
        units=6,
        conditions=(),
        variants=(Variant("cfs", "A", None, "6.1", None), Variant("eevdf", "B", None, "6.6", None)),
        experiments=(Experiment("e", ("cfs", "eevdf")),),
        cases=(Case("e", "w", "", None, None, (measure,), scenario),),
        gaps=(),
        figures_file="toy.csv",
        figures=f"{HEAD}\n{figures}",
    )
    return replace(whole, **changes)


def row_of(figures: str, metric: str = "time") -> Published:
    (rows,) = published(study(figures, metric)).values()
    (row,) = rows
    return row


NOISE = [
    # what is printed, change, noise, where the noise is from, whether it counts
    ("absolute spreads", "e,w,,time,s,lower,A,1,100,3\ne,w,,time,s,lower,B,1,110,4\n", 10.0, 5.0, "spread", True),
    (
        "spreads in percent",
        "e,w,,time,s,lower,A,1,200,3%\ne,w,,time,s,lower,B,1,100,4%\n",
        -50.0,
        3.605551,
        "spread",
        True,
    ),
    ("one spread", "e,w,,time,s,lower,A,1,100,4\ne,w,,time,s,lower,B,1,103,\n", 3.0, 4.0, "spread", False),
    (
        "repeats",
        "e,w,,time,s,lower,A,1,99,\ne,w,,time,s,lower,A,2,101,\ne,w,,time,s,lower,B,1,109,\ne,w,,time,s,lower,B,2,111,\n",
        10.0,
        2.0,
        "repeats",
        True,
    ),
    ("neither", "e,w,,time,s,lower,A,1,100,\ne,w,,time,s,lower,B,1,104,\n", 4.0, 5.0, "5%", False),
    ("a change with spreads", "e,w,,time,delta_pct,lower,B,1,-81.2,3%;4%\n", -81.2, 5.0, "spread", True),
    ("a change with small spreads", "e,w,,time,delta_pct,lower,B,1,+2,<2%;<2%\n", 2.0, 2.828427, "spread", False),
    ("a change alone", "e,w,,time,delta_pct,lower,B,1,-6,\n", -6.0, 5.0, "5%", True),
    ("a range", "e,w,,time,delta_pct_range,lower,B,1,400,550\n", 475.0, 75.0, "range", True),
    ("a range around 0", "e,w,,time,delta_pct_range,lower,B,1,-1,3\n", 1.0, 2.0, "range", False),
    ("no change", "e,w,,time,s,lower,A,1,7,\ne,w,,time,s,lower,B,1,7,\n", 0.0, 5.0, "5%", False),
]


@pytest.mark.parametrize(
    ("figures", "change", "noise", "source", "counted"), [c[1:] for c in NOISE], ids=[c[0] for c in NOISE]
)
def test_noise(figures: str, change: float, noise: float, source: str, counted: bool) -> None:
    row = row_of(figures)
    assert row.change_pct == pytest.approx(change)
    assert row.noise_pct == pytest.approx(noise, rel=1e-6)
    assert (row.noise_from, row.counted) == (source, counted)
    assert row.sign == (change > 0) - (change < 0)


@pytest.mark.parametrize("metric", ["wakeup_p50", "wakeup_p99.9", "p95", "latency_max", "latency_min"])
def test_percentiles_have_twice_the_usual_noise(metric: str) -> None:
    row = row_of(f"e,w,,{metric},us,lower,A,1,100,\ne,w,,{metric},us,lower,B,1,108,\n", metric)
    assert (row.noise_pct, row.counted) == (10.0, False)


@pytest.mark.parametrize(("better", "said", "sign"), [
    ("lower", "worse", 1), ("lower", "better", -1), ("higher", "worse", -1), ("higher", "better", 1),
])  # fmt: skip
def test_a_direction_has_a_sign_and_no_size(better: str, said: str, sign: int) -> None:
    row = row_of(f"e,w,,time,direction,{better},B,1,{said},\n")
    assert (row.sign, row.change_pct, row.counted) == (sign, None, True)


BAD_FIGURES = [
    ("a,b\n", 1, "not a table of figures"),
    (f"{HEAD}\ne,w,,time,s,lower,A,1,100\n", 2, "a line has 10 columns"),
    (f"{HEAD}\ne,w,,time,s,lower,A,0,100,\n", 2, "`0` is not the number of a repeat"),
    (f"{HEAD}\ne,w,,time,s,low,A,1,100,\n", 2, "`low` is no direction"),
    (f"{HEAD}\ne,w,,time,direction,,A,1,worse,\n", 2, "a direction is `better` or `worse`"),
    (f"{HEAD}\ne,w,,time,s,lower,A,1,1,\ne,w,,time,s,lower,A,1,2,\n", 3, "duplicate of the figure in line 2"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD_FIGURES)
def test_bad_figures_are_named_by_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(text, "toy.csv")
    assert (caught.value.file, caught.value.line) == ("toy.csv", line)


UNUSABLE = [
    ("e,w,,time,s,lower,B,1,100,\n", 2, "no figure of the baseline"),
    ("e,w,,time,s,lower,A,1,x,\ne,w,,time,s,lower,B,1,100,\n", 2, "`x` is not a number"),
    ("e,w,,time,s,lower,A,1,0,\ne,w,,time,s,lower,B,1,100,\n", 2, "the baseline is 0"),
    ("e,w,,time,s,lower,A,1,1,\ne,w,,time,s,lower,B,1,2,\ne,v,,time,s,lower,B,1,2,\n", 4, "no case of the study has"),
    ("e,w,,time,s,lower,A,1,1,nan\ne,w,,time,s,lower,B,1,2,\n", 2, "`nan` is not a number"),
    ("", None, "no figure for the case e, w"),
]


@pytest.mark.parametrize(("figures", "line", "message"), UNUSABLE)
def test_figures_that_do_not_fit_the_study(figures: str, line: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        published(study(figures))
    assert caught.value.line == line


def runs(a: list[float], b: list[float], metric: str = "load.rate") -> Mapping[tuple[str, int], Run]:
    found = {}
    for name, values in (("cfs", a), ("eevdf", b)):
        for seed, value in enumerate(values, 1):
            found[name, seed] = Run.from_record(fake_engine.record(name, seed, "6.1", {metric: value}))
    return found


def judged(figures: str, a: list[float], b: list[float], **changes: object) -> Row:
    own = study(figures, **changes)
    (case,) = own.cases
    (rows,) = published(own).values()
    (row,) = rows_of(own, case, rows, runs(a, b), range(1, len(a) + 1))
    return row


RISE = "e,w,,time,us,lower,A,1,100,\ne,w,,time,us,lower,B,1,120,\n"
FALL = "e,w,,time,us,lower,A,1,100,\ne,w,,time,us,lower,B,1,80,\n"
OUTCOMES = [
    # published, simulated baseline and variant, outcome, size ratio
    (RISE, [10.0] * 6, [11.0] * 6, "agrees", 0.5),
    (RISE, [10.0] * 6, [9.0] * 6, "wrong sign", 0.5),
    (RISE, [10.0] * 6, [10.0] * 6, "no change", 0.0),
    (RISE, [10.0] * 6, [10.004] * 6, "no change", 0.002),
    (RISE, [10.0] * 6, [10.006] * 6, "agrees", 0.003),
    (FALL, [10.0] * 6, [6.0] * 6, "agrees", 2.0),
    (FALL, [10.0] * 6, [15.0] * 6, "wrong sign", 2.5),
    (FALL, [], [], "not run", None),
]


@pytest.mark.parametrize(("figures", "a", "b", "outcome", "ratio"), OUTCOMES)
def test_outcomes(figures: str, a: list[float], b: list[float], outcome: str, ratio: float | None) -> None:
    row = judged(figures, a, b)
    assert (row.outcome, row.counted) == (outcome, True)
    assert row.size_ratio == (None if ratio is None else pytest.approx(ratio, abs=1e-9))


def test_nothing_on_both_sides_is_no_change() -> None:
    assert judged(RISE, [0.0, 0.0], [0.0, 0.0]).outcome == "no change"


def test_a_missing_row_counts_as_missed() -> None:
    own = study(RISE)
    (case,) = own.cases
    table = published(own)[case.key]
    for changed, missing in (
        (replace(case, missing="a workload", scenario=None), "a workload"),
        (replace(case, measures=(replace(case.measures[0], metric=None, missing="a metric"),)), "a metric"),
    ):
        (row,) = rows_of(own, changed, table, runs([1.0] * 6, [2.0] * 6), range(1, 7))
        assert (row.outcome, row.missing, row.counted) == ("missing", missing, True)
        assert (score([row]).agreed, score([row]).counted, score([row]).missing) == (0, 1, 1)


def test_a_missing_variant_leaves_the_baseline() -> None:
    own = study(RISE, variants=(Variant("cfs", "A", None, "6.1", None), Variant("eevdf", "B", None, None, "a feature")))
    (case,) = own.cases
    (row,) = rows_of(own, case, published(own)[case.key], runs([50.0] * 6, []), range(1, 7))
    assert (row.outcome, row.missing) == ("missing", "a feature")
    assert row.absolute_ratios == [0.5]


def test_times_are_compared_in_the_published_unit() -> None:
    figures = "e,w,,time,s,lower,A,1,2,\ne,w,,time,s,lower,B,1,4,\n"
    row = judged(figures, [1e6] * 6, [3e6] * 6)
    assert row.simulated is not None
    assert (row.simulated.a, row.simulated.b) == (1.0, 3.0)
    assert row.absolute_ratios == [0.5, 0.75]


def test_an_operation_rate_has_no_absolute_ratio() -> None:
    figures = "e,w,,time,lps,higher,A,1,2,\ne,w,,time,lps,higher,B,1,4,\n"
    assert judged(figures, [1.0] * 6, [3.0] * 6).absolute_ratios == []


def test_the_share_of_a_task() -> None:
    own = study(RISE)
    (case,) = own.cases
    case = replace(case, measures=(Measure("time", None, "child", "%", None),))
    found = {}
    for name, child in (("cfs", 50), ("eevdf", 25)):
        record = fake_engine.record(name, 1, "6.1", {})
        task = {"pid": 1, "wait_ns": 0, "switches": 0, "migrations": 0}
        record["tasks"] = [{**task, "name": n, "cpu_ns": ns} for n, ns in (("child", child), ("parent", 100 - child))]
        found[name, 1] = Run.from_record(record)
    (row,) = rows_of(own, case, published(own)[case.key], found, [1])
    assert row.simulated is not None
    assert (row.simulated.a, row.simulated.b) == (50.0, 25.0)
    assert row.simulated.change_pct == pytest.approx(-50)


def made(
    change: float, simulated: float | None, noise: float = 5.0, unit: str = "%", missing: str | None = None
) -> Row:
    sign = (change > 0) - (change < 0)
    p = Published("e", "w", "", "m", unit, "lower", "cfs", "eevdf", 100.0, 100 + change, change, sign, noise, "5%")
    if simulated is None:
        return Row(p, None, missing, "missing" if missing else "not run")
    outcome = "no change" if abs(simulated) < 0.05 else "agrees" if (simulated > 0) == (change > 0) else "wrong sign"
    return Row(p, Simulated(50.0, 50 + simulated / 2, simulated, simulated - 1, simulated + 1, 6), None, outcome)  # type: ignore[arg-type]


def test_a_score_of_known_rows() -> None:
    rows = [
        made(10, 20, unit="s"),  # agrees, size 2.0, absolute 0.5 and 0.5454
        made(-20, -5),  # agrees, size 0.25
        made(-40, 10),  # wrong sign, size 0.25
        made(50, 0),  # no change, size 0
        made(30, None, missing="a workload"),
        made(30, None),  # not run
        made(4, 100),  # inside the noise
        replace(made(60, 60), alternative="autogroup"),  # never counted
    ]
    s = score(rows)
    assert (s.rows, s.counted, s.inside_noise) == (7, 6, 1)
    assert (s.agreed, s.certain, s.wrong, s.unchanged, s.missing, s.not_run) == (2, 2, 1, 1, 1, 1)
    assert s.agreement == pytest.approx(2 / 6)
    # ranks: published 10, -20, -40, 50 -> 3, 2, 1, 4; simulated 20, -5, 10, 0 -> 4, 1, 3, 2
    assert s.rank == pytest.approx(1 - 6 * (1 + 1 + 4 + 4) / (4 * 15))
    assert (s.ranked, s.sized, s.size, s.close_sizes) == (4, 4, 0.25, 1)
    assert (s.absolutes, s.close_absolutes) == (2, 2)
    assert s.absolute == pytest.approx((0.5 + 60 / 110) / 2)


def test_a_score_of_nothing() -> None:
    s = score([])
    assert (s.rows, s.agreement, s.rank, s.size, s.absolute) == (0, None, None, None, None)


RANKS = [
    ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], 1.0),
    ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
    ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], 0.8),
    ([1.0, 2.0], [1.0, 2.0], None),
    ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], None),
    ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], None),
]


@pytest.mark.parametrize(("x", "y", "expected"), RANKS)
def test_rank_correlation(x: list[float], y: list[float], expected: float | None) -> None:
    assert rank_correlation(x, y) == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.tuples(st.floats(-300, 300), st.one_of(st.none(), st.floats(-90, 300))), max_size=12))
def test_every_row_is_in_exactly_one_count(pairs: list[tuple[float, float | None]]) -> None:
    rows = [made(change, simulated) for change, simulated in pairs]
    s = score(rows)
    assert s.rows == s.counted + s.inside_noise == len(pairs)
    assert s.counted == s.agreed + s.wrong + s.unchanged + s.missing + s.not_run
    assert s.certain <= s.agreed
    assert s.rank is None or -1 - 1e-9 <= s.rank <= 1 + 1e-9
    assert s.size is None or (s.size >= 0 and math.isfinite(s.size))


def test_the_first_gap_that_fits_counts() -> None:
    gaps = (
        Gap("e", "v", None, "one", "x", None),
        Gap("e", None, "p99", "two", "x", None),
        Gap("e", None, None, "three", None, "x"),
    )
    own = study(RISE, gaps=gaps)
    found = [own.gap("e", w, m) for w, m in (("v", "p99"), ("w", "p99"), ("w", "p50"))]
    assert [gap.mechanism if gap else None for gap in found] == ["one", "two", "three"]
    assert own.gap("f", "v", "p99") is None


def test_a_history_keeps_one_column_per_name(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    assert history.read(file) == []
    for name, seconds in (("first", 1.0), ("second", 2.0), ("first", 3.0)):
        history.append(file, history.entry(name, "engine", 6, {"all": score([])}, {"case": seconds}))
    assert [entry.name for entry in history.read(file)] == ["second", "first"]
    assert history.seconds(file) == {"case": 3.0}
    file.write_text("{}")
    with pytest.raises(InputError, match="not a history of studies"):
        history.read(file)


def test_studies_recorded_one_after_the_other_share_a_column(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    for study in ("one", "two"):
        history.append(file, history.entry("lines", "engine", 6, {study: score([]), "all": score([])}, {study: 1.0}))
    (entry,) = history.read(file)
    assert (sorted(entry.scores), entry.seconds) == (["all", "one", "two"], {"one": 1.0, "two": 1.0})
    history.check([entry], "lines", 6, {"three"})
    history.check([entry], "lines", 2, {"one", "two"})
    with pytest.raises(InputError, match="`lines` is recorded for two with --units 6, and these runs have 2"):
        history.check([entry], "lines", 2, {"one", "three"})


# The shipped studies.

SHIPPED = sorted(path.stem for path in (ROOT / "studies").glob("*.toml"))
FIGURES = {
    # rows, of which the published change is beyond its noise
    "arm64-vcpu-preempted": (12, 9),
    "powerpc-idle-hint": (8, 6),
    "idle-cpu-search": (14, 7),
    "preempt-auto-none": (22, 9),
    "eevdf-rfc-cyclictest": (9, 5),
    "eevdf-rfc-sleepers": (4, 4),
    "eevdf-intel": (38, 29),
    "eevdf-intel-log": (81, 72),
    "eevdf-meta-hhvm": (13, 13),
    "eevdf-power10": (85, 33),
    "eevdf-power10-load": (193, 97),
    "delay-dequeue-pipe": (11, 11),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_figure_of_a_shipped_study_has_its_row(name: str) -> None:
    own = native_engine().load_study(str(ROOT / "studies" / f"{name}.toml"))
    rows = [row for of_case in published(own).values() for row in of_case]
    assert (len(rows), sum(row.counted for row in rows)) == FIGURES[name]


USUAL = {
    # what a study may set for an assumed condition, on x86 and on POWER
    "autogroup": {"x86": True, "power": True},
    "preempt": {"power": "none"},
    "hz": {"x86": 250, "power": 100},
    "physics": {"x86": {"housekeeping": True}, "power": {"housekeeping": True}},
}


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_assumed_is_assumed_everywhere(name: str) -> None:
    import tomllib

    page = (ROOT / "docs" / "studies" / "conditions.md").read_text(encoding="utf-8")
    document = tomllib.loads((ROOT / "studies" / f"{name}.toml").read_text(encoding="utf-8"))
    for condition in document.get("condition", []):
        if "assumed" not in condition:
            continue
        what = condition["what"]
        assert f"| `{what}` |" in page
        for key, value in condition.get("set", {}).items():
            family = "power" if document["machine"].startswith("power") else "x86"
            assert value == USUAL[key][family], f"{what} of {name}"


def test_the_page_of_the_documentation_is_what_the_stored_results_render_to() -> None:
    load = native_engine().load_study
    report, origins = results.read(results.FILE, lambda name, units: load(name, units=units))
    assert [one.study.name for one in report.studies] == [str(row["id"]) for row in native_engine().listing("studies")]
    shown = markdown(page(report, history.read(history.FILE), origins))
    assert shown == (ROOT / "docs" / "studies" / "README.md").read_text(encoding="utf-8")
    limits = " ".join((ROOT / "docs" / "limits.md").read_text(encoding="utf-8").split())
    assert summary(report, origins) in limits


def test_the_table_of_the_limits_is_published_and_stored() -> None:
    load = native_engine().load_study
    report, _ = results.read(results.FILE, lambda name, units: load(name, units=units))
    found = next(one for one in report.studies if one.study.name == "eevdf-intel-log")
    rows = {(row.published.case, row.published.metric): row for row in found.rows if row.alternative is None}
    metrics = [*(f"wakeup_p{p}" for p in ("50", "90", "95", "99", "99.9")), "involuntary_switches"]
    lines = [
        line for line in (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").splitlines() if line.count("|") == 9
    ]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if "EEVDF," in line or "CFS," in line
    ]
    assert len(table) == 12
    for case, what, *cells in table:
        kernel, source = what.split(", ")
        for metric, cell in zip(metrics, cells, strict=True):
            row = rows[case, metric]
            values = row.published if source == "published" else row.simulated
            assert values is not None
            value = values.a if kernel == "CFS" else values.b
            assert value is not None
            shown = f"{value / 1e6:.2f}" if metric == "involuntary_switches" else f"{value:,.0f}"
            assert cell == shown, (case, what, metric)


def test_the_stored_results_have_their_columns_in_the_history() -> None:
    load = native_engine().load_study
    report, origins = results.read(results.FILE, lambda name, units: load(name, units=units))
    entries = {entry.name: entry for entry in history.read(history.FILE)}
    counts = ("counted", "agreed", "wrong", "unchanged", "missing", "not_run")
    for name, origin in origins.items():
        entry = entries[origin.name]
        assert (entry.units, entry.engine, entry.date) == (origin.units, origin.engine, origin.date)
        found = report.scores()[name]
        if not found.not_run:  # a study that has changed since is recorded anew with the next column
            assert {key: entry.scores[name][key] for key in counts} == {key: getattr(found, key) for key in counts}


def test_stored_results_are_read_back(tmp_path: Path) -> None:
    own = study(RISE)
    file = tmp_path / "results.json"
    report, written = recorded(own)
    results.write(file, report, written)
    found, origins = results.read(file, lambda name, units: own)
    (before,), (after,) = report.studies[0].rows, found.studies[0].rows
    assert origins == written
    assert (after.outcome, after.published) == (before.outcome, before.published)
    assert before.simulated is not None
    assert after.simulated is not None
    assert after.simulated.change_pct == pytest.approx(before.simulated.change_pct, rel=1e-5)
    assert after.simulated.spread is not None
    assert after.simulated.spread.change is not None
    file.write_text(file.read_text().replace('"time"', '"gone"'))
    with pytest.raises(InputError, match="no such row"):
        results.read(file, lambda name, units: own)


def recorded(own: Study, name: str = "start", unfit: tuple[str, ...] = ()) -> tuple[Report, dict[str, results.Origin]]:
    varied = runs([10.0, 11.0, 12.0, 13.0, 14.0, 15.0], [11.0, 13.0, 13.0, 15.0, 14.0, 18.0])
    one = report_of(own, lambda case, rows: [simulated(own, case, rows[0], varied, range(1, 7))], {})
    report = Report((one,), unfit)
    return report, results.origins(report, name, "a command", "engine", lambda study: 12.0, "")


def test_a_study_that_is_recorded_alone_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    """Neither their results nor their origin; the page says which was recorded when."""
    studies = {name: study(RISE, name=name) for name in ("first", "second")}
    file = tmp_path / "results.json"
    together = results.joined(
        recorded(studies["second"], unfit=("second: long",)), recorded(studies["first"]), ["first", "second"]
    )
    results.write(file, *together)
    kept = results.read(file, lambda name, units: studies[name], leave_out={"second"})
    assert kept[0].unfit == ()
    report, origins = results.joined(kept, recorded(studies["second"], "anew"), ["first", "second"])
    assert [one.study.name for one in report.studies] == ["first", "second"]
    assert {name: origin.name for name, origin in origins.items()} == {"first": "start", "second": "anew"}
    assert markdown(page(report, [], origins)).count("Recorded on") == 2
    assert "Studies: first." in markdown(page(report, [], origins))
    assert markdown(page(*together[:1], [], together[1])).count("Recorded on") == 1


SPREADS = [
    # what is printed, standard deviations of both sides in percent
    ("e,w,,time,s,lower,A,1,100,3\ne,w,,time,s,lower,B,1,200,4\n", (3.0, 2.0)),
    ("e,w,,time,s,lower,A,1,200,3%\ne,w,,time,s,lower,B,1,100,4%\n", (3.0, 4.0)),
    ("e,w,,time,s,lower,A,1,200,<2%\ne,w,,time,s,lower,B,1,100,4%\n", (None, 4.0)),
    ("e,w,,time,delta_pct,lower,B,1,-81.2,3%;4%\n", (3.0, 4.0)),
    ("e,w,,time,delta_pct,lower,B,1,-81.2,<2%;4%\n", (None, None)),
    ("e,w,,time,s,lower,A,1,7,\ne,w,,time,s,lower,B,1,7,\n", (None, None)),
]


@pytest.mark.parametrize(("figures", "spreads"), SPREADS)
def test_published_spreads(figures: str, spreads: tuple[float | None, float | None]) -> None:
    row = row_of(figures)
    for found, expected in zip((row.spread_a_pct, row.spread_b_pct), spreads, strict=True):
        assert found == (None if expected is None else pytest.approx(expected))
