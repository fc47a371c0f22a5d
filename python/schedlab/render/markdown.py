"""A Markdown table for a commit message, an issue or a mail: one row per metric and pair, remarks below it."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.comparison import Comparison
from schedlab.render import notes
from schedlab.render.cells import change, headline, interval, model_error, noise_floor
from schedlab.render.grid import value


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """The whole text, without a final newline."""
    del colour
    simulated = any(m.model for m in comparison.metrics)
    floor = any(m.noise_floor for m in comparison.metrics)
    blocks = [f"**{_plain(headline(comparison))}**"]
    if comparison.setup:
        blocks.append("\n".join(f"- {_plain(f'{fact.name}: {fact.text}')}" for fact in comparison.setup))
    for a, b in comparison.pairs:
        head = ["metric", "unit", a, b, "change", "95% interval"]
        head += ["model error"] * simulated + ["noise floor"] * floor + ["verdict"]
        rows = [head, ["---", "---", *(["---:"] * (len(head) - 3)), "---"]]
        for m in comparison.metrics:
            for j in m.comparisons:
                if (j.a, j.b) == (a, b):
                    medians = [value(j.difference.median_a), value(j.difference.median_b)]
                    extra = [model_error(m)] * simulated + [noise_floor(m)] * floor
                    rows.append([m.metric.name, m.metric.unit, *medians, change(j), interval(j), *extra, j.verdict])
        blocks.append("\n".join(_row(cells) for cells in rows))
    below = notes.below(comparison)
    return "\n\n".join([*blocks, *(["\n".join(f"- {_plain(line.strip())}" for line in below)] if below else [])])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell if set(cell) <= set("-:") else _plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Without anything that Markdown takes for markup."""
    return "".join(f"\\{c}" if c in "\\|*`~<>[]" else c for c in text)
