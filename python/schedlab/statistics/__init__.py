"""The difference between two variants and its uncertainty. The interpretation of a difference is in `judge.py`.

Everything here is a pure function of samples. numpy and scipy do the arithmetic.
"""

from schedlab.statistics.holm import holm
from schedlab.statistics.interval import Interval, log_of, median
from schedlab.statistics.paired import Difference, p_outside, p_value, paired_difference, walsh_interval
from schedlab.statistics.planning import units_needed
from schedlab.statistics.ranks import SMALLEST_N, rejected_pairs, rejected_ranks, smallest_n
from schedlab.statistics.sequential import Plan
from schedlab.statistics.shares import share_interval
from schedlab.statistics.spread import Spread, spread
from schedlab.statistics.tails import Tail, tail_difference
from schedlab.statistics.unpaired import Shift, shift

__all__ = [
    "SMALLEST_N",
    "Difference",
    "Interval",
    "Plan",
    "Shift",
    "Spread",
    "Tail",
    "holm",
    "log_of",
    "median",
    "p_outside",
    "p_value",
    "paired_difference",
    "rejected_pairs",
    "rejected_ranks",
    "share_interval",
    "shift",
    "smallest_n",
    "spread",
    "tail_difference",
    "units_needed",
    "walsh_interval",
]
