"""Sweeps: one scenario at many points of a grid, run anywhere, resumed anywhere, judged point by point."""

from __future__ import annotations
