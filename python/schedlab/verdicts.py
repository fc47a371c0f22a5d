"""The words in which a comparison is judged."""

from __future__ import annotations

DETERMINISTIC = "deterministic, n = 1"
NOISY = "undecided: noisy"
VERDICTS = ("better", "worse", "changed", "equivalent", "undecided", NOISY, DETERMINISTIC)
