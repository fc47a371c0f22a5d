"""The compatibility styles give the numbers of the tools they are named after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.render import benchstat, ministat, perf_stat
from schedlab.render.grid import columns, fold, percent, value
from schedlab.render.mmtests import _STATISTICS

# The example of ministat's manual page, and what it prints for it.
IGUANA = sorted([50.0, 200, 150, 400, 750, 400, 150])
CHAMELEON = sorted([150.0, 400, 720, 500, 930])


def test_ministat_vitals() -> None:
    assert ministat.vitals("x", IGUANA) == "x   7            50           750           200           300     238.04761"
    assert (
        ministat.vitals("+", CHAMELEON) == "+   5           150           930           500           540     299.08193"
    )


def test_ministat_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ministat.difference(IGUANA, CHAMELEON) == ["No difference proven at 95.0% confidence"]
    monkeypatch.setattr(ministat, "CONFIDENCE", 80.0)
    assert ministat.difference(IGUANA, CHAMELEON) == [
        "Difference at 80.0% confidence",
        "\t240 +/- 212.215",
        "\t80% +/- 70.7384%",
        "\t(Student's t, pooled s = 264.159)",
    ]


def test_ministat_plot_counts_every_value() -> None:
    lines = ministat.plot(IGUANA, CHAMELEON)
    marks = "".join(lines[1:-3])
    assert marks.count("x") + marks.count("*") == len(IGUANA)
    assert marks.count("+") + marks.count("*") == len(CHAMELEON)
    assert ministat.plot([1.0, 1.0], [1.0]) == ["[no plot, span is zero width]"]


@pytest.mark.parametrize(
    ("n", "interval"), [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15))]
)
def test_benchstat_interval_is_the_binomial_one(n: int, interval: tuple[int, int] | None) -> None:
    assert benchstat.order_statistic_interval([float(i) for i in range(1, n + 1)]) == interval


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70), ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252), ([1, 1], [1, 1], 1.0)],
)
def test_benchstat_p_is_exact(a: list[float], b: list[float], p: float) -> None:
    assert benchstat.mann_whitney(a, b) == pytest.approx(p)


def test_benchstat_hides_what_is_not_significant() -> None:
    assert benchstat.versus([1, 2, 3], [4, 5, 6]) == "~ (p=0.100 n=3)"
    assert benchstat.versus([1, 2, 3, 4], [5, 6, 7, 8]) == "+160.00% (p=0.029 n=4)"


@pytest.mark.parametrize(
    ("name", "higher", "expected"),
    [
        ("Min", None, 1.0),
        ("Hmean", True, 12 / 7),
        ("Amean", False, 7 / 3),
        ("Max", None, 4.0),
        ("Stddev", None, 1.527525),
    ],
)
def test_mmtests_statistics(name: str, higher: bool | None, expected: float) -> None:
    statistic = next(s for label, _, s in _STATISTICS if label == name)
    assert statistic([1.0, 2.0, 4.0], bool(higher)) == pytest.approx(expected)


PERF = [
    # samples and what `perf stat -r 3` prints of such an event: the value, its unit and name, and the spread
    ([0.66, 0.70, 0.74], "msec", "task-clock", "              0.70 msec task-clock", "( +-  3.30% )"),
    ([0, 0, 0], "", "context-switches", "                 0      context-switches", "( +-  0.00% )"),
    ([1200345, 1200345, 1200345], "", "cycles", "         1,200,345      cycles", "( +-  0.00% )"),
    ([None, None], "", "cycles", "     <not counted>      cycles", ""),
]


@pytest.mark.parametrize(("samples", "unit", "name", "head", "tail"), PERF)
def test_perf_stat(samples: list[float | None], unit: str, name: str, head: str, tail: str) -> None:
    shown = perf_stat.line(samples, unit, name)
    assert (shown.removesuffix(tail).rstrip(), shown.endswith(tail)) == (head, True)


@pytest.mark.parametrize(
    ("x", "shown"),
    [(None, "-"), (0, "0"), (0.0, "0"), (7.0, "7"), (1234567.8, "1,234,568"), (12.3456, "12.35"), (0.12345, "0.1235"),
     (0.00001234, "1.234e-05"), (2.5, "2.500"), (0.01734, "0.01734"),
     (-3.14159, "-3.142"), (999.96, "1,000"), (999.94, "999.9")],
)  # fmt: skip
def test_numbers(x: float | None, shown: str) -> None:
    assert value(x) == shown


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (None, "-"),
        (29.71, "+29.7%"),
        (-1.234, "-1.23%"),
        (0.0, "0.00%"),
        (0.001, "0.00%"),
        (12345.0, "+12,345%"),
        (1e306, "+inf%"),
    ],
)
def test_percentages(x: float | None, shown: str) -> None:
    assert percent(x) == shown


def test_columns_align() -> None:
    assert columns([["a", "1"], ["bcd", "10"]], "<>") == ["a     1", "bcd  10"]


WIDE = [
    ["mechanism", "eevdf with it", "share"],
    ["a_mechanism_with_quite_a_long_name_that_fills_the_line", "+1.25%", "-"],
    ["short", "-10.0%", "100%"],
]


@pytest.mark.parametrize("width", [20, 40, 60, 72, 200])
def test_a_table_fits_without_losing_a_letter(width: int) -> None:
    lines = columns(WIDE, "<>>", width=width)
    assert max(map(len, lines)) <= width
    everything = "".join("".join(row) for row in WIDE).replace(" ", "")
    assert sorted("".join(lines).replace(" ", "")) == sorted(everything)
    if width == 200:
        assert lines == columns(WIDE, "<>>", width=None)


CELLS = st.text(st.sampled_from("ab .,_-0"), max_size=60).map(str.strip)


@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5)))
def test_any_table_fits(rows: list[list[str]]) -> None:
    lines = columns(rows, "<>" * 4 + "<", width=50, indent=2)
    assert max(map(len, lines)) <= 50
    assert sorted("".join(lines).replace(" ", "")) == sorted("".join("".join(row) for row in rows).replace(" ", ""))


def test_a_head_wraps_before_words_and_words_before_columns_stack() -> None:
    assert columns([["a", "b c"], ["x", "1"]], "<>", width=4) == ["a  b", "   c", "x  1"]
    assert columns([["a", "b"], ["x", "one two three four"]], "<<", width=19) == ["a  b", "x  one two three", "   four"]
    assert columns([["a", "b", "c"], ["x", "1" * 9, "2" * 9]], "<>>", width=16) == [
        "a          b",
        "            c",
        "x  111111111",
        "    222222222",
    ]


def test_long_lines_go_on_further_in() -> None:
    assert fold("  a b c\nd", 6) == "  a b\n      c\nd"
    assert fold("word" * 9, 6) == "word" * 9, "a path or a digest stays whole"
