"""Runs the property tests with cases that are drawn anew; `make test` draws the same ones every time.

`new_cases.py [ROUNDS [SEED]]`: each round (by default 1) has a seed of its own, which is drawn, or is SEED, SEED+1, ...
A round runs all Rust tests and the Python test files that have properties. The lines before the last name
the seeds of the rounds that failed, with the command that repeats each.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import suites
from suites import ROOT, Suite

TESTS = ROOT / "python/tests"
SEEDS = 1 << 32
"""Seeds are drawn below this. Hypothesis and proptest both take any integer of 64 bits; these are easier to type."""


def main(rounds: int = 1, first: int | None = None) -> int:
    """Exit code 1 if a round failed."""
    chosen = [*(suite for suite in suites.SUITES if "rust" in suite.groups.split()), python_suite()]
    failed = []
    for seed in random.sample(range(SEEDS), rounds) if first is None else range(first, first + rounds):
        suites.say(f"seed {seed}")
        os.environ.update(environment(seed))
        if any(score.failed for score in suites.run_lanes(chosen).values()):
            failed.append(seed)
    for seed in failed:
        suites.say(f"seed {seed} failed; to repeat it: make new-cases SEED={seed}")
    printed = suites.say(f"{rounds - len(failed)} passed, {len(failed)} failed")
    return 0 if printed and not failed else 1


def environment(seed: int) -> dict[str, str]:
    """What makes proptest and Hypothesis draw the cases of a seed (.cargo/config.toml, python/tests/conftest.py)."""
    return {
        "PROPTEST_RNG_SEED": str(seed),
        "SCHEDLAB_RANDOM_EXAMPLES": "1",
        "PYTEST_ADDOPTS": f"--hypothesis-seed={seed}",
    }


def python_suite() -> Suite:
    """The test files with properties."""
    (whole,) = (suite for suite in suites.SUITES if suite.name == "python")
    names = [str(path.relative_to(ROOT)) for path in sorted(TESTS.glob("test_*.py")) if draws(path)]
    return replace(whole, command=" ".join([whole.command, *names]))


def draws(path: Path) -> bool:
    """Whether a test file has properties."""
    return "from hypothesis import" in path.read_text(encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 3 or not all(word.isdecimal() for word in sys.argv[1:]):
        sys.exit(__doc__)
    sys.exit(main(*map(int, sys.argv[1:])))
