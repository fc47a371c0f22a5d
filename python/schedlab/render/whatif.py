"""The tables of `schedlab whatif`: what was recorded, what its simulation gives, and what is predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab.render.cells import plural
from schedlab.render.grid import WIDTH, columns, fold, size, value

if TYPE_CHECKING:
    from schedlab.whatif.predict import Prediction, Row

SHORT = {
    "latency_p50": "p50, us",
    "latency_p99": "p99, us",
    "cpu": "CPU, %",
    "switches": "switches/s",
    "wakeups": "wakeups/s",
}
REFUSED = "refused"


def render(prediction: Prediction, width: int = WIDTH) -> str:
    """The whole text."""
    blocks = ["\n".join(_head(prediction)), *(_table(prediction, variant, width) for variant in prediction.variants)]
    blocks += ["\n".join(lines) for lines in (_refusals(prediction), _notes(prediction)) if lines]
    return fold("\n\n".join(blocks), width)


def _head(p: Prediction) -> list[str]:
    e = p.extraction
    shares = ", ".join(f"{words} {share:.0%}" for words, share in p.causes.items() if share >= 0.005)
    tasks = sum(len(pool["tasks"]) for pool in e["pools"])
    return [
        f"{p.trace}: {e['release']} (row {e['row']}), {plural(e['cpus'], 'CPU')}, {e['span'] / 1e9:.2f} s, "
        f"{e['records']:,} records",
        f"extracted: {plural(tasks, 'task')}; what ended their waits: {shares or 'nothing'}",
    ]


def _table(p: Prediction, variant: str, width: int) -> str:
    head = ["", "recorded", "simulated", "error", "predicted", "change", "verdict"]
    rows, before = [head], ""
    for row in p.rows:
        if row.pool != before:
            before = row.pool
            rows.append([row.pool, *[""] * 6])
        rows.append([f"  {SHORT[row.kind]}", *_numbers(row, variant)])
    return "\n".join([f"for {p.variants[variant]}:", *columns(rows, "<>>>>><", width=width)])


def _numbers(row: Row, variant: str) -> list[str]:
    error = "-" if row.error_pct is None else size(row.error_pct)
    shown = [value(row.recorded), value(row.simulated), error]
    if row.refused:
        return [*shown, "-", "-", REFUSED]
    a, b = row.simulated, row.predicted[variant]
    change = "-" if not a or b is None else f"{100 * (b / a - 1):+.0f}%"
    return [*shown, value(b), change, row.outcome(variant)]


def _refusals(p: Prediction) -> list[str]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in p.rows:
        if row.refused:
            kind = SHORT[row.kind].partition(",")[0].partition("/")[0]
            found.setdefault((row.pool, row.refused.reason, row.refused.helps), []).append(kind)
    return [f"refused: {pool} {', '.join(kinds)}: {why}; {helps}" for (pool, why, helps), kinds in found.items()]


def _notes(p: Prediction) -> list[str]:
    lines = [f"the recording lacks {note}" for note in p.extraction["notes"]]
    if p.hidden:
        lines.append(f"{plural(p.hidden, 'pool')} with under 1% of the CPU time and 100 wakeups not shown (--all)")
    lines.append(
        f"predicted: median of {plural(p.seeds, 'seed')}; error: the distance of the simulation of the recorded kernel "
        "from the recording, which every prediction has at least"
    )
    return lines
