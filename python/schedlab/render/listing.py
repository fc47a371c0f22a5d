"""What exists, as text: a few columns for each kind, or everything about one of them, as wide as a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from schedlab.plain import escaped
from schedlab.render.grid import NOTHING, WIDTH, columns

Row = Mapping[str, Any]


def text(kind: str, rows: Sequence[Row], kernel: str | None) -> str:
    """The list of a kind; `kernel`: only what that kernel has, with its defaults."""
    if kind == "kernels" and kernel and rows:
        return _kernel(rows[0])
    if kind == "metrics":
        return "\n".join("\n  ".join(_filled(_metric(row), 2)) for row in rows)
    shapes = {
        "kernels": (_row, 2),
        "machines": (_machine, 3),
        "distributions": (_distribution, 1),
        "features": (_feature if kernel else _named, 2 if kernel else 1),
        "knobs": (_knob if kernel else _named, 2 if kernel else 1),
    }
    shape, wrapped = shapes.get(kind, (_named, 1))
    return "\n".join(_wrapped([shape(row) for row in rows], wrapped))


SCALED = """\
These defaults are those of one CPU. A kernel multiplies them by 1 + log2(CPUs),
rounded down, at most 4: by 3 on 4 CPUs, by 4 on 8 or more. A value that a
variant sets is used as it is."""
"""What `list knobs` shows for a knob that update_sysctl() scales."""


def detail(kind: str, row: Row) -> str:
    """Everything about one."""
    blocks: list[str] = ["\n".join(_wrapped([_named(row)], 1))]
    if kind == "workloads":
        blocks += [_structure(row), _parameters(row), _options(row), _metrics(row), _simplified(row)]
    elif kind == "machines":
        blocks += [_size(row), _sources(row)]
    elif kind == "features":
        blocks += [_defaults(row)]
    elif kind == "knobs":
        blocks += [f"file: {row['path']}", _defaults(row), SCALED if row["scaled"] else ""]
    return "\n\n".join(block for block in blocks if block)


def _named(row: Row) -> list[str]:
    return [str(row["id"]), str(row["summary"]) + _proposed(row) + _refused(row)]


def _row(row: Row) -> list[str]:
    """A kernel with the other names that a scenario may use for it."""
    return [str(row["id"]), ", ".join(row.get("aliases") or ()), str(row["summary"])]


def _machine(row: Row) -> list[str]:
    cpus = NOTHING if row["cpus"] is None else f"{row['cpus']} CPUs"
    return [str(row["id"]), cpus, "measured" if row["calibrated"] else "uncalibrated", str(row["summary"])]


def _distribution(row: Row) -> list[str]:
    """A distribution with its row and configuration, and where these are from."""
    sessions = "on" if row["autogroup"] else "off"
    row_or_why = f"row {row['row']}" if row["row"] else f"no row: {row['no_row']}"
    about = f"{row['summary']}; {row['hz']} Hz, preempt={row['preempt']}, autogroup {sessions}"
    return [str(row["id"]), f"{about}; {row_or_why}; uname -r {', '.join(row['releases'])}; source: {row['source']}"]


def _metric(row: Row) -> str:
    """Name, unit, direction and meaning; a sampled metric has every statistic below its name."""
    name = f"{row['id']}.STAT" if row["sampled"] else str(row["id"])
    unit = "" if row["unit"] == "count" else str(row["unit"])
    direction = "" if row["better"] == "neither" else f"{row['better']} is better"
    about = ", ".join(part for part in (unit, direction) if part)
    return f"{name} ({about}): {row['summary']}" if about else f"{name}: {row['summary']}"


def _feature(row: Row) -> list[str]:
    """A switch with its default in the one row asked for."""
    (default,) = row["defaults"].values()
    return [row["id"], "on" if default else "off", row["summary"] + _proposed(row) + _refused(row)]


def _knob(row: Row) -> list[str]:
    """A knob with its default in the one row asked for, on one CPU if it depends on their number."""
    (default,) = row["defaults"].values()
    scaled = "; the default grows with the CPUs" if row["scaled"] else ""
    return [row["id"], str(default), row["summary"] + scaled + _refused(row)]


def _proposed(row: Row) -> str:
    """Where a feature that was not merged was posted."""
    return f"; {row['proposed']}" if row.get("proposed") else ""


def _refused(row: Row) -> str:
    """Where the simulator refuses a feature or knob because it would change nothing, with the reason."""
    refused = row.get("refused") or []
    if not refused:
        return ""
    kernels = "" if not row["modelled"] else f" in {', '.join(r['kernel'] for r in refused)}"
    return f"; refused{kernels}: {refused[0]['why']}"


def _items(title: str, sentences: Sequence[str]) -> str:
    """A title and an indented item for each of these."""
    lines = []
    for sentence in sentences:
        first, *more = _filled(sentence, 2)
        lines += [f"- {first}", *(f"  {line}" for line in more)]
    return "\n".join([title, *lines]) if lines else ""


def _structure(row: Row) -> str:
    return _items("structure", row.get("structure") or ())


def _simplified(row: Row) -> str:
    return _items("simplified or left out", row.get("simplified") or ())


def _parameters(row: Row) -> str:
    """The numbers of a program, each with its source below it."""
    return _items(
        "parameters and their sources",
        [f"{p['name']}: {p['value']} ({p['source']})" for p in row.get("parameters") or ()],
    )


def _options(row: Row) -> str:
    """Each with what it takes and its default; one without a model with the reason."""
    return _items("options", [_option(option) for option in row["options"]]) or "it has no options"


def _option(option: Row) -> str:
    short = f" or {option['short']}" if option.get("short") else ""
    if not option.get("modelled", True):
        return f"{option['name']}{short}: not modelled, {str(option['expected']).removeprefix('nothing: ')}"
    default = "" if option["default"] is None else f"; default {str(option['default']).lower()}"
    return f"{option['name']}{short}: {option['help']} ({option['expected']}{default})"


def _metrics(row: Row) -> str:
    return _items("metrics", [_measured(metric) for metric in row["metrics"]]) or "it has no metrics"


def _measured(metric: Row) -> str:
    """Name and statistics, unit and direction, meaning."""
    stats = f".({'|'.join(metric['stats'])})" if metric["stats"] else ""
    better = "neither is better" if metric["better"] == "neither" else f"{metric['better']} is better"
    about = ", ".join(part for part in (metric["unit"], better) if part)
    return f"{metric['name']}{stats} ({about}): {metric['help']}"


def _size(row: Row) -> str:
    cpus = "as many CPUs as this machine" if row["cpus"] is None else f"{row['cpus']} CPUs"
    return f"{cpus}; its costs were {'measured on it' if row['calibrated'] else 'not measured on it'}"


def _sources(row: Row) -> str:
    sources = [source.partition(": ")[::2] for source in row.get("sources") or ()]
    return "\n".join(_wrapped([["number", "source"], *map(list, sources)], 1)) if sources else ""


def _defaults(row: Row) -> str:
    values = {True: "on", False: "off"}
    shown = [f"{kernel} {values.get(v, v) if isinstance(v, bool) else v}" for kernel, v in row["defaults"].items()]
    return "\n".join(_filled(f"default: {', '.join(shown)}", 0))


def _kernel(row: Row) -> str:
    """How a row differs from the one before: each rule with its kernel function and the releases that changed it."""
    head = f"{row['id']}  {row['summary']}"
    before = row["before"]
    if before is None:
        return f"{head}\nthe oldest row"
    lines = [["", f"in {before['id']}", f"in {row['id']}", "function", "changed in"]]
    for d in before["differences"]:
        was, now = (NOTHING if d[key] is None else d[key] for key in ("was", "is"))
        lines.append([d["name"], was, now, d.get("function") or d["kind"], d.get("since") or ""])
    return "\n".join([head, "", *columns(lines, "<<<<<")])


def _wrapped(rows: Sequence[Sequence[str]], column: int) -> list[str]:
    """Columns of which the last, `column`, continues on lines of its own."""
    rows = [[escaped(str(cell)) for cell in row] for row in rows]
    others = sum(max((len(row[at]) for row in rows), default=0) + 2 for at in range(column))
    filled = []
    for row in rows:
        first, *more = _filled(row[column], others) or [""]
        filled.append([*row[:column], first])
        filled += [[""] * column + [line] for line in more]
    return columns(filled, "<" * (column + 1)) if filled else []


def _filled(words: str, indent: int) -> list[str]:
    return textwrap.wrap(escaped(words), max(30, WIDTH - indent), break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
