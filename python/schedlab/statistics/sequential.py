"""Sequential testing: units are added until a verdict is settled, with the false-positive rate of a fixed number.

The looks are declared before the first run. At each look the samples so far are tested at a nominal level; the levels
are such that the chance of any false rejection up to look k is at most `alpha * t_k ** RHO`, where t is the share of
the budget used so far (Lan and DeMets 1983, with the spending function of Kim and DeMets 1987). An interval at the
nominal level of its look holds its 95% no matter why the comparison stopped there.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache

FIRST_LOOK = 10
GROWTH = 1.4
RHO = 1.0
"""1 spends alpha evenly: large effects are settled at the first look, small ones need about a fifth more units."""
_NODES = 96
_WIDEST = 9.0
_ALPHAS = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of units at each look, ascending; the last is the budget."""

    looks: tuple[int, ...]

    @classmethod
    def up_to(cls, budget: int) -> Plan:
        """Looks at 10, 14, 20, 27 ... units and at the budget."""
        looks, n = list[int](), float(FIRST_LOOK)
        while round(n) < budget:
            looks.append(round(n))
            n *= GROWTH
        # A last step of a few units would spend a look on almost no information.
        if looks and budget < looks[-1] * (1 + GROWTH) / 2:
            looks.pop()
        return cls((*looks, budget))

    def level(self, units: int, alpha: float) -> float:
        """The two-sided level of the look at this many units, if all looks together may err with `alpha`."""
        return nominal_levels(self.looks, alpha)[self.looks.index(units)]

    def p_value(self, units: int, p: float) -> float:
        """The overall alpha at which a test with this p would just reject at this look; 1 if that is above 0.5."""
        import numpy as np

        levels = [self.level(units, alpha) for alpha in _ALPHAS]
        if p > levels[-1]:
            return 1.0
        if p < levels[0]:
            return min(1.0, p * _ALPHAS[0] / levels[0])
        return float(np.exp(np.interp(math.log(p), np.log(levels), np.log(_ALPHAS))))


@cache
def nominal_levels(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """The two-sided level of every look.

    Where nothing differs, the test statistics of the looks behave as Brownian motion B(t) seen at the information
    times t = units / budget. The density of B on the paths that no look has rejected yet is carried from look to look
    (Armitage, McPherson and Rowe 1969); each bound cuts off what may be spent at its look.
    """
    from numpy.polynomial.legendre import leggauss
    from scipy.optimize import brentq
    from scipy.stats import norm

    nodes, node_weights = leggauss(_NODES)
    times = [n / looks[-1] for n in looks]
    levels = [alpha * times[0] ** RHO]
    edge = float(norm.isf(levels[0] / 2)) * math.sqrt(times[0])
    x, mass = edge * nodes, edge * node_weights * norm.pdf(edge * nodes, scale=math.sqrt(times[0]))
    for before, now in itertools.pairwise(times):
        step, may_spend = math.sqrt(now - before), alpha * (now**RHO - before**RHO)
        excess = _Excess(x, mass, step, math.sqrt(now), may_spend)
        z = float(brentq(excess, 0.0, _WIDEST)) if excess(0.0) > 0 else 0.0
        levels.append(float(2 * norm.sf(z)))
        edge = z * math.sqrt(now)
        there = edge * nodes
        mass = edge * node_weights * (norm.pdf((there[:, None] - x[None, :]) / step) @ mass / step)
        x = there
    return tuple(levels)


class _Excess:
    """How much more than allowed a bound z would reject among the paths still running."""

    def __init__(self, x: object, mass: object, step: float, root_time: float, may_spend: float) -> None:
        self._x, self._mass, self._step, self._root, self._may_spend = x, mass, step, root_time, may_spend

    def __call__(self, z: float) -> float:
        import numpy as np
        from scipy.stats import norm

        edge, x = z * self._root, np.asarray(self._x)
        outside = norm.sf((edge - x) / self._step) + norm.cdf((-edge - x) / self._step)
        return float(np.asarray(self._mass) @ outside) - self._may_spend
