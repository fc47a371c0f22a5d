"""The record of how the studies came out, one column per mechanism that landed: history.json in this folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from schedlab import files
from schedlab.errors import InputError, not_written
from schedlab.studies.score import Score

SCHEMA = "schedlab.studies/1"
FILE = Path(__file__).with_name("history.json")
ALL = "all"
"""The key of the sum over all studies."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded run of the studies."""

    name: str
    """What landed."""
    date: str
    engine: str
    units: int
    scores: Mapping[str, Mapping[str, Any]]
    """By study; the key `all` holds the sum over all that were stored then."""
    seconds: Mapping[str, float]
    """The mean wall time of a run, by case: the next estimate rests on it."""


def read(file: Path) -> list[Entry]:
    """Every entry, the oldest first; none if there is no file."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as e:
        raise InputError(f"not a history of studies: {e}", file=str(file)) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"not a history of studies of schema {SCHEMA}", file=str(file))
    try:
        return [Entry(**entry) for entry in document["entries"]]
    except (KeyError, TypeError) as e:
        raise InputError(f"not a history of studies: {e}", file=str(file)) from None


def entry(name: str, engine: str, units: int, scores: Mapping[str, Score], seconds: Mapping[str, float]) -> Entry:
    """An entry of today."""
    return Entry(
        name=name,
        date=datetime.now(UTC).date().isoformat(),
        engine=engine,
        units=units,
        scores={study: asdict(score) for study, score in scores.items()},
        seconds={label: round(value, 3) for label, value in seconds.items()},
    )


def append(file: Path, new: Entry) -> list[Entry]:
    """Add an entry to the file. Studies recorded under the name of an earlier entry join its column, as a mechanism has
    one; what the earlier one has of the same studies is replaced."""
    entries = read(file)
    kept = [old for old in entries if old.name != new.name]
    for old in entries:
        if old.name == new.name and old.units == new.units:
            new = replace(new, scores={**old.scores, **new.scores}, seconds={**old.seconds, **new.seconds})
    write(file, [*kept, new])
    return [*kept, new]


def check(entries: Iterable[Entry], name: str, units: int, studies: Collection[str]) -> None:
    """Refuse a name whose entry has other studies with another number of units: a column has one number."""
    for old in entries:
        others = sorted({*old.scores} - {ALL, *studies})
        if old.name == name and old.units != units and others:
            raise InputError(
                f"`{name}` is recorded for {', '.join(others)} with --units {old.units}, and these runs have {units}",
                hint="choose another name, or the same --units",
            )


def write(file: Path, entries: Sequence[Entry]) -> None:
    """The whole file, or what was there before."""
    text = json.dumps({"schema": SCHEMA, "entries": [asdict(e) for e in entries]}, indent=1, ensure_ascii=False)
    try:
        files.replace(file, text + "\n")
    except OSError as e:
        raise not_written(f"cannot write {file}", e) from None


def seconds(file: Path) -> dict[str, float]:
    """How long a run of each case took when it was last recorded."""
    found: dict[str, float] = {}
    for one in read(file):
        found |= one.seconds
    return found
