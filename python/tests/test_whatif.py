"""`schedlab whatif` as a user meets it: the table, the document, the scenario, messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

from schedlab.cli import main
from schedlab.native.extracted import ExtractedPool, PoolMetrics
from schedlab.whatif import fidelity, predict

Cli = Callable[..., tuple[int, str, str]]

SCENARIO = """
duration = "600ms"
machine = { base = "rpi4", topology = { cores-per-llc = 1 } }

[[workload]]
name = "load"

[[workload.task]]
name = "tick"
program = [{ loop = "forever", do = [{ timer = "t", period = "2ms", mode = "skip" }, { run = "100us" }] }]

[[workload.task]]
name = "hog"
count = 2
program = [{ loop = "forever", do = [{ run = "1ms" }] }]

[[variant]]
kernel = "6.12"
name = "a"
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    Path("load.toml").write_text(SCENARIO)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    assert call("run", "load.toml", "--trace", "load.ftrace")[0] == 0
    return call


def test_a_timer_beside_hogs_is_predicted(cli: Cli) -> None:
    code, out, _ = cli("whatif", "load.ftrace", "--kernel", "7.2", "--seeds", "3", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["row"] == "6.12.107"
    rows = {(row["pool"], row["metric"]): row for row in document["rows"]}
    wakeups = rows["tick", "wakeups"]
    assert wakeups["refused"] is None
    assert wakeups["predicted"]["7-2"]["value"] == pytest.approx(500, rel=0.05)
    # 6.12 lets a hog run to the end of its slice (RUN_TO_PARITY); 7.2 does so as well, but ends the slice in time.
    assert rows["tick", "latency_p99"]["recorded"] > rows["tick", "latency_p99"]["predicted"]["7-2"]["value"]


def test_the_table_names_what_is_refused(cli: Cli) -> None:
    code, out, _ = cli("whatif", "load.ftrace", "--kernel", "7.2", "--set", "knobs.base_slice=1ms", "--seeds", "3")
    assert code == 0
    assert "load.ftrace: 6.12.107 (row 6.12.107), 1 CPU" in out
    assert "for 7.2, knobs.base_slice=1ms:" in out
    assert "refused: hog p50, wakeups: 0 wakeups, of which 20 are needed; record longer" in " ".join(out.split())


def test_the_scenario_is_one_that_compare_runs(cli: Cli) -> None:
    code, _, err = cli("whatif", "load.ftrace", "--kernel", "7.2", "--seeds", "2", "--out", "out.toml")
    assert (code, "wrote out.toml" in err) == (0, True)
    assert cli("run", "out.toml", "--variant", "7-2")[0] == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("sched_switch", "the trace has no sched_switch"),
        ("sched_wak", "the trace has neither sched_waking nor sched_wakeup"),
    ],
)
def test_a_trace_without_what_is_needed_is_refused(cli: Cli, lines: str, message: str) -> None:
    kept = [line for line in Path("load.ftrace").read_text().splitlines() if f": {lines}" not in line]
    Path("bare.ftrace").write_text("\n".join(kept) + "\n")
    code, _, err = cli("whatif", "bare.ftrace", "--kernel", "7.2")
    assert (code, message in err) == (2, True)


def test_nothing_to_predict_is_said(cli: Cli) -> None:
    code, _, err = cli("whatif", "load.ftrace")
    assert (code, "nothing to predict" in err) == (2, True)


def _pool(**values: int) -> ExtractedPool:
    recorded: PoolMetrics = {
        "wakeups": 1000, "latency_p50": 50_000, "latency_p99": 900_000, "cpu": 10**8, "switches": 1000, "span": 10**9
    }  # fmt: skip
    none = dict.fromkeys(("by_task", "irregular", "by_period", "by_timer", "by_arrival", "unknown"), 0)
    return {"name": "p", "tasks": ["p-1"], "waits": 1000, "work": 10**8, "recorded": recorded, **none, **values}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("values", "samples", "refused"),
    [
        ({}, [900.0, 900.0], ""),
        ({}, [700.0, 1200.0], ""),
        ({}, [600.0, 650.0], "is 38% off"),
        ({}, [100.0, 200.0, 1000.0], "is 350% off"),
        ({"unknown": 200}, [900.0], "20% of its waits have no known cause"),
        ({"irregular": 600}, [900.0], "60% of its waits are for several tasks"),
        ({}, [None], "no value"),
    ],
)
def test_the_limits(values: dict[str, int], samples: list[float | None], refused: str) -> None:
    found = fidelity.refusal("latency_p99", _pool(**values), 900.0, samples)
    assert (found.reason if found else "").find(refused) >= 0
    assert (found is None) == (refused == "")


def test_every_limit_has_its_reason() -> None:
    for limit in fidelity.limits().values():
        for key in limit:
            if key in ("samples", "floor", "unknown", "irregular") and limit[key]:
                assert f"{key}-because" in limit


def test_variants_of_the_recorded_kernel_keep_its_settings() -> None:
    text = 'x = 1\n\n[[variant]]\nname = "recorded"\nkernel = "6.12.107"\npreempt = "none"\n'
    found = predict.with_variants(text, {"a": "6.12.107", "b": "7.2"}, None)
    assert found.count('preempt = "none"') == 1
    assert found.startswith("x = 1\n")
