"""What changed between two kernels, as text: the oldest change first."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping
from typing import Any

WIDTH = 98

Difference = Mapping[str, Any]


def text(found: Mapping[str, Any]) -> str:
    """A head line, then a block for every change."""
    differences = sorted(found["differences"], key=_order)
    counts = Counter(d["kind"] for d in differences)
    named = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items()]
    head = f"{found['a']['id']} to {found['b']['id']}: {', '.join(named) or 'nothing changed that is modelled'}"
    return "\n\n".join([head, *(_block(d) for d in differences)])


def _order(difference: Difference) -> tuple[bool, list[int], str]:
    """By the release of the last change; what no single change explains comes last."""
    changes = difference["changes"]
    release = [int(n) for n in re.findall(r"\d+", changes[-1]["release"])] if changes else []
    return not changes, release, difference["name"]


def _block(d: Difference) -> str:
    where = f" in {d['function']}()" if d.get("function") else ""
    lines = [f"{d['name']} ({d['kind']}{where}): {_value(d['was'])} -> {_value(d['is'])}"]
    lines += _filled(_sentence(d["effect"]))
    lines += _filled(f"Changed {', '.join(_change(c) for c in d['changes'])}.") if d["changes"] else []
    for scenario in d["scenarios"]:
        lines += _filled(f"{scenario['file']}: {scenario['summary']}")
    return "\n".join(lines)


def _value(value: str | None) -> str:
    return "absent" if value is None else value


def _sentence(effect: str) -> str:
    """Effects of features and knobs are phrases."""
    sentence = effect[:1].upper() + effect[1:]
    return sentence if sentence.endswith(".") else f"{sentence}."


def _change(change: Mapping[str, Any]) -> str:
    commit = change["commit"] or "commit not verified"
    return f"{'in' if change['first'] else 'by'} {change['release']} ({commit})"


def _filled(words: str) -> list[str]:
    return textwrap.wrap(words, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False)
