"""The order of real runs: variants are interleaved, so that drift affects all of them alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from schedlab.runner import Job, plan
from schedlab.scenario import Scenario


def to_and_fro(scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
    """A B, B A, A B ...: a linear drift cancels out."""
    return _ordered(scenario, seeds, traces, lambda number, jobs: jobs[::-1] if number % 2 else jobs)


def blocks(scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
    """The variants of each seed in an order drawn from that seed, which no periodic disturbance can correlate with."""

    def drawn(number: int, jobs: list[Job]) -> list[Job]:
        return random.Random(f"order of {seeds[number]}").sample(jobs, len(jobs))

    return _ordered(scenario, seeds, traces, drawn)


ORDERS = {"abba": to_and_fro, "blocks": blocks}


def _ordered(
    scenario: Scenario, seeds: Sequence[int], traces: Path | None, arrange: Callable[[int, list[Job]], list[Job]]
) -> list[Job]:
    jobs: list[Job] = []
    for number, seed in enumerate(seeds):
        jobs += arrange(number, plan(scenario, [seed], traces))
    return jobs
