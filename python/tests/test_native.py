"""The types of the engine's answers against the structs in Rust, and against answers of the engine."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

import native

pytest.importorskip("schedlab._engine", reason="the engine is not built")

from schedlab import upgrades
from schedlab.cli.replay import why
from schedlab.engine import native_engine
from schedlab.native import changed, decisions, explained, replayed, runs
from schedlab.render import agreement, explanation, metric_difference

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "crates"
CORPUS = CRATES / "schedlab-replay/corpus"
REPORT = "schedlab-replay/src/report.rs"

STRUCTS: list[tuple[str, str, Any]] = [
    ("schedlab-policy/src/decision_view.rs", "DecisionView", decisions.DecisionView),
    ("schedlab-policy/src/queue_view.rs", "QueueView", decisions.QueueView),
    ("schedlab-policy/src/queue_view.rs", "EntityView", decisions.EntityView),
    ("schedlab-policy/src/queue_view.rs", "DeadlineView", decisions.DeadlineView),
    ("schedlab-policy/src/queue_view.rs", "RealTimeView", decisions.RealTimeView),
    ("schedlab-policy/src/candidate.rs", "CandidateView", decisions.CandidateView),
    ("schedlab-lab/src/explain/first_difference.rs", "FirstDifference", explained.FirstDifference),
    ("schedlab-lab/src/explain/first_difference.rs", "Side", explained.Side),
    ("schedlab-lab/src/explain/costs.rs", "Costs", explained.Costs),
    ("schedlab-lab/src/explain/costs.rs", "MovedEvent", explained.MovedEvent),
    ("schedlab-lab/src/explain/metric.rs", "MetricDifference", explained.MetricDifference),
    ("schedlab-lab/src/explain/metric.rs", "Cause", explained.Cause),
    ("schedlab-lab/src/explain/metric.rs", "Rule", explained.Rule),
    ("schedlab-lab/src/explain/metric.rs", "Shown", explained.Shown),
    ("schedlab-lab/src/explain/why.rs", "Why", explained.Moment),
    ("schedlab-replay/src/answer.rs", "Why", explained.RecordedMoment),
    ("schedlab-replay/src/inputs.rs", "InputCount", replayed.InputCount),
    ("schedlab-replay/src/spans.rs", "UnjudgedSpan", replayed.UnjudgedSpan),
    ("schedlab-lab/src/ablate.rs", "Difference", changed.Difference),
    *(
        (REPORT, name, of)
        for name, of in vars(replayed).items()
        if isinstance(of, type)
        and of.__module__ == replayed.__name__
        and name not in ("Answer", "InputCount", "UnjudgedSpan")
    ),
]

ENUMS: list[tuple[str, str, Any]] = [
    ("schedlab-policy/src/decision_view.rs", "ActionKind", decisions.Action),
    ("schedlab-policy/src/decision_view.rs", "TaskState", decisions.State),
    ("schedlab-policy/src/queue_view.rs", "EntityState", decisions.EntityState),
    ("schedlab-lab/src/explain/question.rs", "Question", explained.Question),
    ("schedlab-replay/src/inputs.rs", "InputGroup", replayed.InputGroup),
]

INTEGERS = {"u8", "i8", "u16", "u32", "i32", "u64", "i64", "usize", "Nanos", "Pid"}
RENAMED = {"TaskNames": "dict", "GroupNames": "dict", "Question": "str", "ActionKind": "str", "TaskState": "str"} | {
    "EntityState": "str",
    "InputGroup": "str",
    "InputKind": "str",
    "LookAhead": "str",
    "Answer": "Answer",
    "String": "str",
    "&'static str": "str",
    "bool": "bool",
    "f64": "float",
}


SCENARIO = """
machine = { base = "laptop-8", topology = { cores-per-llc = 2 } }
duration = "100ms"
seeds = 1

[[cgroup]]
name = "web"
quota = "10ms"

[[workload]]
name = "worker"
cgroup = "web"
count = 2
program = [{ loop = "forever", do = [{ run = "3ms" }] }]

[[workload]]
name = "sleeper"
count = 2
program = [{ loop = "forever", do = [{ run = "1ms" }, { sleep = "4ms" }] }]

[[variant]]
name = "a"
kernel = "6.1"

[[variant]]
name = "b"
kernel = "6.12"

[[variant]]
name = "c"
kernel = "7.3"
"""


@cache
def source(file: str) -> str:
    return (CRATES / file).read_text()


def block(kind: str, file: str, name: str) -> str:
    """The lines between the braces of a struct or an enum."""
    found = re.search(rf"^pub {kind} {name} {{\n(.*?)^}}", source(file), re.M | re.S)
    assert found, f"{file} has no {kind} {name}"
    return found[1]


def in_rust(file: str, name: str) -> dict[str, tuple[str, bool]]:
    """The fields of a struct as JSON has them: the type, and whether a field may be absent."""
    fields: dict[str, tuple[str, bool]] = {}
    for attributes, field, of in re.findall(
        r"((?:    (?:///|#\[)[^\n]*\n)*)    pub (\w+): ([^\n]*),\n", block("struct", file, name)
    ):
        if "flatten" in attributes:
            fields |= in_rust(file, of)
        else:
            optional = "skip_serializing_if" in attributes
            # A key that is absent instead of null.
            of = re.sub(r"^Option<(.*)>$", r"\1", of) if "Option::is_none" in attributes else of
            fields[field] = (_rust(of), optional)
    return fields


def _rust(of: str) -> str:
    if of in INTEGERS:
        return "int"
    if outer := re.fullmatch(r"(Option|Vec|Box|BTreeMap)<(.*)>", of):
        inner = _rust(outer[2])
        shown = {"Option": f"{inner} | None", "Vec": f"[{inner}]", "Box": inner, "BTreeMap": "dict"}
        return shown[outer[1]]
    if pair := re.fullmatch(r"\((.*), (.*)\)", of):
        return f"({_rust(pair[1])}, {_rust(pair[2])})"
    if pair := re.fullmatch(r"\[(.*); 2\]", of):
        return f"({_rust(pair[1])}, {_rust(pair[1])})"
    return RENAMED.get(of, of)


def _python(of: Any) -> str:
    origin, arguments = get_origin(of), get_args(of)
    if origin is Literal:
        return "str"
    if native.is_union(of):
        return f"{_python(arguments[0])} | None"
    if origin is list:
        return f"[{_python(arguments[0])}]"
    if origin is tuple:
        return f"({', '.join(map(_python, arguments))})"
    return "dict" if origin is dict else str(of.__name__)


@pytest.mark.parametrize(("file", "name", "of"), STRUCTS, ids=[f"{Path(f).stem}-{name}" for f, name, _ in STRUCTS])
def test_a_type_has_the_fields_of_its_struct(file: str, name: str, of: Any) -> None:
    ours = {key: (_python(hint), optional) for key, (hint, optional) in native.fields(of).items()}
    theirs = in_rust(file, name)
    if of is explained.Moment:
        # A simulated run shows all of it, so the engine leaves nothing out.
        ours = {key: (hint, False) for key, (hint, _) in ours.items()}
    if of is explained.RecordedMoment:
        ours = {key: value for key, value in ours.items() if not value[1]}
    assert ours == theirs


@pytest.mark.parametrize(("file", "name", "of"), ENUMS, ids=[name for _, name, _ in ENUMS])
def test_a_literal_has_the_variants_of_its_enum(file: str, name: str, of: Any) -> None:
    variants = re.findall(r"^    ([A-Z]\w*),$", block("enum", file, name), re.M)
    assert [re.sub(r"(?<!^)([A-Z])", r"_\1", variant).lower() for variant in variants] == list(get_args(of))


def moments(report: replayed.Report, most: int) -> list[tuple[str, int]]:
    """Tasks and times at which row and kernel differ, and arbitrary ones: of each task of the queue, just after."""
    found = [(str(q["pid"]), d["time_ns"] + 1_000) for d in report["disagreements"] for q in d["queue"]]
    return random.Random(most).sample(found, min(most, len(found)))


QUESTIONS: list[tuple[str, str | None, str]] = [
    # the trace, the row, and a question whose answer differs from the kernel's decision
    ("7.3.4-2cpu-hogs-autogroup", None, "26@30597881000"),
    ("6.12.107-1cpu-hack", "6.1", "146@3290010000"),
]


@pytest.mark.parametrize(("trace", "row", "question"), QUESTIONS)
def test_answers_about_a_recorded_trace_have_their_types_and_are_rendered(
    trace: str, row: str | None, question: str
) -> None:
    engine, path = native_engine(), str(CORPUS / f"{trace}.ftrace.gz")
    (report,) = engine.replay(path, row, first=1_000)
    assert native.misfit(report, replayed.Report) is None
    assert report["disagreements"]
    assert agreement.report(trace, report, state=True)
    pid, at = question.split("@")
    for asked in [(pid, int(at)), *moments(report, 3)]:
        (report,) = engine.replay(path, row, explain=asked)
        answer = report["explanation"]
        assert native.misfit(report, replayed.Report) is None
        why(answer, asked)
        text = agreement.explanation(trace, report)
        if answer["why"]["agrees"] is False:
            assert "; the row would have picked " in text.splitlines()[-1]
        assert asked[0] != pid or answer["why"]["agrees"] is False


def test_answers_about_simulated_runs_have_their_types() -> None:
    engine = native_engine()
    scenario = engine.loads(SCENARIO, "toy.toml")
    for a, b in (("a", "b"), ("a", "c")):
        difference = engine.explain(scenario, a, b, 1)
        assert difference is not None
        assert native.misfit(difference, explained.FirstDifference) is None
        assert explanation.divergence_text(scenario, (a, b), 1, difference)
        by_metric = engine.explain_metric(scenario, a, b, 1, "sched.wakeup_latency")
        assert by_metric is not None
        assert native.misfit(by_metric, explained.MetricDifference) is None
        assert metric_difference.metric_text(scenario, (a, b), 1, by_metric)
        found = engine.ablation(scenario, a, b)
        assert found
        assert [d for d in found if native.misfit(d, changed.Difference)] == []
    states = set()
    for variant in ("a", "b", "c"):
        for at in range(5_000_000, 60_000_000, 5_000_000):
            for task in ("1", "2", "3", "4"):
                moment = engine.why(scenario, variant, 1, task, at)
                assert native.misfit(moment, explained.Moment) is None
                assert explanation.why_text(scenario, variant, 1, moment)
                states.add(moment["state"])
    assert {"running", "waiting", "throttled", "sleeping"} <= states
    assert native.misfit(engine.timeline(scenario, "a", 1), runs.Columns) is None
    assert native.misfit(engine.timeline(scenario, "a", 1, around=([30_000_000], 3)), runs.Columns) is None
    tail = engine.tail(scenario, "a", 1, "sched.wakeup_latency", [(0, 2**63 - 1), (5, 6)])
    assert native.misfit(tail, runs.Tail) is None
    rows = [row["id"] for row in engine.listing("kernels")]
    for a, b in pairwise(rows):
        assert native.misfit(engine.changes(a, b), changed.KernelChanges) is None
    assert native.misfit(upgrades.changes(engine, rows[0], rows[-1], ROOT / "scenarios"), changed.Changelog) is None
