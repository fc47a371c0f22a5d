"""Smaller documents than one: fewer seeds, workloads, CPUs, keys and steps, shorter times, smaller numbers.

Nothing here depends on the meaning of a key: a candidate that is not a valid scenario, or not a smaller one, is refused
later.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]
Path = tuple[str | int, ...]

TIME = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", re.ASCII)
NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
SHORTEST_NS = 1000
"""No time becomes shorter than this."""
COUNTS = ("nodes", "llcs-per-node", "cores-per-llc", "threads-per-core")
"""The keys of a topology, from the outside to the inside."""


def candidates(document: Document) -> Iterator[Document]:
    """All of them, those that save most first: a document that is accepted replaces this one."""
    yield from _halved(document, "seeds")
    yield from _less(document, ("duration",))
    for key in ("workload", "guest", "cgroup", "variant", "metric"):
        yield from _halved(document, key)
    yield from _topologies(document)
    for path in paths(document):
        if path[0] != "machine":
            yield from _without(document, path)
    for path in paths(document):
        if path[0] not in ("machine", "duration", "seeds"):
            yield from _less(document, path)


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """The places of all values inside of this one, outer ones first."""
    inner = list(_members(value))
    for key, _ in inner:
        yield (*at, key)
    for key, member in inner:
        yield from paths(member, (*at, key))


def get(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def put(document: Document, path: Path, value: Any) -> Document:
    """A copy with another value at this place."""
    changed = copy.deepcopy(document)
    get(changed, path[:-1])[path[-1]] = value
    return changed


def nanoseconds(value: Any) -> int | None:
    """A time, if the value is one."""
    found = TIME.fullmatch(value) if isinstance(value, str) else None
    return round(float(found[1]) * NS[found[2]]) if found else None


def time(ns: int) -> str:
    """A time in the largest unit that keeps it exact."""
    unit = next(unit for unit in ("s", "ms", "us", "ns") if ns % NS[unit] == 0 and (ns or unit == "ns"))
    return f"{ns // NS[unit]}{unit}"


def _members(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _halved(document: Document, key: str) -> Iterator[Document]:
    """A list with one half of its elements, then without one of them."""
    items = document.get(key)
    if not isinstance(items, list) or len(items) < 2:
        return
    middle = len(items) // 2
    yield {**document, key: items[:middle]}
    yield {**document, key: items[middle:]}
    if len(items) > 2:
        for at in range(len(items)):
            yield {**document, key: items[:at] + items[at + 1 :]}


def _without(document: Document, path: Path) -> Iterator[Document]:
    """The document without what is at this place."""
    changed = copy.deepcopy(document)
    parent = get(changed, path[:-1])
    del parent[path[-1]]
    yield changed


def _less(document: Document, path: Path) -> Iterator[Document]:
    """The number or time at this place: the smallest, a half, three quarters."""
    try:
        value = get(document, path)
    except (KeyError, IndexError):
        return
    ns = nanoseconds(value)
    number = ns if ns is not None else value if isinstance(value, int) and not isinstance(value, bool) else None
    if number is None or number <= 1:
        return
    wanted = [n for n in (1, number // 8, number // 2, number * 3 // 4, number - 1) if n >= 1]
    if ns is not None:
        wanted = [_rounded(n) for n in wanted if n >= SHORTEST_NS]
    for smaller in dict.fromkeys(n for n in wanted if n < number):
        yield put(document, path, time(smaller) if ns is not None else smaller)


def _rounded(ns: int) -> int:
    """Two significant digits are enough for a time."""
    return round(ns, 2 - len(str(ns)))


def _topologies(document: Document) -> Iterator[Document]:
    """One of a level, then half of it."""
    topology = document.get("machine", {}).get("topology") if isinstance(document.get("machine"), dict) else None
    if not isinstance(topology, dict):
        return
    for wanted in (lambda _: 1, lambda n: n // 2, lambda n: n - 1):
        for key in COUNTS:
            count = topology.get(key, 1)
            if count > 1 and 1 <= wanted(count) < count:
                yield put(document, ("machine", "topology", key), wanted(count))
