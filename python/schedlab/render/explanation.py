"""The answers of `explain` as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedlab.render.queue import ms, queue_lines, task
from schedlab.scenario import Scenario

PARTING_SCHEMA = "schedlab.explain/1"
WHY_SCHEMA = "schedlab.why/1"

_COUNTS = {"last CPU", "waker's CPU", "may test", "CPUs of the cache", "tasks left there", "imbalance"}
"""Compared numbers that are no times."""

_QUESTIONS = {
    "preempt_check": "does {task} preempt on waking?",
    "tick": "the tick: must {task} go?",
    "hrtick": "the slice-end timer: must {task} go?",
    "accounting": "{task} is charged: must it go?",
    "pick": "who runs next?",
    "placement": "where does {task} go?",
    "delayed_wakeup": "where does {task} go? (it woke while its dequeue was delayed)",
    "pull": "is {task} pulled here?",
    "order": "no decision: what the runs did cost differs, and so does the order of their events",
}

_ANSWERS = {
    "pick": "picks {task}",
    "preempt": "{task} preempts",
    "keep": "{task} waits",
    "expire": "{task} must go",
    "stay": "{task} goes on",
    "delay": "{task} sleeps in the queue",
    "place": "{task} goes to CPU {cpu}",
    "pull": "{task} comes from CPU {cpu}",
    "search": "a search for {task}",
}


def parting_document(
    scenario: Scenario, variants: tuple[str, str], seed: int, parting: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The engine's answer with what it is about."""
    head = {"schema": PARTING_SCHEMA, "scenario": scenario.name, "seed": seed, "variants": list(variants)}
    return {**head, "parted": parting is not None, **(parting or {})}


def why_document(scenario: Scenario, variant: str, seed: int, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's answer with what it is about."""
    head = {"schema": WHY_SCHEMA, "scenario": scenario.name, "seed": seed, "variant": variant}
    return {**head, **answer}


def parting_text(scenario: Scenario, variants: tuple[str, str], seed: int, parting: Mapping[str, Any] | None) -> str:
    """At most some 25 lines: the question, then each variant's answer, rule and queue."""
    both = " and ".join(variants)
    if parting is None:
        return f"{scenario.name}, seed {seed}: {both} never part: every scheduler event is the same"
    names = parting["tasks"]
    question = _QUESTIONS[parting["question"]].format(task=task(parting["pid"], names))
    lines = [
        f"{scenario.name}, seed {seed}: {both} part at {ms(parting['time_ns'])} ms on CPU {parting['cpu']}, "
        f"after {parting['common_events']:,} common scheduler events",
        question,
    ]
    for name, side in zip(variants, parting["sides"], strict=True):
        lines += ["", *_side(name, side, parting)]
    return "\n".join(lines)


def _side(name: str, side: Mapping[str, Any], parting: Mapping[str, Any]) -> list[str]:
    names, decision = parting["tasks"], side["decision"]
    head = f"{name} ({side['kernel']}, {side['hz']} Hz, preempt={side['preempt']}): "
    lines = [head + (_answer(decision, names) if decision else _unasked(parting["question"]))]
    if decision:
        lines.append("  " + _rule(decision))
    lines.append("  " + _event(side))
    if parting["question"] == "order":
        lines.append(f"  overhead of all CPUs until then: {ms(side['overhead_ns'])} ms")
    if side["queue"] is not None:
        lines += queue_lines(side["queue"], names, [parting["pid"]])
    return lines


def _unasked(question: str) -> str:
    return {
        "tick": "no tick of this CPU then, or nobody else waited",
        "preempt_check": "not asked: the CPU was to reschedule already, or idle",
        "delayed_wakeup": "woken where it is still queued; no CPU is chosen (ttwu_runnable, DELAY_DEQUEUE)",
        "pull": "no pull",
    }.get(question, "not asked")


def _answer(decision: Mapping[str, Any], names: Mapping[str, str]) -> str:
    return _ANSWERS[decision["verdict"]].format(task=task(decision["pid"], names), cpu=decision["other_cpu"])


def _rule(decision: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"{name} {_number(name, n)}" for name, n in decision["compared"])
    feature = f" [{decision['feature']}]" if decision["feature"] else ""
    asked = {"lazy": "; asks lazily", "full": "; asks at once", None: ""}[decision["asked"]]
    if decision["verdict"] in ("pick", "keep", "stay", "delay"):
        asked = ""
    return f"{ms(decision['time_ns'])} {decision['function']}{feature}: {decision['rule']} ({numbers}){asked}"


def _number(name: str, n: int) -> str:
    return f"{n:,}" if name in _COUNTS else f"{ms(n)} ms"


def _event(side: Mapping[str, Any]) -> str:
    if side["event"] is None:
        return "no further scheduler event on this CPU"
    return f"{ms(side['event_ns'])} {side['event']}"


def why_text(scenario: Scenario, variant: str, seed: int, answer: Mapping[str, Any]) -> str:
    """Who runs instead, by which decision, and what ended it."""
    head = f"{scenario.name}, {variant} ({answer['kernel']}), seed {seed}, at {ms(answer['at_ns'])} ms"
    return "\n".join([head, *why_lines(answer)])


def why_lines(answer: Mapping[str, Any]) -> list[str]:
    """The answer without its first line, which says what was asked; of a run or of a recorded trace."""
    names = answer["tasks"]
    who = task(answer["pid"], names)
    lines = [f"{who} {_state(answer)} on CPU {answer['cpu']}"]
    if answer["state"] in ("waiting", "delayed") or answer["state"] == "running":
        lines += _turn(answer)
    lines += ["", *queue_lines(answer["queue"], names, [answer["pid"]])]
    lines += ["", *_end(answer)]
    return lines


def _state(answer: Mapping[str, Any]) -> str:
    since = answer["since_ns"]
    ago = f" for {ms(answer['at_ns'] - since)} ms" if since is not None else ""
    woken = answer["woken_ns"]
    if answer["state"] == "waiting":
        after = f", woken {ms(answer['at_ns'] - woken)} ms ago" if woken is not None and woken != since else ""
        return f"waits{ago}" + (" since its wakeup" if woken is not None and woken == since else after)
    if answer["state"] == "sleeping":
        return f"sleeps{ago}, waiting for {answer['waits_for'] or 'something'};"
    if answer["state"] == "delayed":
        return f"sleeps{ago}, waiting for {answer['waits_for'] or 'something'}, but is queued (DELAY_DEQUEUE)"
    return {"running": f"runs{ago}", "new": "has not started;", "dead": "has exited;"}[answer["state"]]


def _turn(answer: Mapping[str, Any]) -> list[str]:
    names, lines = answer["tasks"], []
    if answer["runner"] is None:
        return ["the CPU is idle or about to be"]
    if answer["state"] != "running":
        lines.append(f"{task(answer['runner'], names)} runs instead")
    if answer["picked"]:
        lines.append("  picked " + _rule(answer["picked"]))
    if answer["kept_total"] > len(answer["kept"]):
        lines.append(f"  kept {answer['kept_total'] - len(answer['kept'])} times, then")
    for decision in answer["kept"]:
        about = "" if decision["verdict"] != "keep" else f"; {task(decision['pid'], names)} had woken"
        lines.append("  kept   " + _rule(decision) + about)
    if answer["asked"]:
        how = {"full": "TIF_NEED_RESCHED", "lazy": "TIF_NEED_RESCHED_LAZY"}[answer["asked"]]
        lines.append(f"  {how} is set: it goes at the next point where the kernel looks")
    if answer["next_tick_ns"] is not None:
        lines.append(f"  next tick at {ms(answer['next_tick_ns'])} ms")
    return lines


def _end(answer: Mapping[str, Any]) -> list[str]:
    if answer["state"] == "dead":
        return []
    if answer["ended_ns"] is None:
        return ["nothing ends that before the run does"]
    ended = {"waiting": "it runs", "running": "it leaves the CPU"}.get(answer["state"], "it is woken")
    lines = [f"{ended} at {ms(answer['ended_ns'])} ms, after {ms(answer['ended_ns'] - answer['at_ns'])} ms more"]
    return lines + [f"  {_answer(d, answer['tasks'])}: {_rule(d)}" for d in answer["ended_by"]]
