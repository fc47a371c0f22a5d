"""Sweeps: one scenario at many points of a grid, run anywhere, resumed anywhere, judged point by point."""

from __future__ import annotations

TIME_LIMIT_S = 3600
"""Seconds of wall time after which a run has failed, unless a sweep is asked otherwise."""
