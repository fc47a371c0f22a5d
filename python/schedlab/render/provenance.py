"""Where the numbers of a page come from, and the command that makes them again."""

from __future__ import annotations

from schedlab.comparison import Comparison
from schedlab.render.markup import cells, details, escape, facts, items, table

METHOD = (
    "The unit is the seed and differences are paired. A change is the Hodges-Lehmann estimate of the paired ratio; "
    "its 95% interval is the one that Wilcoxon's signed-rank test does not reject. Equivalent: the interval lies "
    "within the margin. No interval is adjusted for the others: among many metrics some exclude 0 by chance."
)


def provenance(c: Comparison) -> str:
    """Machine, kernels, seeds, versions, digests, and how to repeat it."""
    machine = c.scenario.machine
    found = {
        "repeat with": str(c.provenance.get("command") or f"schedlab compare {c.scenario.file}"),
        "arm": c.arm_word,
        "machine": f"{machine.name}: {machine.summary}" + ("" if machine.calibrated else " (uncalibrated costs)"),
        "kernels": ", ".join(f"{col.name} = {col.kernel}" for col in c.columns),
        "seeds": ", ".join(map(str, c.seeds)),
        "scenario": c.scenario.file,
        "engine": c.engine,
        **{key: str(text) for key, text in c.provenance.items() if key != "command"},
        "stored in": str(c.path) if c.path else "not stored",
    }
    sources = details("Where the machine's numbers come from", items(machine.sources)) if machine.sources else ""
    file = c.scenario.description.get("text")
    text = details("The scenario file", f"<pre>{_lines(str(file))}</pre>") if file else ""
    known = facts(list(found.items()))
    return f"<h2>Where this comes from</h2>{known}{text}{sources}{_digests(c)}<p>{METHOD}</p>"


def _lines(text: str) -> str:
    return "\n".join(escape(line) for line in text.split("\n"))


def _digests(c: Comparison) -> str:
    head = ["seed", *(col.name for col in c.columns)]
    rows = [
        cells(head, [str(seed), *(col.runs[seed].digest if seed in col.runs else "-" for col in c.columns)])
        for seed in c.seeds
    ]
    return details(
        "Digests of the traces", table("The same scenario, seed and engine give the same digest", head, rows)
    )
