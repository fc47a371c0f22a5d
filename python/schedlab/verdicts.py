"""The words in which a comparison is judged."""

from __future__ import annotations

DETERMINISTIC = "deterministic, n = 1"
NOISY = "undecided: noisy"
GATES = ("worse", "undecided", "better", "changed", "equivalent")
"""Those that `--fail-on` takes, in the order in which its help lists them."""
VERDICTS = ("better", "worse", "changed", "equivalent", "undecided", NOISY, DETERMINISTIC)
