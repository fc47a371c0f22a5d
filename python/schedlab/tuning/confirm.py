"""The confirmation: the winner against the default on seeds that the search has not seen, judged like any comparison.

A search over many trials picks the luckiest of them as well as the best, so its own numbers prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from schedlab.arms.arm import Arm
from schedlab.compare_variants import compare_variants
from schedlab.comparison import Comparison
from schedlab.outcome import Outcome
from schedlab.runner import Job, Runner
from schedlab.scenario import Scenario, Variant
from schedlab.store import Result
from schedlab.tuning.goal import Goal

DEFAULT, WINNER = "default", "winner"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The result of the comparison for the winner."""

    comparison: Comparison
    confirmed: bool
    """The improvement is certain, its estimate is larger than the margin, and every bound certainly holds."""
    findings: tuple[str, ...]
    """What was found of the goal and of each bound, in words."""


def confirm(
    arm: Arm,
    goal: Goal,
    default: Scenario,
    winner: Scenario,
    variant: str,
    seeds: Sequence[int],
    threads: int,
    ended: Callable[[str], None] = lambda _: None,
) -> Confirmation:
    """Run both on every seed and judge. `arm` is prepared for both; Ctrl-C raises KeyboardInterrupt."""
    outcomes: list[Outcome] = []
    for number, seed in enumerate(_blocks(seeds, threads)):
        both = ((DEFAULT, default), (WINNER, winner))
        for name, scenario in both if number % 2 == 0 else reversed(both):
            runner = Runner(arm, scenario, [Job(variant, one) for one in seed], threads)
            for outcome in runner.outcomes():
                outcomes.append(replace(outcome, variant=name))
                ended(f"{name} seed {outcome.seed}")
    sides = (_side(default, variant, DEFAULT), _side(winner, variant, WINNER))
    both_in_one = replace(default, variants=sides, seeds=tuple(seeds))
    result = Result.of(both_in_one, default.arm, seeds, outcomes, {})
    return judged(compare_variants(result), goal)


def judged(comparison: Comparison, goal: Goal) -> Confirmation:
    """What a comparison of the default with the winner says about the goal."""
    by_name = {m.metric.name: m.comparisons[0] for m in comparison.metrics}
    own = by_name[goal.metric]
    improved = goal.improved(own)
    findings = [f"{goal.metric}: {own.verdict}" + ("" if improved else "; no improvement was shown")]
    held = []
    for bound in goal.bounds:
        word = bound.holds(by_name[bound.metric].difference)
        held.append(word == "holds")
        findings.append(f"{bound} {word}")
    return Confirmation(comparison, improved and all(held), tuple(findings))


def _blocks(seeds: Sequence[int], size: int) -> list[Sequence[int]]:
    """Seeds that run together; default and winner take turns in being first, so that a drift affects both alike."""
    return [seeds[at : at + size] for at in range(0, len(seeds), size)]


def _side(scenario: Scenario, variant: str, name: str) -> Variant:
    found = scenario.variant(variant)
    assert found is not None  # the caller took it from the scenario
    return replace(found, name=name)
