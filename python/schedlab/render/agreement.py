"""A replay's reports as text and as a document: what agreed least comes first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from schedlab.native.replayed import (
    BalanceReport,
    Disagreement,
    Field,
    Part,
    PlacementReport,
    Report,
    Score,
    StateScores,
    TaskCounts,
)
from schedlab.render.cells import plural
from schedlab.render.explanation import whom, why_lines
from schedlab.render.grid import WIDTH, columns
from schedlab.render.queue import task
from schedlab.render.resched import resched

REPLAY_SCHEMA = "schedlab.replay/3"

NO_TASK = "no task of the fair class"


def document(trace: str, reports: Sequence[Report]) -> dict[str, Any]:
    """Everything that was counted; keys may be added, never renamed."""
    return {"schema": REPLAY_SCHEMA, "file": trace, "reports": list(reports)}


def report(trace: str, r: Report, *, state: bool = False) -> str:
    """One row on one trace; `state` also shows where the model's state first differs from the probed state."""
    blocks = [
        _head(trace, r),
        _scores(r),
        *_placements(r["placements"]),
        *_balances(r["balances"]),
        *resched(r.get("resched")),
        "\n".join(_remarks(r)),
    ]
    blocks += [_states(r["state"])] if state else []
    blocks += [_disagreement(d) for d in r["disagreements"]]
    return "\n\n".join(blocks)


def explanation(trace: str, r: Report) -> str:
    """Why a task waits at a moment: the words of `explain`, numbers by the row, events by the kernel."""
    answer = r["explanation"]["why"]
    lines = [f"{trace}, row {answer['kernel']}, at {answer['at_ns'] / 1e9:.9f} s", *why_lines(answer)]
    if answer["agrees"] is False:
        runner = NO_TASK if answer["runner"] is None else task(answer["runner"], answer["tasks"])
        # One decision for each level of groups; the last one is that of the task.
        picked = whom(answer["picked"][-1], answer) if answer["picked"] else NO_TASK
        lines.append(f"the kernel ran {runner}; the row would have picked {picked}")
    return "\n".join(lines)


def matrix(trace: str, reports: Sequence[Report]) -> str:
    """Every row on one trace, the best row first: the recorded kernel's own should be it."""
    rows = [["row", "picks", "share", "preemptions", "share", "unjudged", "state", ""]]
    recorded = next((r for r in reports if r["row"] == r["recorded_row"]), None)
    for r in sorted(reports, key=lambda r: (-_both(r), -_state(r), r is not recorded)):
        tie = recorded is not None and (_both(r), _state(r)) == (_both(recorded), _state(recorded))
        mark = "recorded" if r is recorded else "equal here" if tie else ""
        cells = [word for side in ("picks", "preemptions") for word in _counts(r[side])[::2]]
        rows.append([r["row"], *cells, _share(r["unjudged_share"]), _shown(r), mark])
    lines = [*_unreliable(reports[0]), _trace(trace, reports[0]), "", *columns(rows, "<>>>>>><")]
    if not any(r["recorded_row"] for r in reports):
        lines += ["", "the recorded kernel: row not modelled yet"]
    return "\n".join(lines)


def _head(trace: str, r: Report) -> str:
    row, own = r["row"], r["recorded_row"]
    missing = "the recorded kernel: row not modelled yet" if r["trace"]["kernel"] else "the trace names no kernel"
    fits = {row: "the row of this kernel", None: missing}
    lines = [*_unreliable(r), _trace(trace, r), f"row {row}, {fits.get(own, f'while the row of this kernel is {own}')}"]
    if row == own:
        lines += [f"warning: {word}" for word in r["refused"]]
    if r["trace"]["sessions"]:
        lines.append(
            "warning: autogroup is enabled; tasks whose group the trace does not name count as in the root group"
        )
    if lost := r["trace"]["lost"]:
        lines.append(f"warning: at least {plural(lost, 'record')} missing from the trace; the model was reset there")
    if placed := r["trace"]["wakeups_placed"]:
        ends = f"the ends of {placed:,} wakeups were placed by the records around them"
        lines.append(f"note: the trace has no sched_wakeup; {ends}")
    return "\n".join(lines)


def _unreliable(r: Report) -> list[str]:
    """What replay needs and the trace lacks, and what is not judged because of it, come before every number."""
    lines = [f"unreliable: the trace lacks {', '.join(r['missing'])}"] if r.get("missing") else []
    if unexplained := r["unexplained"]["picks"] + r["unexplained"]["preemptions"]:
        lines.append(f"unreliable: no lag was found that explains {unexplained:,} decisions; they are not judged")
    return lines


def _trace(trace: str, r: Report) -> str:
    t = r["trace"]
    kernel = t["kernel"] or "an unknown kernel"
    cpus = "1 CPU" if t["cpus"] == 1 else f"{t['cpus']} CPUs"
    return f"{trace}: {kernel}, {cpus}, {t['records']:,} records, {t['span_ns'] / 1e9:.6f} s"


def _scores(r: Report) -> str:
    both = [("preemptions", r["preemptions"]), ("contested picks", r["picks"])]
    parts = [(_title(part), part["score"]) for group in ("kinds", "cpus", "nice") for part in _divided(r[group])]
    baselines = [
        ("picks by FIFO", r["baselines"]["fifo"]),
        ("picks by LIFO", r["baselines"]["lifo"]),
        ("picks by keeping what runs", r["baselines"]["keep_running"]),
        ("picks by lowest pid", r["baselines"]["lowest_pid"]),
        ("never preempting", r["baselines"]["never_preempts"]),
    ]
    rows = [["decisions", "judged", "agreed", "share", "95% interval"]]
    for label, scores in (("", both), ("of which", parts), ("simple rules instead", baselines)):
        if not scores:
            continue
        rows += [[label, "", "", "", ""]] if label else []
        indent = "  " if label else ""
        rows += [[indent + name, *_counts(score), _interval(score)] for name, score in _worst_first(scores)]
    return "\n".join(columns(rows, "<>>><"))


def _balances(b: BalanceReport) -> list[str]:
    """Balancing passes that found an imbalance, and the simple rules, if the trace shows them."""
    if not b["decisions"] and not b["quiet"]:
        return []
    rows = [["balancing", "judged", "agree", "share", "95% interval"]]
    rows.append(["same CPU and tasks", *_counts(b), _interval(b)])
    parts = [(f"  {part['name']}", part["score"]) for part in b["kinds"]]
    simple = b["baselines"]
    parts += [
        ("same CPU", b["source"]),
        ("one task from the busiest CPU", simple["most_tasks"]),
        ("pull nothing", simple["never"]),
    ]
    rows += [[name, *_counts(score), _interval(score)] for name, score in parts]
    lines = ["\n".join(columns(rows, "<>>>>")), f"{b['quiet']:,} passes found no imbalance, in kernel and model"]
    lines += [f"  {part['count']:,} {part['kind']} not judged: {part['reason']}" for part in b["unjudged"]]
    for m in b["disagreements"]:
        who = f"{m['time_ns'] / 1e9:.6f} s, cpu{m['cpu']} {m['kind']}"
        lines.append(f"  {who}: kernel {m['kernel']}, model {m['model']}")
    return ["\n".join(lines)]


def _placements(p: PlacementReport) -> list[str]:
    """The CPUs selected for tasks that wake, fork or exec and may use several; nothing where no probe shows that."""
    if not p["decisions"] and not p["unjudged"]:
        return []
    baselines = [
        ("the previous CPU", p["baselines"]["prev"]),
        ("the lowest idle CPU", p["baselines"]["lowest_idle"]),
        ("the waker's CPU", p["baselines"]["waker"]),
    ]
    kinds = [(f"{part['name']}s", part["score"]) for part in p["kinds"]]
    whole = [("all", p), ("wakeups that leave the previous CPU", p["moved"])]
    rules = [(part["name"], part["score"]) for part in p["rules"]]
    rows = [["CPUs selected", "judged", "agreed", "share", "95% interval"]]
    for label, scores in (("", [*whole, *kinds]), ("by the row's rule", rules), ("simple rules instead", baselines)):
        rows += [[label, "", "", "", ""]] if label else []
        indent = "  " if label else ""
        rows += [[indent + name, *_counts(score), _interval(score)] for name, score in _worst_first(scores)]
    lines = columns(rows, "<>>><")
    if not p["topology_recorded"]:
        lines.append("the header does not describe the topology: one core per CPU under one cache is assumed")
    lines += [f"not judged: {part['count']:,} {part['kind']}s, {part['reason']}" for part in p["unjudged"]]
    for m in p["disagreements"]:
        sync = ", sync" if m["sync"] else ""
        idle = f"CPUs {m['idle']} idle" if m["idle"] else "no CPU idle"
        asked = f"{m['kind']} of pid {m['pid']} from CPU {m['prev_cpu']} on CPU {m['waker_cpu']}{sync}, {idle}"
        line = f"{m['time_ns'] / 1e9:.6f} s, {asked}: kernel CPU {m['kernel']}, row CPU {m['model']}"
        numbers = ", ".join(f"{name} {value}" for name, value in m["compared"])
        lines.append(f"{line} ({m['rule']}; {numbers})")
    return ["\n".join(lines)]


def _divided(parts: Sequence[Part]) -> list[Part]:
    """The parts, without those that equal the whole."""
    sides = [part["of"] for part in parts]
    return [part for part in parts if sides.count(part["of"]) > 1]


def _worst_first(scores: Iterable[tuple[str, Score]]) -> list[tuple[str, Score]]:
    """Parts without judged decisions come last."""
    return sorted(scores, key=lambda s: (s[1]["decisions"] == 0, s[1]["share"], -s[1]["decisions"]))


def _title(part: Part) -> str:
    name, of = str(part["name"]), str(part["of"])
    return "picks" if name == of else f"{name} {of}s"


SPANS = 5
"""How many series of decisions that cannot be judged are shown."""


def _remarks(r: Report) -> Iterable[str]:
    warm_up = f"after a warm-up of {r['warm_up_ns'] / 1e6:g} ms with {r['in_warm_up']:,} decisions"
    yield f"unjudged: {_share(r['unjudged_share'])}, {warm_up}"
    for part in sorted(r["unjudged"], key=lambda part: -part["count"]):
        yield f"  {part['count']:,} {part['kind']}: {part['reason']}"
    if spans := r["unjudged_spans"][:SPANS]:
        yield "where most decisions in a row are not judged:"
    for span in spans:
        when = f"{span['from_ns'] / 1e9:.6f} to {span['to_ns'] / 1e9:.6f} s"
        yield f"  cpu{span['cpu']}, {when}: {span['count']:,}, {span['reason']}"
    steps, state = r["vruntime"], r["state"]
    if steps["compared"]:
        yield f"vruntime: {steps['equal']:,} of {steps['compared']:,} steps equal to the nanosecond"
        for step in steps["first"]:
            grown = f"kernel {step['kernel_step']:+}, model {step['model_step']:+}"
            yield f"  {step['time_ns'] / 1e9:.6f} s, pid {step['pid']}: {grown}"
    if shown := state["events"]["decisions"]:
        yield f"state: {state['events']['agreed']:,} of {shown:,} events with equal state, to the nanosecond"
    yield _tasks(r["tasks"])
    for group, title in INPUT_GROUPS.items():
        named = [f"{i['count']:,} {i['name']}" for i in r["inputs"] if i["group"] == group]
        yield _wrap(f"{title}: {', '.join(named) or 'nothing'}")
    looks = [f"{look['records']:,} {look['name']}" for look in r["look_ahead"]]
    yield _wrap(f"records for which later ones were consulted: {', '.join(looks) or 'none'}")
    if r["desyncs"]:
        yield f"desync: {r['desyncs']:,} times the trace had a task on another CPU or queue than the model"


INPUT_GROUPS = {
    "state": "state taken from the trace",
    "state_again": "state read from the trace again",
    "operation": "other inputs from the trace",
}
"""The inputs that the model took from the trace, most critical first."""


def _wrap(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False))


FIELDS: Sequence[Field] = ("vruntime", "deadline", "lag", "zero", "sum", "weight", "count")
"""Of an entity, then of its queue: zero_vruntime, sum_w_vruntime, sum_weight, nr_queued."""


def _states(state: StateScores) -> str:
    """Every field compared, and the first events that differ, each by the first field that does."""
    if not state["events"]["decisions"]:
        return "the trace contains no state: it was recorded without probes"
    rows = [["state", "compared", "equal", "share"]]
    rows += [[name, *_counts(state[name])] for name in FIELDS if state[name]["decisions"]]
    blocks = ["\n".join(columns(rows, "<>>>"))]
    if not state["first"]:
        return "\n".join([*blocks, "the model's state equals the kernel's at every event that shows it"])
    rows = [["first at", "cpu", "pid", "event", "what", "kernel", "model minus kernel"]]
    for miss in state["first"]:
        off = f"{_wrapped(miss['model'] - miss['kernel']):+}"
        who = [f"{miss['time_ns'] / 1e9:.6f} s", str(miss["cpu"]), str(miss["pid"])]
        rows.append([*who, miss["event"], miss["what"], str(miss["kernel"]), off])
    return "\n\n".join([*blocks, "\n".join(columns(rows, ">>><<>>"))])


def _tasks(t: TaskCounts) -> str:
    solved = f", {t['solved']:,} unknown lags solved for from decisions" if t["solved"] else ""
    guessed = f", {t['guessed']:,} assumed to be long sleepers" if t["guessed"] else ""
    return f"tasks: {t['seen']:,} seen{solved}{guessed}"


def _disagreement(d: Disagreement) -> str:
    lines = [f"{d['time_ns'] / 1e9:.6f} s, cpu{d['cpu']}, {d['kind']}: kernel {d['kernel']}, model {d['model']}"]
    if d["rule"]:
        feature = f" [{d['feature']}]" if d["feature"] else ""
        numbers = ", ".join(f"{name} {number}" for name, number in d["compared"])
        lines.append(f"  rule: {d['rule']}{feature}; {numbers}")
    if d["avg_vruntime"] is not None:
        lines.append(f"  V is {_wrapped(d['avg_vruntime'] - d['min_vruntime'])} from the queue's zero point")
    rows = [["", "task", "nice", "v", "lag", "deadline", "slice", "ran", "kernel's v", ""]]
    for q in d["queue"]:
        zero = d["min_vruntime"]
        cells = [
            q["key"],
            q["lag"],
            _from(q["deadline"], zero),
            q["slice"],
            q["ran"],
            _from(q["kernel_vruntime"], zero),
        ]
        mark = "asleep" if q["asleep"] else "" if q["known"] else "guessed"
        who = f"{q['name']}-{q['pid']}"
        rows.append([">" if q["running"] else "", who, str(q["nice"]), *map(_or_dash, cells), mark])
    return "\n".join([*lines, *columns(rows, "<<>>>>>>><", indent=2)])


def _both(r: Report) -> float:
    """The share of decisions that agree; one that no lag explains does not."""
    scores = (r["picks"], r["preemptions"])
    asked = sum(s["decisions"] for s in scores) + r["unexplained"]["picks"] + r["unexplained"]["preemptions"]
    return float(sum(s["agreed"] for s in scores) / asked) if asked else 0.0


def _state(r: Report) -> float:
    """The share of equal state: of all probed state, otherwise of the steps of vruntime."""
    events, steps = r["state"]["events"], r["vruntime"]
    if events["decisions"]:
        return float(events["agreed"] / events["decisions"])
    return float(steps["equal"] / steps["compared"]) if steps["compared"] else 0.0


def _shown(r: Report) -> str:
    return _share(_state(r)) if r["state"]["events"]["decisions"] or r["vruntime"]["compared"] else "-"


def _counts(score: Score) -> list[str]:
    judged, agreed = score["decisions"], score["agreed"]
    return [f"{judged:,}", f"{agreed:,}", _share(agreed / judged) if judged else "-"]


def _share(share: float) -> str:
    """A percentage that is never rounded to 0% or 100% unless it is exact."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{min(max(100 * share, 0.01), 99.99):.2f}%"


def _interval(score: Score) -> str:
    return f"{100 * score['low']:.2f} to {100 * score['high']:.2f}%" if score["decisions"] else "-"


def _from(v: int | None, zero: int) -> int | None:
    return None if v is None else _wrapped(v - zero)


def _wrapped(v: int) -> int:
    """A difference of two 64-bit counters, as the kernel subtracts them."""
    return (v + 2**63) % 2**64 - 2**63


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
