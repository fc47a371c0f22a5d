"""The number of units that settles a verdict: enough to detect a change of the margin, or to show equivalence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from schedlab.statistics.ranks import ALPHA, smallest_n

POWER = 0.8
CAUTION = 0.8
"""The spread is estimated from the same few units; its upper confidence limit of this level is used."""
EFFICIENCY = 3 / math.pi
"""Of the signed-rank test against Student's t on normal differences; it is better on heavier tails."""
MOST_UNITS = 10_000


def units_needed(differences: Sequence[float], margin: float, alpha: float = ALPHA) -> int | None:
    """Units with which a difference of `margin`, on the scale of `differences`, is found with a power of 80%.

    The same number shows equivalence with 80% where there is no difference. None: no margin, no spread to go by, or
    more than 10,000 units.
    """
    import numpy as np
    from scipy.stats import chi2, norm

    n = len(differences)
    if margin <= 0 or n < 2:
        return None
    variance = float(np.var(np.asarray(differences, float), ddof=1)) * (n - 1) / float(chi2.ppf(1 - CAUTION, n - 1))
    found = float(norm.isf(alpha / 2) + norm.isf(1 - POWER)) ** 2
    shown = float(norm.isf(alpha) + norm.isf((1 - POWER) / 2)) ** 2
    # The correction of half a squared quantile accounts for Student's t instead of the normal distribution.
    wanted = max(found, shown) * variance / margin**2 / EFFICIENCY + float(norm.isf(alpha / 2)) ** 2 / 2
    units = max(smallest_n(alpha), math.ceil(wanted))
    return units if units <= MOST_UNITS else None
