"""`--seeds auto[:N]`, as it was typed."""

from __future__ import annotations


class Auto:
    """Units are added until the verdicts are settled."""

    __slots__ = ("budget",)

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        """The maximum number of units; None: the default of the arm."""
