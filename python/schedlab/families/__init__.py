"""Scenarios to begin with, one commented file for each family of workloads; its first line is its summary."""

from __future__ import annotations

from pathlib import Path

from schedlab import spelling
from schedlab.errors import InputError

FOLDER = Path(__file__).parent


def families() -> dict[str, str]:
    """The families with a line each."""
    return {path.stem: path.open(encoding="utf-8").readline().lstrip("# ").strip() for path in sorted(_files())}


def text(family: str) -> str:
    """The scenario of a family; InputError with the nearest name if there is none."""
    known = families()
    if family not in known:
        raise InputError(f"there is no family `{family}`", hint=spelling.hint(family, known, "the families are"))
    return (FOLDER / f"{family}.toml").read_text(encoding="utf-8")


def _files() -> list[Path]:
    return list(FOLDER.glob("*.toml"))
