"""The width of the terminal, as `shutil` finds it, which imports three libraries for archives."""

from __future__ import annotations

import os
import sys


def terminal_columns() -> int:
    """As COLUMNS says, else those of the terminal that stdout is, else 80."""
    try:
        columns = int(os.environ.get("COLUMNS", 0))
    except ValueError:
        columns = 0
    if columns > 0:
        return columns
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80
