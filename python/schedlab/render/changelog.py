"""What changed between two kernels, as text and as a Markdown page: what affects most workloads comes first."""

from __future__ import annotations

import re
import textwrap
from collections import Counter

from schedlab.native.changed import Change, Changelog, Effect
from schedlab.render.grid import WIDTH


def text(found: Changelog) -> str:
    """A head line, then a block for every change."""
    blocks = [_block(d) for d in found["differences"]]
    return "\n\n".join([_head(found), *_settings(found), *_direction(found), *blocks, *_counterparts(found)])


def markdown(found: Changelog) -> str:
    """The head line, then the changes in two sections."""
    first = [_item(d) for d in found["differences"] if d["first"]]
    others = [_item(d) for d in found["differences"] if not d["first"]]
    sections = [("What most workloads meet", first), ("Everything else", others)]
    parts = [f"## {title}\n\n" + "\n".join(items) for title, items in sections if items]
    return (
        "\n\n".join([f"{_head(found)}.", *_settings(found), *_direction(found), *parts, *_counterparts(found)]) + "\n"
    )


def _head(found: Changelog) -> str:
    counts = Counter(d["kind"] for d in found["differences"])
    named = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items()]
    return f"{found['a']['id']} to {found['b']['id']}: {', '.join(named) or 'nothing changed that is modelled'}"


def _settings(found: Changelog) -> list[str]:
    """In what the configurations of distributions differ."""
    changed = [f"{s['name']} {s['was']} -> {s['is']}" for s in found["settings"]]
    if not changed:
        return []
    sides = [side.get("config") or "Kconfig's defaults" for side in (found["a"], found["b"])]
    words = f"The configuration, which is no change of the kernel ({sides[0]} to {sides[1]}): {', '.join(changed)}."
    return ["\n".join(_filled(words, ""))]


def _direction(found: Changelog) -> list[str]:
    """How to read the sentences if the list goes back to an earlier row."""
    if not found["backwards"] or not found["differences"]:
        return []
    early, late = found["b"]["id"], found["a"]["id"]
    words = f"{early} is the earlier row: the values go back to it, but the sentences describe the step to {late}."
    return ["\n".join(_filled(words, ""))]


def _counterparts(found: Changelog) -> list[str]:
    """What one of the kernels does not have, because its algorithm has no use for it or it is off in the other."""
    count = len(found["without_counterpart"])
    if not count:
        return []
    what = "rule or switch" if count == 1 else "rules and switches"
    words = f"Not listed: {count} {what} that one of the kernels lacks and the other does not use (--json names them)."
    return ["\n".join(_filled(words, ""))]


def _block(d: Effect) -> str:
    lines = [f"{d['name']} ({_kind(d)}): {_value(d['was'])} -> {_value(d['is'])}"]
    lines += _filled(d["does"]) if d["does"] else []
    lines += _filled(_sentence(d["effect"]))
    lines += _filled(_commits(d))
    for scenario in d["scenarios"]:
        lines += _filled(f"{scenario['file']}: {scenario['summary']}")
    return "\n".join(lines)


def _item(d: Effect) -> str:
    """A list item: the sentence first, then the kernel's words for it."""
    said = d["does"] or _sentence(d["effect"])
    values = f"{_value(d['was'])} → {_value(d['is'])}"
    shown = [f"`{s['file']}` shows it ({s['summary']})." for s in d["scenarios"][:1]]
    return " ".join([f"- **{d['name']}** ({_kind(d)}; {values}). {said}", _commits(d), *shown])


def _kind(d: Effect) -> str:
    return f"{d['kind']} in {d['function']}()" if d.get("function") else str(d["kind"])


def _commits(d: Effect) -> str:
    return f"Changed {', '.join(_change(c) for c in d['changes'])}."


def _value(value: str | None) -> str:
    if value is None:
        return "absent"
    return re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", value) if value.isdigit() else value


def _sentence(effect: str) -> str:
    """Effects of features and knobs are phrases."""
    sentence = effect[:1].upper() + effect[1:]
    return sentence if sentence.endswith(".") else f"{sentence}."


def _change(change: Change) -> str:
    commit = change["commit"] or "commit not verified"
    return f"{'in' if change['first'] else 'by'} {change['release']} ({commit})"


def _filled(words: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(words, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
