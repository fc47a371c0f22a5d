"""The compatibility styles give what ministat, benchstat and mmtests print for published measurements.

The numbers are those of the public series that let arm64 guests read whether a vCPU is preempted (kernel 5.7, a board
with 4 CPUs): `avg worker transfer` of 13 runs of `schbench -t 3 -m 3 -p 4096`, and the time of 14 runs of `perf bench
sched messaging`, both with the change disabled and enabled. The expected output is that of ministat 20150715, of
benchstat (golang.org/x/perf at 22c9c6c9d4da) and of mmtests' Perl modules (commit 638401e07e70) on these files.
"""

from __future__ import annotations

import pytest

from schedlab.render import benchstat, ministat
from schedlab.render.mmtests import _STATISTICS
from schedlab.statistics import paired_difference, shift

TRANSFER = (
    [44800.57, 43763.87, 46405.34, 45256.13, 46341.51, 46168.65, 46382.17, 44881.69, 46285.09, 44484.32, 44980.09,
     46749.12, 46724.76],
    [48658.35, 49048.86, 48817.75, 51123.28, 49675.11, 48238.21, 48051.97, 47815.48, 48455.33, 50606.24, 48039.78,
     49497.56, 48315.82],
)  # fmt: skip
MESSAGING = (
    [0.957, 0.981, 1.003, 0.970, 0.986, 0.970, 0.993, 0.989, 0.982, 0.992, 0.998, 0.984, 0.976, 0.984],
    [1.002, 0.983, 0.984, 0.961, 0.984, 0.984, 0.988, 1.001, 0.992, 0.985, 0.989, 0.979, 0.973, 0.989],
)


@pytest.mark.parametrize(
    ("samples", "vitals", "difference"),
    [
        (
            TRANSFER,
            [
                "x  13      43763.87      46749.12      46168.65     45632.562     976.74614",
                "+  13      47815.48      51123.28      48658.35     48949.518     1019.7968",
            ],
            [
                "Difference at 95.0% confidence",
                "\t3316.96 +/- 808.356",
                "\t7.26884% +/- 1.77145%",
                "\t(Student's t, pooled s = 998.503)",
            ],
        ),
        (
            MESSAGING,
            [
                "x  14         0.957         1.003         0.984    0.98321429   0.012154003",
                "+  14         0.961         1.002         0.985    0.98528571   0.010365836",
            ],
            ["No difference proven at 95.0% confidence"],
        ),
    ],
)
def test_ministat(samples: tuple[list[float], list[float]], vitals: list[str], difference: list[str]) -> None:
    a, b = (sorted(side) for side in samples)
    assert [ministat.vitals("x", a), ministat.vitals("+", b)] == vitals
    assert ministat.difference(a, b) == difference


@pytest.mark.parametrize(
    ("samples", "half_widths", "versus"),
    [(TRANSFER, ("± 3%", "± 2%"), "+5.39% (p=0.000 n=13)"), (MESSAGING, ("± 1%", "± 1%"), "~ (p=0.675 n=14)")],
)
def test_benchstat(samples: tuple[list[float], list[float]], half_widths: tuple[str, str], versus: str) -> None:
    for side, half_width in zip(samples, half_widths, strict=True):
        assert benchstat.centre(side).endswith(half_width)
    assert benchstat.versus(*samples) == versus


MMTESTS = [
    # samples, higher is better, mean, standard deviation, coefficient of variation, mean of the best 95%
    (TRANSFER[0], True, 45613.071298, 947.518226, 2.077295, 45613.071298),
    (TRANSFER[1], True, 48930.267559, 961.552864, 1.965149, 48930.267559),
    (MESSAGING[0], False, 0.983214, 0.012154, 1.236150, 0.981692),
    (MESSAGING[1], False, 0.985286, 0.010366, 1.052064, 0.984000),
]


@pytest.mark.parametrize(("samples", "higher", "mean", "stddev", "coeffvar", "best"), MMTESTS)
def test_mmtests(samples: list[float], higher: bool, mean: float, stddev: float, coeffvar: float, best: float) -> None:
    statistics = {
        label: f(sorted(samples), higher) for label, direction, f in _STATISTICS if direction in (None, higher)
    }
    kind = "Hmean" if higher else "Amean"
    found = [statistics[name] for name in (kind, "Stddev", "CoeffVar", f"B{kind}-95")]
    assert found == pytest.approx([mean, stddev, coeffvar, best], abs=1e-6)


def test_the_same_verdicts_as_ours() -> None:
    # Unpaired: the runs of the series have no pairs.
    transfer, messaging = shift(*TRANSFER[::-1]).interval, shift(*MESSAGING[::-1]).interval
    assert transfer is not None
    assert messaging is not None
    assert transfer.low > 0
    assert not messaging.excludes_zero()
    # And paired in the order in which they were printed.
    for samples, certain in ((TRANSFER, True), (MESSAGING, False)):
        found = paired_difference(*samples).interval
        assert found is not None
        assert found.excludes_zero() == certain
