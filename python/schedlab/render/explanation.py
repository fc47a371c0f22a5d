"""The answers of `explain` as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from schedlab.native.decisions import Action, CandidateView, DecisionView, Flag
from schedlab.native.explained import Costs, Differing, FirstDifference, Moment, Question, Side
from schedlab.render.grid import WIDTH
from schedlab.render.placement import cpu_list, placement_lines
from schedlab.render.queue import group, ms, queue_lines, task
from schedlab.scenario import Scenario

EXPLAIN_SCHEMA = "schedlab.explain/2"
WHY_SCHEMA = "schedlab.why/2"

_INDENT = " " * 6

FLAGS: Mapping[Flag | None, str] = {"full": "NEED_RESCHED", "lazy": "NEED_RESCHED_LAZY", None: "no flag"}
"""The flag that a request to reschedule sets."""

_COUNTS = {
    "last CPU",
    "waker's CPU",
    "may test",
    "CPUs of the cache",
    "tasks left there",
    "imbalance",
    "size counted",
} | {
    "priority",
    "running priority",
    "next priority",
}
"""Compared numbers that are not times."""

QUESTIONS: Mapping[Question, str] = {
    "preempt_check": "does {task} preempt when it wakes?",
    "tick": "the tick: must {task} be rescheduled?",
    "hrtick": "the slice-end timer: must {task} be rescheduled?",
    "accounting": "update_curr: must {task} be rescheduled?",
    "throttle": "the group of {task} is throttled: must it be rescheduled?",
    "runtime": "is runtime used up on this CPU?",
    "pick": "which task runs next?",
    "placement": "where is {task} placed?",
    "delayed_wakeup": "where is {task} placed? (it woke while its dequeue was delayed)",
    "pull": "is {task} pulled to this CPU?",
    "order": "no decision differs, only {besides}",
}

_ANSWERS: Mapping[Action, str] = {
    "pick": "picks {task}",
    "preempt": "{task} preempts",
    "keep": "{task} waits",
    "expire": "{task} is rescheduled",
    "stay": "{task} keeps running",
    "delay": "{task} stays queued (delayed dequeue)",
    "place": "{task} is placed on CPU {cpu}",
    "pull": "{task} is pulled from CPU {cpu}",
    "skip": "{task} stays on CPU {cpu}",
    "no_newidle": "the CPU skips newidle balancing",
    "search": "a search for an idle CPU for {task}",
    "throttle": "{task} is throttled",
    "unthrottle": "{task} is no longer throttled",
    "leave": "{task} is dequeued",
}


def divergence_document(
    scenario: Scenario, variants: tuple[str, str], seed: int, divergence: FirstDifference | None
) -> dict[str, Any]:
    """The engine's answer, headed by the question."""
    head = {"schema": EXPLAIN_SCHEMA, "scenario": scenario.name, "seed": seed, "variants": list(variants)}
    return {**head, "diverged": divergence is not None, **(divergence or {})}


def why_document(scenario: Scenario, variant: str, seed: int, answer: Moment) -> dict[str, Any]:
    """The engine's answer, headed by the question."""
    head = {"schema": WHY_SCHEMA, "scenario": scenario.name, "seed": seed, "variant": variant}
    return {**head, **answer}


def divergence_text(
    scenario: Scenario, variants: tuple[str, str], seed: int, divergence: FirstDifference | None
) -> str:
    """About 25 lines: the question, then each variant's answer, rule and queue."""
    both = " and ".join(variants)
    if divergence is None:
        whose = f" of guest {scenario.guests[0]}" if scenario.guests else ""
        only = "; explain shows no other kernel" if scenario.guests else ""
        return (
            f"{scenario.name}, seed {seed}: {both} do not differ in what was scheduled: the scheduler events on every "
            f"CPU{whose} are the same, in the same order{only}"
        )
    names = divergence["tasks"]
    first, second = (found.changes.get("hotplug") if (found := scenario.variant(v)) else None for v in variants)
    besides = "costs or the CPUs that are offline" if first != second else "costs"
    question = QUESTIONS[divergence["question"]].format(task=task(divergence["pid"], names), besides=besides)
    lines = [
        f"{scenario.name}, seed {seed}: {both} first differ at {ms(divergence['time_ns'])} ms on CPU "
        f"{divergence['cpu']}, after {divergence['common_events']:,} common scheduler events",
        question,
    ]
    if divergence["costs"]:
        lines += _costs(variants, divergence, divergence["costs"])
    if divergence["costs"] or divergence["same_rule"]:
        lines += _before(variants, divergence, besides)
    for name, side in zip(variants, divergence["sides"], strict=True):
        lines += ["", *side_lines(name, side, divergence)]
    return "\n".join(lines)


def _costs(variants: tuple[str, str], divergence: FirstDifference, costs: Costs) -> list[str]:
    """Which events changed their order, and the overhead of the CPU before them."""
    a, b = variants
    lines = []
    for moved in costs["events"]:
        if moved is None:
            continue
        first, second = moved["at_ns"]
        if first is None or second is None:
            times = f"{a} {ms(first)}, {b} {ms(second)}"
        else:
            times = f"{a} {ms(first)}, {b} {ms(second)}: {_apart(second - first)}"
        lines.append(f"  {moved['event']}: {times}")
    (since_a, since_b), (cost_a, cost_b) = costs["since_ns"], costs["overhead_ns"]
    lines.append(
        f"  CPU {divergence['cpu']} since its last common event ({a} {ms(since_a)}, {b} {ms(since_b)}): "
        f"overhead {ms(cost_a)} ms and {ms(cost_b)} ms, {_apart(cost_b - cost_a)}"
    )
    return lines


def _before(variants: tuple[str, str], divergence: FirstDifference, besides: str) -> list[str]:
    """If the same rule decides, or only times differ: whether any earlier decision differs.

    `besides`: what else may differ. CPUs that go offline are not a decision of the scheduler.
    """
    words = f"  {same_rule(variants, divergence)}; " if divergence["same_rule"] else "  "
    if divergence["first_different"] is None:
        return [f"{words}all {divergence['equal_decisions']:,} earlier decisions are the same, only {besides} differ"]
    both = zip(variants, divergence["first_different"], strict=True)
    shown = [line for name, one in both for line in _rule(one, f"    {name}: {_answer(one, divergence)}: ")]
    return [
        f"{words}{divergence['equal_decisions']:,} earlier decisions are the same; the first that differs changed no "
        "event by itself:",
        *shown,
    ]


def same_rule(variants: tuple[str, str], divergence: Differing) -> str:
    """In what two decisions by the same rule differ: the numbers compared, or the kind of request that follows."""
    a, b = (side["decision"] for side in divergence["sides"])
    if a is None or b is None:
        return "the same rule"
    if a["compared"] != b["compared"]:
        return "the same rule with different numbers"
    if (tested := a.get("candidates") or []) != (others := b.get("candidates") or []):
        return f"the same rule, but {_candidates(variants, tested, others)}"
    if a["need_resched"] == b["need_resched"]:
        return "the same rule with the same numbers"
    sets = [f"in {name} it sets {FLAGS[one['need_resched']]}" for name, one in zip(variants, (a, b), strict=True)]
    return f"the same rule with the same numbers, but {', '.join(sets)}"


def _candidates(variants: tuple[str, str], a: Sequence[CandidateView], b: Sequence[CandidateView]) -> str:
    """The first test of a placement that is not the same in both variants."""
    for x, y in zip_longest(a, b):
        if x == y:
            continue
        found = [
            f"in {name} "
            + (f"{one['function']} of {_tested(one)}: {one['answer']}" if one else "there is no such test")
            for name, one in zip(variants, (x, y), strict=True)
        ]
        return f"the first test that differs is {', '.join(found)}"
    return "other CPUs are tested"


def _tested(candidate: CandidateView) -> str:
    cpus = candidate["cpus"]
    state = f"{candidate['idle']} of {len(cpus)} idle, {candidate['nr_running']} queued"
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)} ({state})"


def _apart(ns: int) -> str:
    return f"{ns:+,} ns"


def side_lines(name: str, side: Side, divergence: Differing, unasked: str | None = None) -> list[str]:
    """What one variant decided, the event that followed, and the queue; `unasked` where it decided nothing."""
    names, decision = divergence["tasks"], side["decision"]
    head = f"{name} ({_configuration(side)}): "
    lines = [head + (_answer(decision, divergence) if decision else unasked or _unasked(divergence["question"]))]
    if decision:
        lines += _rule(decision)
        lines += placement_lines(decision)
    lines.append("  " + _event(side, divergence["cpu"]))
    if divergence["question"] == "order":
        lines.append(f"  overhead of all CPUs up to then: {ms(side['overhead_ns'])} ms")
    # A placement compares CPUs, which are listed above, not the entities of one queue.
    if side["queue"] is not None and not (decision and decision.get("candidates")):
        lines += queue_lines(side["queue"], names, [divergence["pid"]], divergence["groups"])
    return lines


def _configuration(side: Side) -> str:
    """The kernel, Hz, preemption model, groups and switched features of a run."""
    named = [*side["groups"][:4], *["..."] * (len(side["groups"]) > 4)]
    groups = "+".join(named) or "none"
    return ", ".join(
        [side["kernel"], f"{side['hz']} Hz", f"preempt={side['preempt']}", f"groups={groups}", *side["features"]]
    )


def _unasked(question: str) -> str:
    return {
        "tick": "no tick of this CPU at that time, or no other task waiting",
        "preempt_check": "not checked: the CPU was idle, or was going to reschedule anyway",
        "delayed_wakeup": "woken while it is still queued, so no CPU is selected (ttwu_runnable, DELAY_DEQUEUE)",
        "pull": "no task is considered: no balancing pass of this CPU, or none that finds a CPU to pull from",
        "order": "no decision differs",
        "runtime": "not throttled there",
    }.get(question, "not decided")


def _answer(decision: DecisionView, names: Moment | Differing) -> str:
    """`names` is the whole document, which holds the names of tasks and groups."""
    return _ANSWERS[decision["action"]].format(task=whom(decision, names), cpu=decision["other_cpu"])


def whom(decision: DecisionView, names: Moment | Differing) -> str:
    """A task, with the group whose entity decided if there is one; a group; or the real-time class."""
    pid, number = decision["pid"], decision["group"]
    by = group(number, names["groups"]) if number is not None else None
    if pid is None:
        return by or "the real-time class"
    who = task(pid, names["tasks"])
    return f"{who} of {by}" if by else who


def _rule(decision: DecisionView, before: str = "  ", after: str = "") -> list[str]:
    """When, by which function, feature and rule; the numbers on a line of their own where they do not fit."""
    # The CPUs that a placement compares have a table of their own.
    compared = [] if decision["action"] == "place" and decision.get("candidates") else decision["compared"]
    numbers = ", ".join(f"{name} {_number(name, n)}" for name, n in compared)
    feature = f" [{decision['feature']}]" if decision["feature"] else ""
    rule = decision["rule"].removeprefix(f"{decision['function']}: ")
    head = f"{before}{ms(decision['time_ns'])} {decision['function']}{feature}: {rule}"
    if decision["action"] not in ("pick", "keep", "stay", "delay", "throttle", "unthrottle", "leave"):
        after = (f"; sets {FLAGS[decision['need_resched']]}" if decision["need_resched"] else "") + after
    tail = f"({numbers}){after}" if numbers else after
    if numbers and len(head) + 1 + len(tail) > WIDTH:
        return [head, _INDENT + tail]
    return [f"{head} {tail}" if numbers else head + tail]


def _number(name: str, n: int) -> str:
    return f"{n:,}" if name in _COUNTS else f"{ms(n)} ms"


def _event(side: Side, cpu: int) -> str:
    """The next event on the CPU where the runs differ, which may be another CPU than that of the decision."""
    if side["event"] is None:
        return f"no further scheduler event on CPU {cpu}"
    decision = side["decision"]
    where = f"then on CPU {cpu}: " if decision and decision["action"] == "place" else ""
    return f"{ms(side['event_ns'])} {where}{side['event']}"


def why_text(scenario: Scenario, variant: str, seed: int, answer: Moment) -> str:
    """The task that runs instead, the decision that let it run, and the end of the wait."""
    head = f"{scenario.name}, {variant} ({answer['kernel']}), seed {seed}, at {ms(answer['at_ns'])} ms"
    return "\n".join([head, *why_lines(answer)])


def why_lines(answer: Moment) -> list[str]:
    """The answer without the line that repeats the question; for a simulated run or a recorded trace."""
    names = answer["tasks"]
    who = task(answer["pid"], names)
    lines = [f"{who} {_state(answer)} on CPU {answer['cpu']}"]
    if answer["state"] in ("waiting", "throttled", "delayed", "running"):
        lines += _turn(answer)
    if answer["state"] == "waiting":
        lines += _place(answer)
    lines += ["", *queue_lines(answer["queue"], names, [answer["pid"]], answer["groups"])]
    lines += ["", *_end(answer)]
    return lines


def _state(answer: Moment) -> str:
    since = answer["since_ns"]
    ago = f" for {ms(answer['at_ns'] - since)} ms" if since is not None else ""
    woken = answer["woken_ns"]
    if answer["state"] in ("waiting", "throttled"):
        word = "waits" if answer["state"] == "waiting" else "is throttled and waits"
        after = f", woken {ms(answer['at_ns'] - woken)} ms ago" if woken is not None and woken != since else ""
        return f"{word}{ago}" + (" since its wakeup" if woken is not None and woken == since else after)
    if answer["state"] == "sleeping":
        return f"sleeps{ago}, waiting for {answer['waits_for'] or 'something'};"
    if answer["state"] == "delayed":
        return f"sleeps{ago}, waiting for {answer['waits_for'] or 'something'}, but is queued (DELAY_DEQUEUE)"
    return {"running": f"runs{ago}", "new": "has not started;", "dead": "has exited;"}[answer["state"]]


def _turn(answer: Moment) -> list[str]:
    names, lines = answer["tasks"], list[str]()
    if throttle := answer.get("throttle"):
        lines += _rule(throttle, f"{whom(throttle, answer)} is throttled: ")
    if answer["runner"] is None:
        return [*lines, "the CPU is idle or about to be"]
    if answer["state"] != "running":
        lines.append(f"{task(answer['runner'], names)} runs instead")
    for level in answer["picked"]:
        # The task is named above; a group is not.
        above = f"{whom(level, answer)}: " if level["pid"] is None else ""
        lines += _rule(level, f"  picked {above}")
    if answer["kept_total"] > len(answer["kept"]):
        lines.append(f"  kept {answer['kept_total'] - len(answer['kept'])} times, then")
    for decision in answer["kept"]:
        about = "" if decision["action"] != "keep" else f"; at the wakeup of {whom(decision, answer)}"
        if decision["action"] != "keep" and decision["group"] is not None:
            about = f"; of {group(decision['group'], answer['groups'])}"
        lines += _rule(decision, "  kept   ", about)
    if answer["need_resched"]:
        how = f"TIF_{FLAGS[answer['need_resched']]}"
        lines.append(f"  {how} is set: it is rescheduled at the next point where the kernel checks the flag")
    executes = answer.get("executes")
    if executes and (answer["need_resched"] or executes.startswith("spins")):
        lines.append(f"  {task(answer['runner'], names)} {executes}")
    if answer["next_tick_ns"] is not None:
        lines.append(f"  next tick at {ms(answer['next_tick_ns'])} ms")
    return lines


def _place(answer: Moment) -> list[str]:
    """Why it waits on this CPU; a recorded trace does not say."""
    if (idle := answer.get("idle_cpus")) is None:
        return []
    free = f"idle now and allowed: CPU {cpu_list(idle)}" if idle else "none of its allowed CPUs is idle"
    placed = answer["placed"]
    if placed is None:
        return [free]
    came = {"pull": f"pulled here from CPU {placed['other_cpu']}"}.get(placed["action"], "placed here")
    return [free, *_rule(placed, f"{came} "), *placement_lines(placed)]


def _end(answer: Moment) -> list[str]:
    if answer["state"] == "dead":
        return []
    if answer["ended_ns"] is None:
        return ["it lasts until the end of the run"]
    ended = {"waiting": "it runs", "throttled": "it runs", "running": "it leaves the CPU"}.get(
        answer["state"], "it is woken"
    )
    lines = [f"{ended} at {ms(answer['ended_ns'])} ms, after {ms(answer['ended_ns'] - answer['at_ns'])} ms more"]
    causes = [_rule(d, f"  {_answer(d, answer)}: ") + placement_lines(d) for d in answer["ended_by"]]
    return lines + [line for several in causes for line in several]
