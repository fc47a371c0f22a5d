"""`schedlab replay` as a user meets it: the table, the document, the matrix, messages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schedlab.render import agreement

pytest.importorskip("schedlab._engine", reason="the engine is not built")

import traces
from schedlab.cli import main

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    traces.write(Path("hogs.ftrace"))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_table(cli: Cli) -> None:
    code, out, err = cli("replay", "hogs.ftrace")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"hogs.ftrace: 6.1.0-1-amd64, 1 CPU, {traces.RECORDS} records, 1.196000 s"
    assert lines[1] == "row 6.1, the row of this kernel"
    head = next(at for at, line in enumerate(lines) if line.split()[:4] == ["decisions", "judged", "agreed", "share"])
    assert {line.split()[0] for line in lines[head + 1 : head + 3]} == {"contested", "preemptions"}
    picks = next(line for line in lines if line.startswith("contested picks"))
    judged, agreed = picks.split()[2:4]
    assert int(judged) > traces.ROUNDS - 20
    assert agreed == judged
    assert any(line.startswith("  picks by FIFO") for line in lines)
    assert any(re.match(r"unjudged: \S+%, after a warm-up of 10 ms with \d+ decisions", line) for line in lines)
    assert any(re.match(r"vruntime: \d+ of \d+ steps equal to the nanosecond", line) for line in lines)


def test_what_a_trace_lacks_is_said_first(cli: Cli) -> None:
    lines = Path("hogs.ftrace").read_text().splitlines()
    accounted = [line for line in lines if "sched_stat_runtime" in line]
    Path("bare.ftrace").write_text("\n".join(line for line in lines if line not in accounted) + "\n")
    code, out, _ = cli("replay", "bare.ftrace")
    assert (code, out.splitlines()[0]) == (0, "unreliable: the trace lacks run times (sched_stat_runtime)")
    assert "unreliable" in cli("replay", "bare.ftrace", "--matrix")[1].splitlines()[0]
    set_up = ("# features", "# sched_")
    Path("unset.ftrace").write_text("\n".join(line for line in lines if not line.startswith(set_up)) + "\n")
    assert "the trace lacks the settings of the kernel (features, autogroup)" in cli("replay", "unset.ftrace")[1]
    Path("late.ftrace").write_text("\n".join(line for line in lines if line not in accounted[:100]) + "\n")
    _, out, _ = cli("replay", "late.ftrace", "--json", "-")
    assert json.loads(out)["reports"][0]["missing"] == [
        "the run times of 100 of 300 runs (sched_stat_runtime)",
        "the run times of the first 396.0 ms (sched_stat_runtime)",
    ]


def test_the_document(cli: Cli) -> None:
    code, out, _ = cli("replay", "hogs.ftrace", "--kernel", "6.12.0", "--json", "-")
    assert code == 0
    d = json.loads(out)
    assert (d["schema"], d["file"]) == ("schedlab.replay/3", "hogs.ftrace")
    (report,) = d["reports"]
    assert (report["row"], report["recorded_row"]) == ("6.12.0", "6.1")
    assert {"decisions", "agreed", "share", "low", "high"} <= report["picks"].keys()
    assert cli("replay", "hogs.ftrace", "--kernel", "6.12.0", "--json", "-")[1] == out
    cli("replay", "hogs.ftrace", "--kernel", "6.12.0", "--json", "r.json")
    assert Path("r.json").read_text() == out


def test_a_foreign_row_is_named_as_such_and_shown_where_it_parts(cli: Cli) -> None:
    _, out, _ = cli("replay", "hogs.ftrace", "--kernel", "6.12.0")
    assert "row 6.12.0, while the row of this kernel is 6.1" in out


def test_the_matrix(cli: Cli) -> None:
    code, out, _ = cli("replay", "hogs.ftrace", "--matrix")
    assert code == 0
    lines = out.splitlines()
    assert lines[2].split() == ["row", "picks", "share", "preemptions", "share", "unjudged", "state"]
    rows = {line.split()[0]: line for line in lines[3:]}
    assert {"6.1", "6.12.0"} <= rows.keys()
    assert [row for row, line in rows.items() if line.endswith("recorded")] == ["6.1"]


BAD = [
    # arguments, words
    (["nowhere.dat"], ["cannot read the trace: No such file", "--> nowhere.dat"]),
    (["torn.ftrace"], ["--> torn.ftrace:4"]),
    (["hogs.ftrace", "--kernel", "6.13"], ["unknown kernel version", "6.12.0"]),
    (["new.ftrace"], ["kernel 99.1.0: row not modelled yet", 'did you mean "7.3"?', "modelled versions: 5.2, "]),
    (["bare.ftrace"], ["does not name the kernel", "--kernel: 5.2, "]),
    (["hogs.ftrace", "--kernel", "6.1", "--matrix"], ["not allowed with"]),
    (["hogs.ftrace", "--json", "hogs.ftrace/x"], ["cannot write"]),
    (["hogs.ftrace", "--first", "-1"], ["whole number"]),
    ([], ["TRACE"]),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(b[0]) or "nothing" for b in BAD])
def test_bad_input_ends_with_one_message(arguments: list[str], words: list[str], cli: Cli) -> None:
    Path("torn.ftrace").write_text("# tracer: nop\n# kernel 6.1.0 cpus 1\n#\nnonsense\n")
    Path("new.ftrace").write_text("# kernel 99.1.0 cpus 1\n#\n" + next(traces.lines()) + "\n")
    Path("bare.ftrace").write_text("# tracer: nop\n#\n" + next(traces.lines()) + "\n")
    code, out, err = cli("replay", *arguments)
    assert (code, out) == (2, "")
    assert err.count("error: ") == 1
    for word in words:
        assert word in err


def test_an_unknown_kernel_may_be_judged_by_every_row(cli: Cli) -> None:
    text = Path("hogs.ftrace").read_text().replace("6.1.0-1-amd64", "99.1.0")
    Path("new.ftrace").write_text(text)
    code, out, _ = cli("replay", "new.ftrace", "--matrix")
    assert code == 0
    assert out.splitlines()[-1] == "the recorded kernel: row not modelled yet"


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1.0, "100%"), (0.0, "0%"), (0.999999, "99.99%"), (0.000001, "0.01%"), (0.5, "50.00%"), (0.98765, "98.77%")],
)
def test_a_share_is_never_rounded_to_all_or_none(share: float, shown: str) -> None:
    assert agreement._share(share) == shown


def test_disagreements_are_shown_with_the_queue() -> None:
    queued = {
        "pid": 7, "name": "hog", "nice": 0, "running": True, "asleep": False, "known": True, "vruntime": 12, "key": 2,
        "lag": -3, "deadline": 15, "slice": 3_000_000, "ran": 5, "kernel_vruntime": 2**64 - 1, "kernel_deadline": None,
    }  # fmt: skip
    shown = agreement._disagreement(
        {
            "time_ns": 1_500_000_000, "cpu": 1, "kind": "pick", "kernel": "a-1", "model": "b-2", "queue": [queued],
            "rule": "leftmost", "feature": "LAST_BUDDY", "compared": [["gran", 4]], "min_vruntime": 10,
            "avg_vruntime": 9,
        }
    )  # fmt: skip
    lines = shown.splitlines()
    assert lines[0] == "1.500000 s, cpu1, pick: kernel a-1, model b-2"
    assert lines[1] == "  rule: leftmost [LAST_BUDDY]; gran 4"
    assert lines[2] == "  V is -1 from the queue's zero point"
    assert lines[-1].split() == [">", "hog-7", "0", "2", "-3", "5", "3000000", "5", "-11"]


def test_the_state_is_compared_where_it_is_shown() -> None:
    def state(decisions: int, first: list[dict[str, Any]]) -> dict[str, Any]:
        score = {"decisions": decisions, "agreed": decisions - len(first)}
        return {"first": first, **dict.fromkeys(("events", *agreement.FIELDS), score)}

    assert "without probes" in agreement._states(state(0, []))
    assert agreement._states(state(7, [])).splitlines()[-1].endswith("at every event that shows it")
    where = {"time_ns": 2_500_000_000, "cpu": 1, "pid": 7, "event": "sched_wakeup"}
    lines = agreement._states(state(7, [{**where, "what": "lag", "kernel": -100, "model": -90}])).splitlines()
    assert lines[1].split() == ["vruntime", "7", "6", "85.71%"]
    assert lines[-1].split() == ["2.500000", "s", "1", "7", "sched_wakeup", "lag", "-100", "+10"]


def test_state_of_a_trace_without_probes(cli: Cli) -> None:
    code, out, _ = cli("replay", "hogs.ftrace", "--state")
    assert code == 0
    assert out.splitlines()[-1] == "the trace contains no state: it was recorded without probes"


def test_a_waiting_task_is_explained(cli: Cli) -> None:
    code, out, err = cli("replay", "hogs.ftrace", "--explain", "102@10.101")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "hogs.ftrace, row 6.1, at 10.101000000 s"
    assert lines[1] == "hog (102) waits for 1.000000 ms on CPU 0"
    assert lines[2] == "hog (101) runs instead"
    assert lines[3].startswith("  picked 10,100.000000 ")
    queue = [line.split()[:3] for line in lines if line.startswith("  hog (")]
    assert queue == [["hog", "(101)", "running"], ["hog", "(102)", "waiting"]]
    assert any(line.startswith("it runs at 10,104.000000 ms, after 3.000000 ms more") for line in lines)
    code, out, _ = cli("replay", "hogs.ftrace", "--explain", "101@10101ms", "--json")
    answer = json.loads(out)["reports"][0]["explanation"]["why"]
    assert (code, answer["state"], answer["runner"], answer["agrees"]) == (0, "running", 101, True)


@pytest.mark.parametrize(
    ("moment", "message", "hint"),
    [
        ("hog@10.1", "2 tasks are named hog", "name one by its pid: 101, 102"),
        ("cat@10.1", "the trace has no task cat of the fair class before 10.100000 s", "a pid or a name"),
        ("101@9", "the time 9.000000 s is outside the trace", "the trace covers 10.000000 s to 11.196000 s"),
        ("101@12", "the time 12.000000 s is outside the trace", "the trace covers 10.000000 s to 11.196000 s"),
        ("101", "`101` is not TASK@TIME", ""),
        ("101@soon", "`soon` is not a time", ""),
    ],
)
def test_moments_that_cannot_be_explained(cli: Cli, moment: str, message: str, hint: str) -> None:
    code, _, err = cli("replay", "hogs.ftrace", "--explain", moment)
    assert code == 2
    assert message in err
    assert hint in err


def test_a_row_is_explained_not_all(cli: Cli) -> None:
    code, _, err = cli("replay", "hogs.ftrace", "--matrix", "--explain", "101@10.1")
    assert (code, "--explain needs a single row" in err) == (2, True)
    code, _, err = cli("replay", "hogs.ftrace", "--matrix", "--state")
    assert (code, "--state needs a single row" in err) == (2, True)
