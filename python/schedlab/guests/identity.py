"""Which row a kernel was identified as: `schedlab identify KERNEL` keeps its answer, and the arms read it.

The answers are in the cache of kernels, which only this user can write: by the sha256 of an image, or by release and
version of the running kernel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from schedlab.errors import InputError, not_written
from schedlab.guests.debian import cache_directory
from schedlab.private import Directory

NAME = "identified.json"


@dataclass(frozen=True, slots=True)
class Identity:
    """The answer about one kernel."""

    rows: tuple[str, ...]
    """The row that fits best, and those that fit as well."""
    says: str
    """How well it fits, in words."""

    def words(self) -> str:
        """The rows and how well they fit."""
        return f"identified as {' or '.join(self.rows)}: {self.says}"


def running(root: Path = Path("/")) -> str:
    """The key of the running kernel."""
    return " ".join((root / f"proc/sys/kernel/{name}").read_text().strip() for name in ("osrelease", "version"))


def find(key: str) -> Identity | None:
    """What `identify` said about a kernel; None if it was not asked."""
    found = _kept().get(key)
    if found is None:
        return None
    try:
        return Identity(tuple(map(str, found["rows"])), str(found["says"]))
    except (KeyError, TypeError):
        raise _unreadable() from None


def keep(key: str, identity: Identity) -> None:
    """Add an answer, in place of an earlier one."""
    kept = {**_kept(), key: asdict(identity)}
    try:
        with Directory.open(cache_directory(), create=True) as folder:
            folder.write(NAME, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    except OSError as e:
        raise not_written("cannot store the identification", e, file=str(cache_directory() / NAME)) from None


def _kept() -> Mapping[str, Any]:
    try:
        with Directory.open(cache_directory()) as folder:
            text = folder.read(NAME)
    except FileNotFoundError:
        return {}
    try:
        kept = json.loads(text or "{}")
    except ValueError:
        raise _unreadable() from None
    if not isinstance(kept, dict):
        raise _unreadable()
    return kept


def _unreadable() -> InputError:
    path = str(cache_directory() / NAME)
    return InputError("this is not what schedlab identify writes", file=path, hint=f"rm {path}; then identify again")
