"""How far the simulator lies from a kernel, as text, as a page for the documentation, and as JSON: worst rows first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from schedlab import documents
from schedlab.arms.validate import GOALS, Effect, Row, Validation, summary
from schedlab.render.grid import NOTHING, columns, percent, value


def text(found: Validation) -> str:
    """For a terminal."""
    rows, effects = found.rows, found.effects
    blocks = [f"simulated against measured on {found.where}, {len({r.scenario for r in rows})} scenarios"]
    blocks.append("\n".join(columns(summary(rows, effects), "<>>>>><")))
    blocks.append("\n".join(columns(_rows(rows), "<<<>>>><")))
    blocks.append("\n".join(columns(_effects(effects), "<<<>>><")))
    if found.failures:
        blocks.append("\n".join(["runs that failed and are not in the numbers:", *found.failures]))
    return "\n\n".join(blocks)


def page(found: Validation, command: str) -> str:
    """Markdown, whole."""
    rows, effects = found.rows, found.effects
    parts = [
        "# How far the simulator is from the kernel",
        f"Written by `{command}`, measured on {found.where}. An error is the simulated value\n"
        "against the measured one; its interval is of the Hodges-Lehmann estimate over seeds. Worst rows first;\n"
        "nothing is left out. [arms.md](arms.md) says how this is measured.",
        _markdown(summary(rows, effects)),
        "## Effects of the variants",
        "An effect over 5% that was certain when measured must have the same sign when simulated. The gap is how much\n"
        "larger the ratio of the two variants is when simulated.",
        _markdown(_effects(effects)),
        "## Every metric",
        _markdown(_rows(rows)),
    ]
    if found.failures:
        parts += ["## Runs that failed", "\n".join(f"- {line}" for line in found.failures)]
    return "\n\n".join(parts) + "\n"


def document(found: Validation) -> str:
    """Plain rows."""
    shown = {
        "schema": "schedlab.validate/1",
        "ran_on": found.where,
        "goals": dict(GOALS),
        "rows": [{**asdict(row), "missed": row.missed} for row in _worst_first(found.rows)],
        "effects": [{**asdict(effect), "agrees": effect.agrees, "gap": effect.gap} for effect in found.effects],
        "failures": found.failures,
    }
    return documents.dumps(shown, indent=1)


def _worst_first(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -abs(row.error) if row.error is not None else 1.0)


def _rows(rows: Sequence[Row]) -> list[list[str]]:
    table = [["scenario", "variant", "metric", "simulated", "measured", "error", "95% interval", ""]]
    for r in _worst_first(rows):
        points = r.family == "CPU share"
        error = NOTHING if r.error is None else f"{r.error:+.2f} points" if points else percent(r.error)
        interval = f"{percent(r.interval.low)} .. {percent(r.interval.high)}" if r.interval else NOTHING
        unit = f" {r.unit}" if r.unit else ""
        note = "; ".join(word for word in ("missed" if r.missed else "", r.note) if word)
        shown = [f"{value(x)}{unit}" if x is not None else NOTHING for x in (r.simulated, r.measured)]
        table.append([r.scenario, r.variant, r.metric, *shown, error, interval, note])
    return table


def _effects(effects: Sequence[Effect]) -> list[list[str]]:
    table = [["scenario", "variants", "metric", "simulated", "measured", "gap", "sign"]]
    order = {False: 0, True: 1, None: 2}
    for e in sorted(effects, key=lambda e: (order[e.agrees], -abs(e.gap or 0))):
        sign = {True: "same", False: "WRONG", None: "small or uncertain"}[e.agrees]
        variants = f"{e.b} against {e.a}"
        table.append([e.scenario, variants, e.metric, percent(e.simulated), percent(e.measured), percent(e.gap), sign])
    return table


def _markdown(table: Sequence[Sequence[str]]) -> str:
    head, *rest = table
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
