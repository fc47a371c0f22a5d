"""The answer of `explain --metric` as text and as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedlab.native.explained import Cause, MetricDifference, Question, Rule, Shown
from schedlab.render.amounts import share, time
from schedlab.render.cells import plural
from schedlab.render.explanation import QUESTIONS, same_rule, side_lines
from schedlab.render.queue import ms, task
from schedlab.scenario import Scenario

SCHEMA = "schedlab.explain-metric/1"
UNASKED = "not decided on the critical path of that sample"
MOST = 5
"""How many causes are listed."""
_ABOUT: Mapping[Question, str] = {
    "preempt_check": "does the woken task preempt?",
    "tick": "the tick: must the running task be rescheduled?",
    "hrtick": "the slice-end timer: must the running task be rescheduled?",
    "accounting": "update_curr: must the running task be rescheduled?",
    "throttle": "is the task throttled?",
    "runtime": "is runtime used up?",
    "pick": "which task runs next?",
    "placement": "where is the task placed?",
}
_OUTCOMES: Mapping[str, str] = {
    "preempt": "preempts",
    "keep": "waits",
    "expire": "is rescheduled",
    "stay": "keeps running",
    "place": "is placed",
    "throttle": "is throttled",
    "leave": "is dequeued",
}


def metric_document(
    scenario: Scenario, variants: tuple[str, str], seed: int, found: MetricDifference
) -> dict[str, Any]:
    """The engine's answer, headed by the question."""
    return {"schema": SCHEMA, "scenario": scenario.name, "seed": seed, "variants": list(variants), **found}


def metric_text(scenario: Scenario, variants: tuple[str, str], seed: int, found: MetricDifference) -> str:
    """The slowest samples, why they wait, and the first of them in detail."""
    slow, _ = _ordered(variants, found)
    lines = [
        f"{scenario.name}, seed {seed}: {found['metric']} of {' and '.join(variants)}",
        _lengths(variants, found),
    ]
    lines += _causes(scenario, variants, found)
    if (shown := found["shown"]) is not None:
        lines += ["", *_sample(variants, shown, slow)]
    return "\n".join(lines)


def _ordered(variants: tuple[str, str], found: MetricDifference) -> tuple[str, str]:
    """The variant whose slowest samples are longer, and the other one."""
    first, second = variants
    return (second, first) if found["second_slower"] else (first, second)


def _lengths(variants: tuple[str, str], found: MetricDifference) -> str:
    slow, fast = _ordered(variants, found)
    own, others = found["mean_ns"]
    text = (
        f"the slowest {share(found['slow'], found['samples'])} of {slow} ({found['slow']} of {found['samples']:,} "
        f"samples, {time(found['from_ns'])} and more) take {time(own)} on average"
    )
    if not found["paired"]:
        return f"{text}; {fast} has no sample of their tasks"
    same = found["same_begin"]
    if same == found["paired"]:
        which = f"that begin at the same {'time' if same == 1 else 'times'}"
    elif same:
        which = f"that begin at the same times ({same}), or else nearest in the same task,"
    else:
        which = "of the same tasks that begin nearest to them"
    return f"{text}, the samples of {fast} {which} {time(others)}"


def _causes(scenario: Scenario, variants: tuple[str, str], found: MetricDifference) -> list[str]:
    slow, fast = _ordered(variants, found)
    if not found["causes"]:
        stolen = ", wait for a CPU of the host" if scenario.guests else ""
        return [
            f"no wait for a CPU on their critical paths is much longer than in {fast} by a decision that differs: they "
            f"run, sleep{stolen} or are delayed by costs for longer"
        ]
    extra = (found["mean_ns"][0] - found["mean_ns"][1]) * found["paired"]
    waited = sum(cause["ns"] for cause in found["causes"])
    part = f" ({share(waited, extra)} of what these samples take longer)" if 0 < waited <= extra else ""
    lines = [
        f"in {found['waits']} of them a task on the critical path waits longer for a CPU than in {fast}{part}, after a "
        "decision that differs:"
    ]
    for cause in found["causes"][:MOST]:
        longer = time(cause["ns"] / max(1, cause["samples"]))
        count = plural(cause["samples"], "sample")
        waits = f" in {cause['waits']:,} waits" if cause["waits"] > cause["samples"] else ""
        about = _ABOUT.get(cause["question"], cause["question"])
        lines.append(f"  {count}, {longer} longer on average{waits}: {about}")
        lines += _rules(cause, slow, fast)
    if more := len(found["causes"]) - MOST:
        lines += [f"  and {more} more"] if more > 0 else []
    return lines


def _rules(cause: Cause, slow: str, fast: str) -> list[str]:
    width = max(len(slow), len(fast)) + 1
    return [
        f"    {f'{name}:':{width}} {_rule(rule, picked) if rule else UNASKED}"
        for name, rule, picked in zip(
            (slow, fast), cause["rules"], ("another task or group", "it, or its group"), strict=True
        )
    ]


def _rule(rule: Rule, picked: str) -> str:
    feature = f" [{rule['feature']}]" if rule["feature"] else ""
    words = rule["rule"].removeprefix(f"{rule['function']}: ")
    outcome = f"picks {picked}" if rule["action"] == "pick" else _OUTCOMES.get(rule["action"], rule["action"])
    return f"{outcome}, {rule['function']}{feature}: {words}"


def _sample(variants: tuple[str, str], shown: Shown, slow: str) -> list[str]:
    """The first sample of the first cause, and what both variants decided."""
    names = shown["tasks"]
    who = [task(pid, names) for pid in (shown["sample_pid"], shown["other_pid"])]
    own = variants.index(slow)
    pids = (who[own], who[1 - own])
    each = [
        f"{ms(ns)} ms in {name} (from {ms(at - ns)} to {ms(at)} ms{'' if who[0] == who[1] else ', by ' + pid})"
        for name, ns, at, pid in zip(variants, shown["ns"], shown["at_ns"], pids, strict=True)
    ]
    waits = [f"{ms(ns)} ms in {name}" for name, ns in zip(variants, shown["wait_ns"], strict=True)]
    lines = [
        f"the first of them, of {who[0]}: {' and '.join(each)}",
        f"{task(shown['waiter'], names)} waits for a CPU for {' and '.join(waits)}",
        f"{ms(shown['time_ns'])} ms in {slow}, CPU {shown['cpu']}: "
        + QUESTIONS[shown["question"]].format(task=task(shown["pid"], names), besides="costs"),
    ]
    if shown["same_rule"]:
        lines.append(f"  {same_rule(variants, shown)}")
    for name, side in zip(variants, shown["sides"], strict=True):
        lines += ["", *side_lines(name, side, shown, f"{UNASKED}; the queue then:")]
    return lines
