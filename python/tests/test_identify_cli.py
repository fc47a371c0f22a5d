"""`schedlab identify` and `schedlab changelog` as a user meets them."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

import native
import traces
from schedlab import upgrades
from schedlab.cli import identify, main
from schedlab.engine import Engine, native_engine
from schedlab.errors import RunError
from schedlab.guests import identity, kernels
from schedlab.guests.kernels import Kernel
from schedlab.native.replayed import Report
from schedlab.record import Order, Recording
from schedlab.render import identity as rendered

Cli = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "crates/schedlab-replay/corpus"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize(
    ("trace", "row"),
    [("6.18.12-1cpu-niced", "6.18.12"), ("7.0.13-1cpu-chaos-slices", "7.0"), ("7.3.4-1cpu-chaos-slices", "7.3")],
)
def test_a_trace_is_identified_by_decisions_and_state(cli: Cli, trace: str, row: str) -> None:
    code, out, err = cli("identify", str(CORPUS / f"{trace}.ftrace.gz"))
    best, own, other = out.splitlines()[:3]
    assert (code, err) == (0, "")
    assert re.match(rf"rows? {re.escape(row)}(,| fits best$)", best), best
    assert own == f"row {row}: every decision and every number that the trace shows agrees"
    assert "first different" in other
    assert "kernel" in out


def test_rows_that_fit_alike_are_all_named(cli: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "hogs.ftrace"
    traces.write(trace)
    code, out, _ = cli("identify", str(trace), "--json", "-")
    document: dict[str, Any] = json.loads(out)
    assert (code, document["schema"]) == (0, "schedlab.identity/1")
    assert "6.1" in document["fits"]
    assert document["reports"][0]["row"] in document["fits"]
    assert document["reports"] == identify.best_first(document["reports"])


def report(row: str, agreed: int, decisions: int, unexplained: int, solved: int = 0) -> Any:
    """A report in which picks and preemptions are judged alike."""
    side = {"agreed": agreed, "decisions": decisions}
    return {
        **native.usual(Report),
        "row": row,
        "picks": side,
        "preemptions": side,
        "unexplained": {"picks": unexplained, "preemptions": unexplained},
        "solved": {"picks": solved, "preemptions": solved},
        "missing": [],
        "tried": {"followed": 100, "sampled": 100, "left_out": 0, "to_the_end": True},
        "state": {"events": {"agreed": 0, "decisions": 0}},
        "vruntime": {"equal": 0, "compared": 0},
    }


RANKED: list[tuple[str, list[tuple[Any, ...]], list[str]]] = [
    # what is ranked: row, agreed, judged, unexplained, solved; best first
    ("better share", [("6.1", 90, 100, 0), ("6.3", 95, 100, 0)], ["6.3", "6.1"]),
    (
        "one judges nothing",
        [("7.3", 0, 0, 0), ("6.1", 2_900, 3_000, 0), ("6.3", 2_400, 3_000, 0)],
        ["6.1", "6.3", "7.3"],
    ),
    ("one judges few", [("7.3", 9, 9, 0), ("6.1", 2_900, 3_000, 0)], ["6.1", "7.3"]),
    ("one judges a little less", [("7.3", 2_000, 2_000, 0), ("6.1", 2_900, 3_000, 0)], ["7.3", "6.1"]),
    ("what is unexplained was asked", [("7.3", 40, 40, 2_960), ("6.1", 2_900, 3_000, 0)], ["6.1", "7.3"]),
    ("what lags were solved from shows nothing", [("7.3", 40, 40, 0, 2_960), ("6.1", 2_000, 3_000, 0)], ["6.1", "7.3"]),
    ("a few are solved", [("7.3", 2_950, 2_955, 0, 45), ("6.1", 2_400, 3_000, 0)], ["7.3", "6.1"]),
    ("nobody judges anything", [("6.1", 0, 0, 0), ("7.3", 0, 0, 0)], ["6.1", "7.3"]),
]


@pytest.mark.parametrize(("rows", "order"), [row[1:] for row in RANKED], ids=[row[0] for row in RANKED])
def test_rows_are_ranked_among_those_that_judge_enough(rows: list[tuple[Any, ...]], order: list[str]) -> None:
    ranked = identify.best_first([report(*row) for row in rows])
    assert [r["row"] for r in ranked] == order
    judged = any(row[2] for row in rows)
    assert [r["row"] for r in rendered.named(ranked)] == (order[:1] if judged else [])


def test_no_row_is_named_where_most_decisions_stay_unexplained() -> None:
    judged_little, judged_wrongly = report("6.8", 40, 40, 560), report("6.1", 78, 600, 0)
    ranked = identify.best_first([judged_little, judged_wrongly])
    assert rendered.named(ranked) == []
    assert rendered.document(ranked)["fits"] == []
    assert [r["row"] for r in rendered.named([report("6.8", 300, 400, 200)])] == ["6.8"]
    assert rendered.named([report("6.8", 0, 0, 0)]) == [], "nothing was judged"
    few = report("7.3", 142, 148, 0)
    few["picks"] = {"agreed": 9, "decisions": 9}
    assert rendered.named([few]) == [], "preemptions alone do not distinguish rows"
    assert rendered._no_answer([few]).startswith("no row can be named: 9 picks can be judged, at least 10 are needed")


def text_of(trace: Path) -> str:
    return gzip.decompress(trace.read_bytes()).decode()


def only(text: str, *events: str) -> str:
    """The header, and the records of these events."""
    kept = [line for line in text.splitlines() if line.startswith("#") or any(f" {e}: " in line for e in events)]
    return "\n".join(kept) + "\n"


EVENTS = (
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exit",
    "sched_stat_runtime",
)
NICED = CORPUS / "7.3.4-1cpu-niced.ftrace.gz"
KERNEL = "7.3.4+deb13-cloud-amd64"
ANSWERS = [
    # what becomes of a trace of 7.3.4, the first line of the answer, its second line
    (
        lambda text: text.replace(KERNEL, "8.1.0-x"),
        r"row 7\.3 fits best",
        r"8\.1\.0-x has no row of its own; it decides as 7\.3",
    ),
    (
        lambda text: text[:60_000].rpartition("\n")[0],
        r"no row can be named: 3\d\d records in 0\.0\d\d s show no",
        "to do: ",
    ),
    (lambda text: only(text), "no row can be named: 0 records in 0\\.000 s show no decision", "to do: "),
    (
        lambda text: only(text, "sched_switch", "sched_wakeup"),
        "no row can be named: the trace lacks run times",
        "to do: ",
    ),
    (lambda text: re.sub("(?m)^#.*\n", "", text), r"rows? [0-9., ]+ fit", "to do: .*`schedlab record`"),
]


@pytest.mark.parametrize(("change", "first", "second"), ANSWERS)
def test_a_trace_that_cannot_be_judged_says_what_to_do(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str], first: str, second: str
) -> None:
    monkeypatch.setattr(identify, "QUIET_S", math.inf)  # a busy machine shows progress
    trace = tmp_path / "t.ftrace"
    trace.write_text(change(text_of(NICED)))
    code, out, err = cli("identify", str(trace))
    lines = " ".join(out.split("\n\n")[0].split())
    assert (code, err) == (0, "")
    assert re.match(f"{first}.*{second}", lines), lines


@pytest.mark.parametrize("trace", ["5.2.1-1cpu-hackbench", "5.10.262-1cpu-niced", "7.3.4-1cpu-niced"])
def test_without_run_times_no_row_is_named(cli: Cli, tmp_path: Path, trace: str) -> None:
    """CFS rows agree with more of an EEVDF kernel's picks than its own row then, and the other way round."""
    bare = tmp_path / "t.ftrace"
    events = ("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task")
    bare.write_text(only(text_of(CORPUS / f"{trace}.ftrace.gz"), *events))
    document = json.loads(cli("identify", str(bare), "--json", "-")[1])
    assert document["fits"] == []


@pytest.mark.parametrize("trace", ["5.10.262-1cpu-niced", "5.2.1-4cpu-mix", "7.2.13-4cpu-mix"])
def test_a_trace_without_probes_is_identified_by_its_decisions(cli: Cli, tmp_path: Path, trace: str) -> None:
    """No vruntime is printed and no probe read, as in a trace of perf or trace-cmd."""
    bare = tmp_path / "t.ftrace"
    kept = only(text_of(CORPUS / f"{trace}.ftrace.gz"), *EVENTS)
    bare.write_text(re.sub(r" vruntime=\d+ \[ns\]", "", kept))
    document = json.loads(cli("identify", str(bare), "--json", "-")[1])
    assert document["reports"][0]["recorded_row"] in document["fits"]


def test_a_long_trace_is_tried_on_parts_of_it(cli: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "long.ftrace"
    traces.write(trace, rounds=12_000)
    code, out, _ = cli("identify", str(trace))
    assert (code, "tried on parts of the trace: " in out) == (0, True), out


def test_an_interrupt_shows_what_is_known_so_far(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = native_engine()
    sample = engine.sample(str(NICED))
    real, asked = sample.replay, list[str]()

    def replay(row: str, *, cancel: object = None) -> Report:
        if len(asked) == 3:
            raise KeyboardInterrupt
        asked.append(row)
        return real(row)

    monkeypatch.setattr(sample, "replay", replay)
    monkeypatch.setattr(identify, "native_engine", lambda: engine)
    monkeypatch.setattr(engine, "sample", lambda trace, cancel: sample)
    code, out, err = cli("identify", str(NICED))
    assert (code, asked[0]) == (130, "7.3")
    assert out.startswith("so far, without ")
    assert "row 7.3 fits best" in out
    assert err.endswith("interrupted\n")


def refused(what: str, folder: Path) -> str:
    """The name of something that is neither a trace nor a kernel."""
    path = folder / what
    match what:
        case "folder":
            path.mkdir()
        case "cut.ftrace.gz":
            path.write_bytes(NICED.read_bytes()[:20_000])
        case "empty":
            path.touch()
        case "hello.json":
            path.write_text('{"traceEvents": []}')
        case "noise":
            path.write_bytes(bytes(range(251)) * 40)
    return str(path) if what else ""


@pytest.mark.parametrize(
    ("what", "message", "hint"),
    [
        ("folder", "this is a directory", "give a trace, an image of a kernel, or a version such as 6.12"),
        ("cut.ftrace.gz", "the file ends inside the compressed stream", "record again"),
        ("empty", "the file is empty", "record with perf sched record"),
        ("hello.json", "JSON, not a trace of the scheduler", "that it was made from"),
        ("noise", "expected 'task-pid [cpu] time: event: fields'", "known: .ftrace"),
        ("gone.ftrace", "no such file", "give a trace"),
        ("", "no kernel and no trace is named", "give a trace"),
    ],
)
def test_what_is_neither_a_trace_nor_a_kernel_is_refused(
    cli: Cli, tmp_path: Path, what: str, message: str, hint: str
) -> None:
    code, out, err = cli("identify", refused(what, tmp_path))
    assert (code, out) == (2, "")
    assert message in err
    assert hint in " ".join(err.split())


def test_a_kernel_image_is_known_by_its_content(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The names of Debian's images (`vmlinuz-6.1.0-56-cloud-amd64`) look as if they had a suffix."""
    image = tmp_path / "vmlinuz-6.1.0-56-cloud-amd64"
    image.write_bytes(bytes(0x202) + b"HdrS" + bytes(100))
    orders: list[Order] = []

    def recorded(order: Order, engine: Engine, log: object) -> Recording:
        orders.append(order)
        raise RunError("no guest here")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(identify, "record", recorded)
    assert cli("identify", str(image))[0] == 3
    assert [order.kernel for order in orders] == [str(image)]


def test_a_kernel_is_recorded_first_and_the_answer_is_kept(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "find", lambda name: Kernel(Path(name), "sha", name))
    orders: list[Order] = []

    def recorded(order: Order, engine: Engine, log: object) -> Recording:
        orders.append(order)
        order.out.write_bytes((CORPUS / "7.0.13-1cpu-niced.ftrace.gz").read_bytes())
        return Recording(order.out, {}, 0, True, False, [])

    monkeypatch.setattr(identify, "record", recorded)
    _, out, _ = cli("identify", "7.0")
    assert [order.kernel for order in orders] == ["7.0"]
    # No load of one CPU tells 7.0 from 7.0.4; the row of the release comes first.
    assert out.startswith("rows 7.0, 7.0.4 fit equally well")
    known = identity.find("sha")
    assert known is not None
    assert known.rows == ("7.0", "7.0.4")
    assert known.says.endswith("2,955 of 2,955 events with state, on one CPU")


def test_what_changed_between_two_rows(cli: Cli) -> None:
    arguments = ("changelog", "6.18.2", "7.0", "--scenarios", str(ROOT / "scenarios"))
    code, out, err = cli(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("6.18.2 to 7.0: ")
    block = next(block for block in out.split("\n\n") if block.startswith("lag: limit"))
    assert "its own slice -> the longest slice on the queue" in " ".join(block.split())
    assert "Changed in 7.0 (6e3c0a4e1ad1)." in block
    assert "lag-clamp.toml" in block
    document = json.loads(cli(*arguments, "--json", "-")[1])
    assert all(d["effect"] and d["was"] != d["is"] for d in document["differences"])
    back = json.loads(cli("changelog", "7.0", "6.18.2", "--json", "-")[1])
    assert [(d["name"], d["is"], d["was"]) for d in back["differences"]] == [
        (d["name"], d["was"], d["is"]) for d in document["differences"]
    ]
    assert (document["backwards"], back["backwards"]) == (False, True)
    says = "6.18.2 is the earlier row: the values go back to it, but the sentences describe the step to 7.0."
    for form in ((), ("--markdown",)):
        shown = {
            order: " ".join(cli("changelog", *order, *form)[1].split()) for order in pairwise(["6.18.2", "7.0"] * 2)
        }
        assert says not in shown["6.18.2", "7.0"]
        assert says in shown["7.0", "6.18.2"]


@pytest.mark.parametrize("step", upgrades.STEPS, ids=lambda step: step.name)
def test_the_pages_about_upgrades_are_what_the_command_prints(
    cli: Cli, step: upgrades.Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    code, out, err = cli("changelog", step.before, step.after, "--markdown")
    page = (ROOT / f"docs/upgrades/{step.name}.md").read_text()
    assert (code, err) == (0, "")
    assert page.startswith(f"# {step.title}\n")
    assert page.endswith(out.rstrip("\n") + "\n"), "tools/upgrades.py update"
    assert f"upgrades/{step.name}\n" in (ROOT / "docs/index.md").read_text()


def test_every_change_between_rows_says_what_it_does() -> None:
    engine, effects = native_engine(), upgrades.Effects.read()
    rows = [row["id"] for row in engine.listing("kernels") if row["id"] != "eevdf-rfc"]
    pairs = [*pairwise(rows), *((step.before, step.after) for step in upgrades.STEPS)]
    shown = [d for a, b in pairs for d in upgrades.changes(engine, a, b, ROOT / "scenarios")["differences"]]
    names = {d["name"] for d in shown}
    assert {d["name"] for d in shown if not d["does"]} == set()
    assert {*effects.first, *effects.shown} <= {*effects.does}
    assert {*effects.does} <= names
    assert [file for file in effects.shown.values() if not (ROOT / "scenarios" / file).is_file()] == []


def test_a_row_against_itself_and_no_row(cli: Cli) -> None:
    assert cli("changelog", "6.12", "6.12.107")[1] == "6.12.107 to 6.12.107: nothing changed that is modelled\n"
    code, _, err = cli("changelog", "6.12", "6.13")
    assert code == 2
    assert "did you mean" in err
