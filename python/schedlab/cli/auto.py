"""`--seeds auto[:N]`, as it was typed."""

from __future__ import annotations

from typing import NamedTuple


class Auto(NamedTuple):
    """Units are added until the verdicts are settled."""

    budget: int | None = None
    """The maximum number of units; None: the default of the arm."""
