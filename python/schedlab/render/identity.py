"""Which row fits a recorded kernel, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedlab.guests.identity import Identity
from schedlab.native.replayed import Report, Side
from schedlab.render.agreement import matrix
from schedlab.render.cells import plural

IDENTITY_SCHEMA = "schedlab.identity/1"

SIDES: Sequence[Side] = ("picks", "preemptions")
NAMED_FROM = 0.5
"""A row is named only if it decides at least this share of the picks, and of the preemptions, as the kernel did."""
FEWEST_PICKS = 10
"""A row is named only if so many picks can be judged: preemptions alone do not distinguish rows."""
RUN_TIMES = "run times (sched_stat_runtime)"
"""Without any of these no row is named: the vruntimes of every row are guesses then, and what fits best is chance."""


def document(ranked: Sequence[Report]) -> dict[str, Any]:
    """The rows that fit best, none if none fits, and every row's report, best first."""
    return {"schema": IDENTITY_SCHEMA, "fits": [r["row"] for r in named(ranked)], "reports": list(ranked)}


def text(source: str, ranked: Sequence[Report], left: Sequence[str] = ()) -> str:
    """The answer and what to do about it, where the best row and the next one depart from the kernel, and every row.

    `left` are the rows that were not tried before the command was interrupted.
    """
    best = best_of(ranked)
    others = [r for r in ranked if r not in best]
    lines = [f"so far, without {plural(len(left), 'row')} that were not tried: {', '.join(left)}"] if left else []
    lines += [_answer(best) if named(ranked) else _no_answer(ranked), *_advice(ranked), *tried(ranked)]
    if _judged(ranked[0]):
        lines += [departure(r) for r in (best[0], *others[:1])]
    return "\n".join([*lines, "", matrix(source, ranked)])


def known(ranked: Sequence[Report]) -> Identity:
    """The answer about the kernel that is stored for the arms."""
    best = best_of(ranked)
    return Identity(tuple(str(r["row"]) for r in best), f"{agreement(best[0])}, on one CPU")


def agreement(r: Report) -> str:
    """The three counts: `2,256 of 2,256 picks, ...`."""
    steps, events = r["vruntime"], r["state"]["events"]
    pairs = [("picks", r["picks"]["agreed"], r["picks"]["decisions"])]
    pairs += [("preemptions", r["preemptions"]["agreed"], r["preemptions"]["decisions"])]
    pairs += [("steps of vruntime", steps["equal"], steps["compared"])] if steps["compared"] else []
    pairs += [("events with state", events["agreed"], events["decisions"])] if events["decisions"] else []
    return ", ".join(f"{agreed:,} of {asked:,} {what}" for what, agreed, asked in pairs)


def named(ranked: Sequence[Report]) -> list[Report]:
    """The first row and those that fit as well, if they explain enough of the kernel to be named."""
    enough = all(share(ranked[0], side) >= NAMED_FROM for side in SIDES) and RUN_TIMES not in ranked[0]["missing"]
    return best_of(ranked) if enough and int(ranked[0]["picks"]["decisions"]) >= FEWEST_PICKS else []


def _judged(r: Report) -> int:
    """How many decisions were judged, or could not be explained."""
    return sum(asked(r, side) for side in SIDES)


def asked(report: Report, side: Side) -> int:
    """The decisions of a side that the row was held to: those that it judges, those that it cannot explain, and those
    that unknown lags were solved from, which show nothing: some lag fits them under any row."""
    return report[side]["decisions"] + report["unexplained"][side] + report["solved"][side]


def share(report: Report, side: Side) -> float:
    """The decisions of a side that agree without any lag solved from them, 0 to 1."""
    held = asked(report, side)
    return float(report[side]["agreed"] / held) if held else 1.0


def followed(report: Report) -> float:
    """The share of the records that the row followed, 0 to 1."""
    found = report.get("tried")
    return found["followed"] / found["sampled"] if found and found["sampled"] else 1.0


def tried(ranked: Sequence[Report]) -> list[str]:
    """How much of the trace the rows were tried on, if not on all of it."""
    found = ranked[0].get("tried")
    if not found:
        return []
    lines = []
    if found["left_out"] or not found["to_the_end"]:
        of = found["sampled"] + found["left_out"]
        more = "" if found["to_the_end"] else "first "
        lines.append(f"tried on parts of the trace: {found['sampled']:,} of its {more}{of:,} records")
    short = [r for r in ranked if followed(r) < 1.0]
    if short:
        least, most = (f"{100 * of(map(followed, short)):.0f}%" for of in (min, max))
        span = least if least == most else f"{least} to {most}"
        lines.append(
            f"the search for unknown lags is bounded: {plural(len(short), 'row')} followed {span} of these records"
        )
    return lines


def _no_answer(ranked: Sequence[Report]) -> str:
    best = ranked[0]
    if not _judged(best):
        t = best["trace"]
        return (
            f"no row can be named: {t['records']:,} records in {t['span_ns'] / 1e9:.3f} s show no decision that can be "
            "judged (the first 10 ms do not count, and a pick needs two tasks that compete for a CPU)"
        )
    if RUN_TIMES in best["missing"]:
        return (
            "no row can be named: the trace lacks run times (sched_stat_runtime), without which no row knows the "
            "vruntimes that the kernel compared; which row fits best is chance"
        )
    agreed, judged = (int(best["picks"][key]) for key in ("agreed", "decisions"))
    if judged < FEWEST_PICKS:
        return (
            f"no row can be named: {plural(judged, 'pick')} can be judged, at least {FEWEST_PICKS} are needed "
            "(a pick needs two tasks that compete for a CPU)"
        )
    unexplained = best["unexplained"]["picks"]
    return (
        f"no row can be named: the best, {best['row']}, decides {agreed:,} of {judged + unexplained:,} picks in the "
        "same way; the trace lacks what the rows need to judge more, or no row is this kernel's"
    )


def _advice(ranked: Sequence[Report]) -> list[str]:
    """What to do where the answer is none, or not certain, or about a kernel that has no row."""
    best, release = ranked[0], ranked[0]["trace"]["kernel"]
    if best.get("missing") or not named(ranked):
        return [
            "to do: identify the image, or a trace of `schedlab record` in a guest, which has all that the rows need"
        ]
    if not release or best["recorded_row"]:
        return []
    if departs(best):
        return [
            f"{release} has no row of its own; where {best['row']} departs from it: docs/guides/add-a-kernel-row.md"
        ]
    return [f"{release} has no row of its own; it decides as {best['row']} does: `--kernel {best['row']}`"]


def best_of(ranked: Sequence[Report]) -> list[Report]:
    """The first row and those that fit as well as it does."""
    return [r for r in ranked if _numbers(r) == _numbers(ranked[0])]


def _numbers(r: Report) -> tuple[Any, ...]:
    scores = (r["picks"], r["preemptions"], r["state"]["events"])
    return (*((s["agreed"], s["decisions"]) for s in scores), r["vruntime"]["equal"])


def _answer(best: Sequence[Report]) -> str:
    names = ", ".join(r["row"] for r in best)
    if len(best) > 1:
        return f"rows {names} fit equally well: this load does not distinguish them"
    return f"row {names} fits best"


def departs(r: Report) -> bool:
    """Whether any decision or number of the trace is another under the row."""
    return bool(r["disagreements"] or r["state"]["first"] or r["vruntime"]["first"] or any(r["unexplained"].values()))


def departure(r: Report) -> str:
    """The first decision that differs, else the first state, with both kernels' numbers."""
    if r["disagreements"]:
        d = r["disagreements"][0]
        numbers = ", ".join(f"{name} {value}" for name, value in d["compared"])
        feature = f" [{d['feature']}]" if d["feature"] else ""
        rule = f" by the rule: {d['rule']}{feature} ({numbers})" if d["rule"] else ""
        said = f"the kernel said {d['kernel']}, the row {d['model']}{rule}"
        return f"row {r['row']}: first different decision at {d['time_ns'] / 1e9:.6f} s, {d['kind']}: {said}"
    if r["state"]["first"]:
        s = r["state"]["first"][0]
        both = f"{s['what']} is {s['kernel']} in the kernel and {s['model']} in the row"
        return f"row {r['row']}: every decision agrees; first different state at {s['time_ns'] / 1e9:.6f} s: {both}"
    if r["vruntime"]["first"]:
        step = r["vruntime"]["first"][0]
        both = f"vruntime moves by {step['kernel_step']} in the kernel and by {step['model_step']} in the row"
        return f"row {r['row']}: every decision agrees; first different state at {step['time_ns'] / 1e9:.6f} s: {both}"
    return f"row {r['row']}: every decision and every number that the trace shows agrees"
