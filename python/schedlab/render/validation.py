"""How far the simulator is from a kernel, as text, as a page of the documentation, and as JSON: worst values first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath

from schedlab import documents
from schedlab.render.cells import enumeration
from schedlab.render.grid import NOTHING, columns, percent, size, value
from schedlab.validity.effects import NEAR, Effect
from schedlab.validity.errors import of_validation
from schedlab.validity.rows import GOALS, Row
from schedlab.validity.validation import Validation, rates, summary


def text(found: Validation) -> str:
    """For a terminal."""
    rows, effects = found.rows, found.effects
    blocks = [f"simulated against measured on {found.where}, {len({r.scenario for r in rows})} scenarios"]
    blocks.append("\n".join(columns(summary(rows, effects), "<>>>><>")))
    blocks.append("\n".join(_sentences(effects)))
    blocks.append("\n".join(columns(_errors(found), "<>>>>>")))
    blocks.append("\n".join(columns(_rows(rows), "<<<>>>><")))
    blocks.append("\n".join(columns(_effects(effects), "<<<>>>><<")))
    if found.failures:
        blocks.append("\n".join(["runs that failed and are not in the numbers:", *found.failures]))
    return "\n\n".join(blocks)


def page(sets: Sequence[tuple[Validation, str]]) -> str:
    """Markdown, computed from stored validations alone, each with the file it is stored in."""
    files = enumeration([f"`{file}`" if file else "runs that were not stored" for _, file in sets])
    intro = (
        f"`schedlab validate --stored --out docs/validation.md` writes this page from {files}; nothing in it is edited\n"  # noqa: E501
        "by hand. The error is that of the simulated value against the measured one, with the Hodges-Lehmann estimate\n"
        "and its 95% interval over seeds. The worst values come first and none is left out. [arms.md](arms.md) explains\n"  # noqa: E501
        "how real kernels are measured."
    )
    parts = ["# How far the simulator is from the kernel", intro]
    for found, file in sets:
        parts += _set(found, f"## The set {PurePath(file).stem}" if len(sets) > 1 else None)
    return "\n\n".join(parts) + "\n"


def _set(found: Validation, title: str | None) -> list[str]:
    """The parts of the page about one validation; its title is given if there are several."""
    rows, effects, deep = found.rows, found.effects, "##" if title is None else "###"
    parts = [
        *([title] if title else []),
        _provenance(found),
        _markdown(summary(rows, effects)),
        "\n".join(_sentences(effects)),
        f"{deep} Model errors",
        "The ratio of two variants is too large or too small when simulated: the *gap* has a sign. Half and twice the\n"
        "measured ratio are equally wrong, so the *error* of a change is the factor between the two ratios, the larger over the\n"  # noqa: E501
        "smaller: gaps of +100% and of -50% are both errors of 100%, since 1 / (1 - 0.5) is 2. Tables and pages of\n"
        "`schedlab compare` show the worst of a family.",
        _markdown(_errors(found)),
        f"{deep} Changes between variants",
        "A change of more than 5% that is certain when measured must be certain, with the same sign, when simulated, and\n"  # noqa: E501
        "the reverse. `WRONG` is the other sign, `not shown` a change that the other arm does not show with certainty.",
        _markdown(_effects(effects)),
        f"{deep} Every value",
        _markdown(_rows(rows)),
    ]
    if found.failures:
        parts += [f"{deep} Runs that failed", "\n".join(f"- {line}" for line in found.failures)]
    return parts


def document(found: Validation) -> str:
    """Plain rows."""
    shown = {
        "schema": "schedlab.validate/1",
        "ran_on": found.where,
        "goals": dict(GOALS),
        "rates": rates(found.effects),
        "model_errors": [asdict(error) for error in of_validation(found)],
        "rows": [{**asdict(row), "missed": row.missed} for row in _worst_first(found.rows)],
        "effects": [_effect(effect) for effect in found.effects],
        "failures": found.failures,
    }
    return documents.dumps(shown, indent=1)


def _effect(effect: Effect) -> dict[str, object]:
    return {
        **asdict(effect),
        "of_measured": effect.of_measured,
        "of_simulated": effect.of_simulated,
        "gap": effect.gap,
        "error": effect.error,
    }


def _provenance(found: Validation) -> str:
    kernels = ", ".join(f"{row} is {release}" for row, release in found.kernels.items())
    lines = [f"Measured on {found.where}: {_made(found.measured)}. Kernel rows and what was measured: {kernels}."]
    lines.append(f"Simulated with costs calibrated on the same machine: {_made(found.simulated)}.")
    return "\n".join(lines)


def _made(made: dict[str, object]) -> str:
    return ", ".join(f"{key} {made[key]}" for key in ("date", "schedlab", "host", "command") if made.get(key))


def _sentences(effects: Sequence[Effect]) -> list[str]:
    """Both rates in words."""
    lines = []
    for of, other in (("measured", "simulated"), ("simulated", "measured")):
        n = rates(effects)[of]
        lines.append(
            f"Of {n['judged']} changes that are certain and above 5% when {of}, {n['same']} have the same sign with "
            f"certainty when {other}, {n['near']} of them within a factor of {NEAR:g}; with the opposite sign: "
            f"{n['WRONG']}; not shown: {n['not shown']}."
        )
    return lines


def _errors(found: Validation) -> list[list[str]]:
    table = [["family", "CPUs", "changes", "half within", "worst"]]
    for e in sorted(of_validation(found), key=lambda e: -e.error_pct):
        sizes = (size(x) for x in (e.median_pct, e.error_pct))
        table.append([e.family, str(e.cpus), str(e.changes), *sizes])
    return table


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
    table = [
        [
            "scenario",
            "variants",
            "metric",
            "simulated",
            "measured",
            "gap",
            "error",
            "measured, then simulated",
            "and back",
        ]
    ]
    order = {"WRONG": 0, "not shown": 1, "same": 2, None: 3}

    def rank(e: Effect) -> tuple[int, float]:
        return min(order[e.of_measured], order[e.of_simulated]), -abs(e.log_gap or 0)

    for e in sorted(effects, key=rank):
        words = (word or NOTHING for word in (e.of_measured, e.of_simulated))
        sizes = (_size(e.simulated.percent, e.simulated.certain), _size(e.measured.percent, e.measured.certain))
        error = NOTHING if e.error is None else size(e.error)
        table.append([e.scenario, f"{e.b} against {e.a}", e.metric, *sizes, percent(e.gap), error, *words])
    return table


def _size(change: float | None, certain: bool) -> str:
    """A change that is not certain in brackets."""
    return percent(change) if certain or change is None else f"({percent(change)})"


def _markdown(table: Sequence[Sequence[str]]) -> str:
    head, *rest = table
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
