"""`schedlab waits`: the longest waits of a trace with their causes, and the guide's path from there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

import native
import traces
from schedlab.cli import main
from schedlab.native.waited import Wait, Waits
from schedlab.render import waits as rendered

Cli = Callable[..., tuple[int, str, str]]
MIX = Path(__file__).resolve().parents[2] / "crates/schedlab-replay/corpus/7.2.13-4cpu-mix.ftrace.gz"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    traces.write(Path("hogs.ftrace"))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_longest_wait_of_each_task_has_a_cause_and_a_next_step(cli: Cli) -> None:
    code, out, err = cli("waits", "hogs.ftrace")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"hogs.ftrace: 6.1.0-1-amd64, 1 CPU, {traces.RECORDS} records, 1.196000 s"
    assert lines[1] == "2 tasks waited for a CPU; the longest wait of each:"
    assert re.fullmatch(r"4\.000 ms  hog/10[12] from \d+\.\d+ s on, CPU 0", lines[3])
    assert re.fullmatch(r"  preempted; its CPU ran hog/10[12] for 4\.000 ms", lines[4])
    words = lines[-1].split()
    assert words[:4] == ["schedlab", "replay", "hogs.ftrace", "--explain"]
    code, out, err = cli(*words[1:])
    assert (code, err) == (0, "")
    assert "waits" in out


def test_the_waits_of_one_task(cli: Cli) -> None:
    code, out, _ = cli("waits", str(MIX), "171", "--first", "3")
    assert code == 0
    assert re.search(r"^hackbench/171 waited \d+ times, ", out, re.M)
    assert len(re.findall(r"ms  hackbench/171 from", out)) == 3
    code, _, err = cli("waits", "hogs.ftrace", "nobody")
    assert (code, "no task nobody waited for a CPU" in err) == (2, True)


def test_the_document(cli: Cli) -> None:
    code, out, _ = cli("waits", str(MIX), "--json", "-")
    document: dict[str, Any] = json.loads(out)
    assert (code, document.pop("schema"), document.pop("file")) == (0, "schedlab.waits/1", str(MIX))
    assert native.misfit(document, Waits) is None
    longest = [task["longest"][0]["ns"] for task in document["tasks"]]
    assert longest == sorted(longest, reverse=True)


def test_a_trace_without_waits_says_so(cli: Cli) -> None:
    text = Path("hogs.ftrace").read_text()
    Path("none.ftrace").write_text("\n".join(line for line in text.splitlines() if "sched_switch" not in line) + "\n")
    assert "no task waited for a CPU" in cli("waits", "none.ftrace")[1]


@pytest.mark.parametrize("wait", list(native.shapes(Wait)))
def test_every_wait_has_a_sentence(wait: Any) -> None:
    said = rendered.cause(wait)
    assert said.split(";")[0] in ("woken", "forked", "preempted")
    assert " None" not in said


CAUSES = [
    # what its CPU ran, for how long it was idle, which other CPU was, and the sentence
    ([("irq", 9, 1, 900, 50)], 0, None, "its CPU ran the real-time (priority 50) task irq/9 for 0.001 ms"),
    ([("make", None, 4, 900, None)], 0, None, "its CPU ran 4 tasks make for 0.001 ms"),
    ([("dl", 7, 1, 900, -1)], 0, (3, 500), "the deadline task dl/7 for 0.001 ms; CPU 3 was idle for 0.001 ms"),
    ([], 1_000, None, "its CPU was idle for 0.001 ms"),
    ([], 0, None, "what its CPU did is not recorded"),
]


@pytest.mark.parametrize(("ran", "idle", "elsewhere", "said"), CAUSES)
def test_the_cause_names_class_and_idle_cpus(ran: Any, idle: int, elsewhere: Any, said: str) -> None:
    names = ("name", "pid", "tasks", "ns", "realtime")
    wait = {
        **native.usual(Wait),
        "ns": 1_000,
        "ran": [dict(zip(names, one, strict=True)) for one in ran],
        "idle_ns": idle,
        "idle_elsewhere": elsewhere,
        "moved_from": None,
        "cut": False,
    }
    assert said in rendered.cause(wait)  # type: ignore[arg-type]


def test_records_that_only_the_switches_show_to_be_missing_are_not_said_to_be_lost_by_the_recorder(cli: Cli) -> None:
    lines = Path("hogs.ftrace").read_text().splitlines(keepends=True)
    switches = [at for at, line in enumerate(lines) if " sched_switch: " in line]
    del lines[switches[len(switches) // 2]]
    Path("gap.ftrace").write_text("".join(lines))
    for command in ("waits", "replay"):
        code, out, err = cli(command, "gap.ftrace")
        assert (code, err) == (0, "")
        text = " ".join(out.split())
        assert "warning: at least 1 record missing from the trace; " in text
        assert "the recorder lost" not in text
