"""The command line over the compiled engine: determinism, shipped scenarios, bad files, Ctrl-C."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

from schedlab.cli import main
from schedlab.engine import native_engine

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))
SMALL = """
name = "small"
machine = "rpi4"
duration = "60ms"
seeds = 6

[[workload]]
use = "hackbench"
name = "load"
groups = 1
pipe = true
threads = true
loops = 20
repeat = true

[[workload]]
use = "cyclictest"
name = "probe"
interval = "1ms"

[[variant]]
name = "cfs"
kernel = "6.1"

[[variant]]
name = "eevdf"
kernel = "6.12.0"
"""

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_jobs_change_no_byte(cli: Cli) -> None:
    outputs, traces = set(), set()
    for jobs in ("1", "2"):
        code, out, err = cli("compare", "small.toml", "--json", "-", "--jobs", jobs, "--trace", f"traces{jobs}")
        assert code == 0, err
        outputs.add(out)
        traces.add(tuple((p.name, p.read_bytes()) for p in sorted(Path(f"traces{jobs}").iterdir())))
    assert len(outputs) == 1
    assert len(traces) == 1
    document = json.loads(outputs.pop())
    digests = [d for by_seed in document["digests"].values() for d in by_seed.values()]
    assert len(set(digests)) == len(digests) == 12


def test_seeds_really_differ_and_variants_share_them(cli: Cli) -> None:
    document = json.loads(cli("compare", "small.toml", "--json", "-")[1])
    assert any(len(set(m["samples"]["cfs"])) > 3 for m in document["metrics"])


def test_without_noise_everything_is_deterministic(cli: Cli) -> None:
    Path("quiet.toml").write_text(SMALL.replace("seeds = 6", "seeds = 3\nnoise = false"))
    document = json.loads(cli("compare", "quiet.toml", "--json", "-")[1])
    verdicts = {c["verdict"] for m in document["metrics"] for c in m["comparisons"] if c["n"]}
    assert verdicts == {"deterministic, n = 1"}


def test_check_determinism(cli: Cli) -> None:
    code, out, _ = cli("run", "small.toml", "--variant", "eevdf", "--seed", "5", "--check-determinism")
    assert code == 0
    assert "a second run gave the same trace" in out


@pytest.mark.parametrize("suffix", [".ftrace", ".ftrace.gz", ".pftrace"])
def test_traces_by_suffix(suffix: str, cli: Cli) -> None:
    assert cli("run", "small.toml", "--variant", "cfs", "--trace", f"t{suffix}")[0] == 0
    assert Path(f"t{suffix}").stat().st_size > 1000


def test_a_trace_of_unknown_format_is_refused(cli: Cli) -> None:
    code, out, err = cli("run", "small.toml", "--variant", "cfs", "--trace", "t.docx")
    assert code == 2, "as convert refuses it: a mistake of the caller"
    assert out == ""
    assert "t.docx" in err
    assert "no trace format has this suffix" in err
    assert ".ftrace" in err, "what it may be"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: p.stem)
def test_shipped_scenarios_run(path: Path) -> None:
    engine = native_engine()
    warmup_ns = engine.load(str(path)).warmup_ns
    scenario = engine.load(str(path), {"duration": f"{warmup_ns + 30_000_000}ns"})
    for variant in scenario.variants:
        run = engine.run(scenario, variant.name, scenario.seeds[0])
        assert run.switches > 0
        assert set(run.metrics) >= {m.name for m in scenario.metrics}


def test_everything_that_can_be_listed(cli: Cli) -> None:
    for kind, known in (("machines", "power10-480"), ("kernels", "6.12.0"), ("features", "RUN_TO_PARITY"),
                        ("workloads", "hackbench"), ("knobs", "base_slice_ns")):  # fmt: skip
        code, out, _ = cli("list", kind)
        assert code == 0
        assert known in out


def junk(size: int) -> bytes:
    return random.Random(1).randbytes(size)


BAD_FILES = [
    # name, content, words of the message
    ("empty", b"", []),
    ("blank", b"\n\n\n", []),
    ("junk", junk(10_000_000), []),
    ("one-line", b"a" * 10_000_000, []),
    ("nested", b"x = " + b"[" * 100_000, []),
    ("nul", b'name = "a"\0', []),
    ("unknown-key", SMALL.replace("groups = 1", "grups = 1").encode(), ["grups", "groups"]),
    ("unknown-kernel", SMALL.replace("6.12.0", "6.13").encode(), ["6.13", "6.12.107"]),
    ("unknown-machine", SMALL.replace("rpi4", "rpi5").encode(), ["rpi5", "rpi4"]),
    ("unknown-workload", SMALL.replace('"hackbench"', '"hackbanch"').encode(), ["hackbanch", "hackbench"]),
    ("wrong-unit", SMALL.replace("60ms", "60 parsecs").encode(), ["60 parsecs"]),
    ("no-unit", SMALL.replace('"60ms"', "60").encode(), []),
    ("negative", SMALL.replace("seeds = 6", "seeds = -6").encode(), ["seeds"]),
    ("wrong-type", SMALL.replace("loops = 20", 'loops = "many"').encode(), ["loops"]),
    ("same-names", SMALL.replace('"eevdf"', '"cfs"').encode(), ["cfs"]),
    ("broken-toml", SMALL.replace("[[variant]]", "[[variant").encode(), []),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES, ids=[b[0] for b in BAD_FILES])
def test_bad_files_end_with_one_message(name: str, content: bytes, words: list[str], cli: Cli) -> None:
    Path(f"{name}.toml").write_bytes(content)
    code, out, err = cli("compare", f"{name}.toml")
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert f"{name}.toml" in err
    assert len(err) < 2000
    assert f"{name}.toml" not in err.splitlines()[0]
    assert err.count(f"{name}.toml") == 1
    for word in words:
        assert word in err


def test_a_directory_is_no_scenario(cli: Cli) -> None:
    code, _, err = cli("compare", ".")
    assert code == 2
    assert err.startswith("error: ")


def test_a_trace_on_a_full_disk_leaves_the_run(cli: Cli) -> None:
    Path("t.ftrace").symlink_to("/dev/full")
    code, out, err = cli("run", "small.toml", "--variant", "cfs", "--trace", "t.ftrace")
    assert code == 3
    assert "probe.wakeup_latency" in out or "probe.latency" in out
    assert "No space left on device" in err


def test_the_largest_seed(cli: Cli) -> None:
    assert cli("run", "small.toml", "--variant", "cfs", "--seed", str(2**64 - 1))[0] == 0


def test_a_pipe_is_no_scenario(cli: Cli) -> None:
    os.mkfifo("pipe.toml")
    for name in ("pipe.toml", "/dev/zero"):
        code, _, err = cli("compare", name)
        assert code == 2
        assert "not a regular file" in err


def test_ctrl_c_stops_a_run_under_way(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(SMALL.replace("60ms", "3600s").replace("seeds = 6", "seeds = 1"))
    command = [sys.executable, "-m", "schedlab", "run", "long.toml", "--variant", "cfs", "--trace", "t.ftrace"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell job ignores it
    )  # fmt: skip
    try:
        while not any(part.stat().st_size for part in tmp_path.glob(".schedlab-*.part")):
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == "interrupted\n"
    # What was traced until then is kept, under its name.
    assert sorted(os.listdir(tmp_path)) == ["long.toml", "t.ftrace"]


def test_a_row_shows_what_tells_it_from_the_one_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "kernels", "--kernel", "6.16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("placement: relative deadline"))
    words = " ".join(lines[at : at + 2]).split()
    assert words[3:8] == ["no", "yes", "place_entity", "6.13", "(6d71a9c61604),"]
    assert main(["list", "features", "--kernel", "6.12.107"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["RUN_TO_PARITY", "on"] for line in lines)
    assert any(line.split()[:2] == ["NEXT_BUDDY", "off"] for line in lines)
    assert not any(line.startswith("START_DEBIT") for line in lines)
