"""How far two variants lie apart, and how certain that is. What a difference means is for `judge.py` to say.

Everything here is a pure function of samples. numpy and scipy do the arithmetic.
"""

from schedlab.statistics.interval import Interval, median
from schedlab.statistics.paired import Difference, paired_difference, walsh_interval
from schedlab.statistics.ranks import SMALLEST_N, rejected_pairs, rejected_ranks
from schedlab.statistics.shares import share_interval
from schedlab.statistics.unpaired import Shift, shift

__all__ = [
    "SMALLEST_N",
    "Difference",
    "Interval",
    "Shift",
    "median",
    "paired_difference",
    "rejected_pairs",
    "rejected_ranks",
    "share_interval",
    "shift",
    "walsh_interval",
]
