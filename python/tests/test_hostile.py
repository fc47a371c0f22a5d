"""What others wrote: edited results end in one message with its place, and hostile text reaches no terminal."""

from __future__ import annotations

import copy
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fake_engine
from schedlab import documents, plain, shape
from schedlab.cli import main
from schedlab.engine import Engine
from schedlab.outcome import Run
from schedlab.render.grid import columns

Call = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]
HOSTILE = "a\x1b[31m\nb\x07\u202ec\x9b2J"
SHOWN = "a\\x1b[31m\\nb\\x07\\u202ec\\x9b2J"

EDITS = [
    # what is edited in the second line, words of the message
    (lambda r: r["metrics"].update({"probe.latency.p50": "fast"}), '`metrics.probe.latency.p50` is "fast", expected a'),
    (lambda r: r.update(seed="2"), '`seed` is "2", expected a whole number'),
    (lambda r: r.update(variant=None), "`variant` is null, expected a string"),
    (lambda r: r.pop("digest"), "`digest` is missing"),
    (lambda r: r["series"]["probe.latency"].update(curve=[[1]]), "`series.probe.latency.curve[0]`"),
    (lambda r: r["tasks"].append({}), "`tasks[1].name` is missing"),
    (lambda r: r.update(place={"noise": {"steal_pct": "much"}}), "`place.noise.steal_pct` is"),
    (lambda r: r.update(seed=77), "the manifest has no run of eevdf with seed 77"),
    (lambda r: r.update(variant="mine"), "the manifest has no run of mine with seed 1"),
    (lambda r: r["metrics"].update({"probe.latency.p50": math.nan}), "NaN is not a JSON number"),
    (lambda r: r["metrics"].update({"probe.latency.p50": 10**400}), "expected a number"),
    (lambda r: r.update(status="fine"), '`status` is "fine", expected one of ok, failed'),
]


@pytest.mark.parametrize(("edit", "says"), EDITS)
def test_an_edited_result_names_file_line_and_key(
    edit: Callable[[Any], Any], says: str, scenario: Write, schedlab: Call
) -> None:
    schedlab("compare", scenario(), "--out", "r", "--seeds", "3", "--jobs", "1")
    file = Path("r/results.jsonl")
    first, second, *rest = file.read_text().splitlines()
    record = json.loads(second)
    edit(record)
    file.write_text("\n".join([first, json.dumps(record), *rest]) + "\n")
    code, out, err = schedlab("report", "r")
    assert (code, out) == (2, "")
    assert says in err
    assert "r/results.jsonl:2" in err


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path into a document."""
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=5) | st.just(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of three seeds on a real arm, whose documents hold the most."""
    folder = tmp_path_factory.mktemp("stored")
    changes = {"features": {"NEXT_BUDDY": True}, "knobs": {"base_slice": "3ms"}, "tasks": {"probe": {"nice": -5}}}
    changes |= {
        "cgroups": {"/g": {"weight": 300}},
        "hz": 1000,
        "preempt": "full",
        "autogroup": True,
        "sysctl": {"a.b": 1},
    }
    variants = [{"name": n, "kernel": "6.1", "summary": "", "changes": changes} for n in ("cfs", "eevdf")]
    options = {"options": {"interval": "1ms", "pipe": True}, "given": ["interval"], "attributes": {"nice": 1}}
    workloads = [{"name": "probe", "use": "cyclictest", "tasks": 1, **options}]
    described = {"variants": variants, "workloads": workloads, "cgroups": {"/g": {"weight": 100}}}
    (folder / "toy.toml").write_text(json.dumps(described))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["compare", "toy.toml", "--out", "r", "--seeds", "3", "-q"], Engine(fake_engine)) == 0
    place = {"machine": "m", "state": {"release": "6.1"}, "noise": {"foreign_pct": 1.0}, "untimed": None}
    lines = [json.loads(line) for line in (folder / "r/results.jsonl").read_text().splitlines()]
    real = {"place": place, "drivers": {"probe": "agent"}, "unavailable": {"x": "y"}, "noise": {"foreign": {"a": 1.0}}}
    (folder / "r/results.jsonl").write_text("".join(json.dumps({**line, **real}) + "\n" for line in lines))
    return folder / "r"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_edit_breaks_schedlab(data: st.DataObject, stored: Path, tmp_path: Path, capsys: Any) -> None:
    """Any value of any document replaced by anything: a table or one message, on every output."""
    target = tmp_path / "r"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(stored, target)
    name = data.draw(st.sampled_from(["manifest.json", "results.jsonl"]))
    file = target / name
    lines = file.read_text().splitlines() if name == "results.jsonl" else [file.read_text()]
    document = json.loads(lines[0])
    path = data.draw(st.sampled_from(list(places(document))))
    lines[0] = json.dumps(replaced(document, path, data.draw(JSON)))
    file.write_text("\n".join(lines) + "\n")
    style = data.draw(st.sampled_from(["table", "mmtests", "benchstat", "ministat"]))
    code = main(["report", str(target), "--style", style, "--json", str(tmp_path / "d.json")], Engine(fake_engine))
    captured = capsys.readouterr()
    assert code in (0, 2), captured.err
    assert "schedlab itself failed" not in captured.err
    assert all(line.isprintable() for line in (captured.out + captured.err).split("\n"))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    document = copy.deepcopy(document)
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return document


def test_hostile_names_are_escaped_in_every_output(scenario: Write, schedlab: Call) -> None:
    # Names of variants are plain words: the engine refuses others.
    variants = [{"name": n, "kernel": HOSTILE, "summary": HOSTILE, "changes": {}} for n in ("x", "y")]
    scenario(name=HOSTILE, variants=variants)
    for arguments in (
        ("compare", "toy.toml", "--seeds", "3", "--out", "r", "--html", "page.html", "-v"),
        ("compare", "toy.toml", "--seeds", "3", "--json", "-"),
        ("run", "toy.toml", "--variant", "y"),
        ("run", "toy.toml", "--variant", "y", "--json"),
        ("report", "r"),
        ("report", "r", "--style", "ministat"),
        ("run", f"no{HOSTILE}", "--variant", "y"),
    ):
        _, out, err = schedlab(*arguments)
        shown = out + err
        assert all(line.isprintable() for line in shown.split("\n")), arguments
        assert "a\\" in shown, arguments
    page = Path("page.html").read_text()
    head = page[: page.index("<script>")]
    assert SHOWN in head
    assert not {"\x1b", "\u202e", "\x9b"} & {*head}


def test_names_of_tasks_are_escaped_where_they_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    record = fake_engine.record("cfs", 1, "6.1", {"m": 1.0})
    record["tasks"][0]["name"] = HOSTILE
    record["noise"] = {"foreign": {HOSTILE: 1.0}}
    monkeypatch.setattr(fake_engine, "run", lambda *_, **__: json.dumps(record))
    engine = Engine(fake_engine)
    run: Run = engine.run(engine.loads("{}", "toy.toml"), "cfs", 1)
    assert run.tasks[0].name == SHOWN
    assert run.record["noise"]["foreign"] == {SHOWN: 1.0}


@given(st.text())
def test_escaped_text_is_one_printable_line(text: str) -> None:
    assert plain.escaped(text).isprintable()
    assert not text.isprintable() or plain.escaped(text) == text
    assert plain.lines(text).count("\n") == text.count("\n")
    assert plain.lines(text).count("\t") == text.count("\t")
    assert plain.lines(text).replace("\n", "").replace("\t", "").isprintable()
    assert columns([[text, "x"]], "<<")[0].isprintable()
    assert json.loads(documents.dumps({text: [text]})) == {text: [text]}
    assert all(line.isprintable() for line in documents.dumps([text]).split("\n"))


def test_colours_stay_where_there_are_colours() -> None:
    text = "\x1b[1;31merror\x1b[0m: \x1b]0;title\x07 \x1b[2J"
    assert plain.lines(text, colour=True) == "\x1b[1;31merror\x1b[0m: \\x1b]0;title\\x07 \\x1b[2J"
    assert plain.lines(text) == "\\x1b[1;31merror\\x1b[0m: \\x1b]0;title\\x07 \\x1b[2J"


def test_a_document_nested_too_deeply_is_an_error() -> None:
    depth = sys.getrecursionlimit() * 100
    with pytest.raises(ValueError, match="nested too deeply"):
        shape.loads("[" * depth + "]" * depth)
