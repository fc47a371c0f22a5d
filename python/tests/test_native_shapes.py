"""Every shape that a type of the engine's answers allows can be rendered, the rare ones included."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import native
from schedlab.cli.replay import why
from schedlab.errors import InputError
from schedlab.native import changed, decisions, explained, replayed, runs
from schedlab.render import agreement, changelog, explanation, identity, metric_difference
from schedlab.tail import Band, Parts

SCENARIO: Any = SimpleNamespace(name="toy", guests=(), variant=lambda name: None)
BOTH = ("a", "b")
USUAL = native.usual(replayed.Report)


def identified(report: Any) -> str:
    """`identify` with one row that has the shape, and with a second row."""
    ranked = [[report], [USUAL, report]]
    return "\n".join(identity.text("t.ftrace", reports) for reports in ranked)


def unanswered(answer: Any) -> str:
    """The message of `replay --explain` where there is no answer, else the answer."""
    try:
        why(answer, ("7", 12))
    except InputError as e:
        return e.message
    return agreement.explanation("t.ftrace", {**USUAL, "explanation": answer})


RENDERED: dict[str, tuple[Any, Callable[[Any], str]]] = {
    "explain": (explained.FirstDifference, lambda d: explanation.divergence_text(SCENARIO, BOTH, 1, d)),
    "explain --metric": (
        explained.MetricDifference,
        lambda d: metric_difference.metric_text(SCENARIO, BOTH, 1, d),
    ),
    "explain --task": (explained.Moment, lambda m: explanation.why_text(SCENARIO, "a", 1, m)),
    "replay --explain": (replayed.RecordedMoment, lambda m: unanswered({"why": m})),
    "replay --state": (replayed.Report, lambda r: agreement.report("t.ftrace", r, state=True)),
    "replay --matrix": (replayed.Report, lambda r: agreement.matrix("t.ftrace", [r])),
    "identify": (replayed.Report, identified),
    "changelog": (changed.Changelog, changelog.text),
    "changelog --markdown": (changed.Changelog, changelog.markdown),
    "tail: a band": (runs.Band, lambda band: repr(Band.of(band))),
    "tail: a sample": (runs.Sample, lambda sample: repr(Parts.of(sample))),
}


@pytest.mark.parametrize("command", RENDERED)
def test_every_shape_is_rendered(command: str) -> None:
    of, render = RENDERED[command]
    count = 0
    for value in native.shapes(of):
        try:
            text = render(value)
        except Exception as e:
            raise AssertionError(f"{command} failed with {e!r} on {value}") from e
        assert text, value
        assert " None" not in text.replace("pid None (", ""), f"{command} shows a missing value: {text}"
        count += 1
    assert count > 15


def test_a_question_without_an_answer() -> None:
    answers = [answer for answer in native.shapes(replayed.Answer) if len(answer) == 1]
    for key in ("tasks", "outside"):
        hint = native.fields(replayed.Answer)[key][0]
        answers += [{key: value} for value in native.shapes(hint)]
    said = {" ".join(unanswered(answer).split()[:2]) for answer in answers}
    assert said == {"the trace", "1 tasks", "2 tasks", "6 tasks", "the time"}


def test_where_row_and_kernel_differ_both_are_named() -> None:
    """The pick of the row has one decision for each level of groups; the last one is that of the task."""
    moment = native.usual(replayed.RecordedMoment)
    group, picked, by_class = (native.usual(decisions.DecisionView) for _ in range(3))
    group.update(pid=None, group=4)
    picked.update(pid=9, group=None)
    by_class.update(pid=None, group=None)
    moment.update(agrees=False, runner=7, tasks={"7": "cc", "9": "make"})
    for levels, last in [
        ([picked], "make (9)"),
        ([group, picked], "make (9)"),
        ([group], "group 4"),
        ([by_class], "the real-time class"),
        ([], "no task of the fair class"),
    ]:
        text = unanswered({"why": {**moment, "picked": levels}})
        assert text.splitlines()[-1] == f"the kernel ran cc (7); the row would have picked {last}"
    text = unanswered({"why": {**moment, "runner": None, "picked": [picked]}})
    assert text.splitlines()[-1] == "the kernel ran no task of the fair class; the row would have picked make (9)"
