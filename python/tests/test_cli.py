"""The command line as a user meets it: output, files, exit codes, messages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_engine
from schedlab.arms import arm_of
from schedlab.cli import main
from schedlab.cli.parser import KINDS, STYLES, build_parser
from schedlab.engine import Engine, native_engine
from schedlab.errors import SchedlabError
from schedlab.validity import Evidence

Call = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]

SLOWER = {"eevdf": {"factor": {"probe.latency.p99": 1.3}}}
HERE = Path(__file__).parent


def test_compare_prints_a_judged_table(schedlab: Call, scenario: Write) -> None:
    code, out, err = schedlab("compare", scenario(behaviour=SLOWER))
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "toy: simulated laptop-8, 8 CPUs, 10 seeds; cfs = 6.1, eevdf = 6.12.0"
    p99 = next(line for line in lines if line.startswith("probe.latency.p99"))
    assert p99.split()[:2] == ["probe.latency.p99", "us"]
    assert p99.split()[-1] == "worse"
    assert "+3" in p99 or "+2" in p99
    p50 = next(line for line in lines if line.startswith("probe.latency.p50"))
    assert " ~ " in p50
    assert "equivalent" in p50
    assert "stored in schedlab-results/toy-" in err


@pytest.mark.parametrize("style", STYLES)
def test_every_style_names_the_arm_and_every_metric(style: str, schedlab: Call, scenario: Write) -> None:
    code, out, _ = schedlab("compare", scenario(behaviour=SLOWER), "--style", style, "-q")
    assert code == 0
    assert "simulated" in out
    for metric in ("probe.latency.p50", "probe.latency.p99", "load.rate", "sched.switches"):
        assert metric in out


def test_json_contract(schedlab: Call, scenario: Write) -> None:
    code, out, _ = schedlab("compare", scenario(behaviour=SLOWER), "--json", "-")
    assert code == 0
    d = json.loads(out)
    assert {"schema", "scenario", "arm", "engine", "seeds", "variants", "metrics", "digests"} <= d.keys()
    assert d["variants"] == ["cfs", "eevdf"]
    assert d["seeds"] == list(range(1, 11))
    p99 = next(m for m in d["metrics"] if m["metric"] == "probe.latency.p99")
    assert {"metric", "unit", "better", "samples", "comparisons"} <= p99.keys()
    assert [len(s) for s in p99["samples"].values()] == [10, 10]
    comparison = p99["comparisons"][0]
    assert {"a", "b", "delta_pct", "ci_pct", "verdict", "reason"} <= comparison.keys()
    low, high = comparison["ci_pct"]
    assert low < comparison["delta_pct"] < high
    assert comparison["verdict"] == "worse"
    switches = next(m for m in d["metrics"] if m["metric"] == "sched.switches")["comparisons"][0]
    assert (switches["verdict"], switches["ci_pct"]) == ("deterministic, n = 1", None)
    assert set(d["digests"]["cfs"]) == {str(s) for s in range(1, 11)}


def test_jobs_change_no_byte(schedlab: Call, scenario: Write) -> None:
    name = scenario(behaviour=SLOWER)
    outputs = {schedlab("compare", name, "--json", "-", "--jobs", jobs)[1] for jobs in ("1", "2", "7")}
    assert len(outputs) == 1


def test_seeds_by_number_and_by_name(schedlab: Call, scenario: Write) -> None:
    name = scenario()
    assert json.loads(schedlab("compare", name, "--seeds", "3", "--json", "-")[1])["seeds"] == [1, 2, 3]
    assert json.loads(schedlab("compare", name, "--seeds", "4,2,9", "--json", "-")[1])["seeds"] == [4, 2, 9]


def test_report_repeats_what_compare_said(schedlab: Call, scenario: Write) -> None:
    _, out, _ = schedlab("compare", scenario(behaviour=SLOWER), "--json", "-", "--out", "r")
    code, again, _ = schedlab("report", "r", "--json", "-")
    assert code == 0
    assert again == out
    assert schedlab("report", "r/results.jsonl", "--json", "-")[1] == out


def test_report_compares_two_results(schedlab: Call, scenario: Write) -> None:
    schedlab("compare", scenario(), "--out", "old")
    schedlab("compare", scenario(behaviour=SLOWER), "--out", "new", "--seeds", "8")
    code, out, _ = schedlab("report", "old", "new", "--json", "-")
    assert code == 0
    d = json.loads(out)
    assert d["variants"] == ["old:cfs", "new:cfs", "old:eevdf", "new:eevdf"]
    assert d["seeds"] == list(range(1, 9))
    p99 = next(m for m in d["metrics"] if m["metric"] == "probe.latency.p99")["comparisons"]
    assert [(c["a"], c["b"], c["verdict"]) for c in p99] == [
        ("old:cfs", "new:cfs", "equivalent"),
        ("old:eevdf", "new:eevdf", "worse"),
    ]
    for style in STYLES:
        assert "new:eevdf" in schedlab("report", "old", "new", "--style", style)[1]


@pytest.mark.parametrize(
    ("gate", "code"), [("worse", 1), ("better", 0), ("undecided,worse", 1), ("changed", 0), ("equivalent", 1)]
)
def test_gates(gate: str, code: int, schedlab: Call, scenario: Write) -> None:
    found, out, err = schedlab("compare", scenario(behaviour=SLOWER), "--fail-on", gate, "--no-progress")
    assert found == code
    assert out
    assert bool(re.search("^gate ", err, re.M)) == bool(code)
    # --quiet leaves out remarks, not why the command fails.
    quiet = schedlab("compare", scenario(behaviour=SLOWER), "--fail-on", gate, "-q")
    assert bool(re.search("^gate ", quiet[2], re.M)) == bool(code)


def test_a_gate_watches_declared_metrics_if_there_are_any(schedlab: Call, scenario: Write) -> None:

    metrics = fake_engine.describe()["metrics"]
    metrics[0]["declared"] = True
    assert schedlab("compare", scenario(behaviour=SLOWER, metrics=metrics), "--fail-on", "worse")[0] == 0


def test_a_gate_sees_deterministic_differences(schedlab: Call, scenario: Write) -> None:
    behaviour = {v: {"fixed": {"probe.latency.p50": x}} for v, x in (("cfs", 4.0), ("eevdf", 6.0))}
    assert schedlab("compare", scenario(behaviour=behaviour), "--fail-on", "worse")[0] == 1


def test_failed_runs_leave_the_rest(schedlab: Call, scenario: Write) -> None:
    name = scenario(behaviour={"eevdf": {"fail_on": [3, 4]}})
    code, out, err = schedlab("compare", name, "--out", "r")
    assert code == 3
    assert "2 failed runs left out of these numbers" in out
    assert "eevdf seed 3: deadlock at 12.5 ms" in err
    assert "1 more seed failed" in err
    assert "Traceback" not in err
    d = json.loads(schedlab("report", "r", "--json", "-")[1])
    assert d["metrics"][0]["samples"]["eevdf"][2] is None
    assert not d["complete"]
    assert [f["seed"] for f in d["failures"]] == [3, 4]


def test_all_runs_failed(schedlab: Call, scenario: Write) -> None:
    everything = list(range(1, 11))
    name = scenario(behaviour={"cfs": {"fail_on": everything}, "eevdf": {"fail_on": everything}})
    code, out, err = schedlab("compare", name)
    assert (code, out) == (3, "")
    assert err.count("error: ") == 2


def test_missing_metrics_are_said(schedlab: Call, scenario: Write) -> None:
    name = scenario(behaviour={"eevdf": {"fixed": {"probe.latency.p99": None}}})
    code, out, _ = schedlab("compare", name, "--html", "page.html")
    assert code == 0
    assert "no seed has a value for eevdf" in out


def test_a_page_goes_to_stdout(schedlab: Call, scenario: Write) -> None:
    code, out, _ = schedlab("compare", scenario(), "--html", "-")
    assert code == 0
    assert out.startswith("<!doctype html>")
    assert not Path("-").exists()


def test_run_shows_one_run(schedlab: Call, scenario: Write) -> None:
    code, out, _ = schedlab("run", scenario(), "--variant", "eevdf", "--seed", "7", "--trace", "t.ftrace")
    assert code == 0
    assert "eevdf = 6.12.0, seed 7" in out
    assert "simulated" in out
    assert Path("t.ftrace").read_text() == "# eevdf 7\n"
    assert "deterministic" in schedlab("run", scenario(), "--variant", "cfs", "--check-determinism")[1]


def test_two_runs_that_differ_fail(schedlab: Call, scenario: Write) -> None:
    name = scenario(behaviour={"cfs": {"determinism": "event 17: sched_switch"}})
    code, _, err = schedlab("run", name, "--variant", "cfs", "--seed", "2", "--check-determinism")
    assert code == 3
    assert "two runs of cfs seed 2 differ: event 17" in err


def test_a_seed_is_any_u64(schedlab: Call, scenario: Write) -> None:
    largest = str(2**64 - 1)
    code, out, _ = schedlab("run", scenario(), "--variant", "cfs", "--seed", largest, "--json", "-")
    assert (code, json.loads(out)["seeds"]) == (0, [2**64 - 1])


def test_run_json_contract(schedlab: Call, scenario: Write) -> None:
    d = json.loads(schedlab("run", scenario(), "--variant", "cfs", "--seed", "2", "--json")[1])
    assert {"schema", "scenario", "arm", "engine", "seeds", "variants", "metrics", "digests"} <= d.keys()
    assert {"events", "switches", "sim_s", "wall_s", "tasks"} <= d.keys()
    assert {"name", "cpu_ns", "wait_ns", "switches"} <= d["tasks"][0].keys()
    assert d["metrics"][0]["samples"] == {"cfs": [pytest.approx(d["metrics"][0]["samples"]["cfs"][0])]}


def test_list(schedlab: Call) -> None:
    code, out, err = schedlab("list", "machines")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "laptop-8  8 CPUs  uncalibrated  Core i7")
    assert lines[1].startswith("rpi4      4 CPUs  uncalibrated  no SMT, many words, ")
    assert lines[2].startswith(32 * " ")
    assert all(len(line) <= 80 for line in lines)
    assert "`schedlab list machines NAME`" in err
    code, out, _ = schedlab("list", "machines", "laptop-8")
    assert (code, out.splitlines()[-1]) == (0, "tick    a table")
    code, _, err = schedlab("list", "machines", "laptop-9")
    assert (code, "there is no machine `laptop-9`" in err, "did you mean `laptop-8`?" in err) == (2, True, True)
    assert [r["id"] for r in json.loads(schedlab("list", "machines", "--json")[1])] == ["laptop-8", "rpi4"]


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("workloads", "cyclictest"),
        ("kernels", "6.12.107"),
        ("machines", "rpi4"),
        ("knobs", "base_slice_ns"),
        ("knobs", "base_slice"),
    ],
)
def test_lists_of_the_real_engine_say_what_the_docs_promise(kind: str, one: str, capsys: Any) -> None:
    try:
        rows = native_engine().listing(kind)
    except SchedlabError as e:
        pytest.skip(e.message)
    assert main(["list", kind]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert all(any(line.startswith(row["id"]) for line in out.splitlines()) for row in rows)
    if kind in ("workloads", "kernels"):
        assert len(out.splitlines()) == len(rows), "a line each"
        flat = " ".join(out.split())
        assert all(" ".join([row["id"], *row.get("aliases", ()), row["summary"]]) in flat for row in rows)
    assert main(["list", kind, one]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    row = next(row for row in rows if row["id"].startswith(one))
    said = [row["summary"], *row.get("structure", ()), *row.get("simplified", ())]
    said += [part["help"] for key in ("options", "metrics") for part in row.get(key, ())]
    said += [part[key] for part in row.get("parameters", ()) for key in ("name", "value", "source")]
    said += [source.partition(": ")[2] for source in row.get("sources", ())]
    flat = " ".join(out.split())
    assert all(word in flat for text in said for word in text.split())


OVERRIDES = [
    # flags, what the engine is asked for
    ([], None),
    (["--machine", "mine.toml"], {"machine": "mine.toml"}),
    (["--duration", "500ms", "--noise", "off"], {"duration": "500ms", "noise": False}),
    (["--set", "knobs.base_slice=3ms", "--set", "noise=false"], {"set": ["knobs.base_slice=3ms", "noise=false"]}),
]


@pytest.mark.parametrize(("flags", "asked"), OVERRIDES)
@pytest.mark.parametrize("command", [("compare",), ("run", "--variant", "cfs"), ("explain",), ("ablate",)])
def test_flags_replace_lines_of_the_scenario(
    command: tuple[str, ...], flags: list[str], asked: Any, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:

    found = []

    def load(path: str, overrides: str | None = None) -> Any:
        found.append(overrides and json.loads(overrides))
        raise fake_engine.ScenarioError("enough", file=path)

    monkeypatch.setattr(fake_engine, "load", load)
    assert main([*command, scenario(), *flags], Engine(fake_engine)) == 2
    assert found == [asked]


def test_the_host_arm_has_no_other_machine(schedlab: Call, scenario: Write) -> None:
    for flags in (["--machine", "rpi4"], ["--set", "machine.hz=100"]):
        code, _, err = schedlab("compare", scenario(), "--arm", "host", *flags)
        assert (code, "the host arm runs on this machine" in err) == (2, True)


def test_traces_of_a_comparison(schedlab: Call, scenario: Write) -> None:
    schedlab("compare", scenario(), "--seeds", "2", "--trace", "traces")
    assert sorted(p.name for p in Path("traces").iterdir()) == [
        f"{v}-seed{s}.ftrace" for v in ("cfs", "eevdf") for s in (1, 2)
    ]


BAD = [
    # arguments, exit code, words on stderr
    (["compare", "nowhere.toml"], 2, ["nowhere.toml", "is the name right?"]),
    (["compare", "bad.toml"], 2, ["error: unknown key `grups`", "bad.toml:3:5", "did you mean `groups`?"]),
    (["compare", "toy.toml", "--arm", "vm"], 4, ["cannot find schedlab-agent", "make agent"]),
    (["compare", "toy.toml", "--arm", "host"], 4, ["cannot find schedlab-agent"]),
    (["compare", "toy.toml", "--arm", "moon"], 2, ["invalid choice"]),
    (["compare", "toy.toml", "--seeds", "0"], 2, ["`0` is not a whole number from 1 to 10000"]),
    (["compare", "toy.toml", "--jobs", "0"], 2, ["`0` is not a whole number from 1 to 4096"]),
    (["run", "toy.toml", "--seed", "18446744073709551616"], 2, ["whole number from 0 to 18446744073709551615"]),
    (["compare", "toy.toml", "--seeds", "1,1"], 2, ["contains a seed twice"]),
    (["compare", "toy.toml", "--seeds", "many"], 2, ["`many` is not a whole number"]),
    (["compare", "toy.toml", "--jobs", "-3"], 2, ["whole number"]),
    (["compare", "toy.toml", "--style", "bechstat"], 2, ["did you mean `benchstat`?"]),
    (["compare", "toy.toml", "--fial-on", "worse"], 2, ["did you mean `--fail-on`?"]),
    (["compare", "toy.toml", "--fail-on", "bad"], 2, ["`bad` is not a verdict"]),
    (["compare", "toy.toml", "--html", "."], 2, ["cannot write --html .: it is a directory"]),
    (
        ["compare", "toy.toml", "--json", "bad.toml/x.json"],
        2,
        ["cannot write --json bad.toml/x.json: bad.toml is not a directory"],
    ),
    (["compare", "toy.toml", "--html", "-", "--json", "-"], 2, ["--html and --json cannot both go to stdout"]),
    (["compare", "toy.toml", "--out", "-"], 2, ["--out cannot be stdout", "./-"]),
    (["run", "toy.toml", "--variant", "cfs", "--trace", "-"], 2, ["--trace cannot be stdout"]),
    (["run", "toy.toml", "--variant", "cfs", "--trace", "no/t.ftrace"], 2, ["there is no directory no"]),
    (["explain", "toy.toml", "--json", "."], 2, ["cannot write --json ."]),
    (["list", "kernels", "--json", "."], 2, ["cannot write --json ."]),
    (["doctor", "--json", "."], 2, ["cannot write --json ."]),
    (["calibrate", "--out", "."], 2, ["cannot write --out ."]),
    (["calibrate", "--kernel", "6.12"], 2, ["--kernel is the kernel of a guest", "add --arm vm"]),
    (["validate", "toy.toml", "--out", "."], 2, ["cannot write --out ."]),
    (["record", "--kernel", "6.1", "--out", "no/t.dat", "--", "true"], 2, ["there is no directory no"]),
    (["compare", "toy.toml", "--out", "toy.toml/x"], 2, ["cannot write --out toy.toml/x: toy.toml is not a directory"]),
    (["compare"], 2, ["SCENARIO"]),
    (["run", "toy.toml"], 2, ["several variants", "cfs, eevdf"]),
    (["run", "toy.toml", "--variant", "eevfd"], 2, ["did you mean `eevdf`?"]),
    (
        ["run", "toy.toml", "--variant", "eevdf", "--seed", "-1"],
        2,
        ["`-1` is not a whole number from 0 to 18446744073709551615"],
    ),
    (["list", "machine"], 2, ["did you mean `machines`?"]),
    (
        ["list", "machines", "--kernel", "6.1"],
        2,
        ["--kernel has no effect on a list of machines", "features, knobs and kernels"],
    ),
    (["list", "features", "--kernel", "6.13"], 2, ["no kernel `6.13`", "6.12.0"]),
    (["report", "nothing"], 2, ["there is no result: No such file or directory", "--> nothing", "schedlab compare"]),
    (["report", "."], 2, ["there is no result: the directory has no manifest.json", "--> ."]),
    (["run", "toy.toml", "--duration", "-5s"], 2, ["expected one argument", "written as --duration=VALUE"]),
    (["report", "a", "b", "c"], 2, []),
    (["explian"], 2, ["invalid choice"]),
    ([], 2, ["COMMAND"]),
]


@pytest.mark.parametrize(("arguments", "code", "words"), BAD, ids=[" ".join(b[0]) or "nothing" for b in BAD])
def test_bad_input_ends_with_one_message(
    arguments: list[str],
    code: int,
    words: list[str],
    schedlab: Call,
    scenario: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario()
    monkeypatch.setenv("SCHEDLAB_AGENT", "none")
    Path("bad.toml").write_text("{ not json")
    found, out, err = schedlab(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("error: ") == 1
    assert "Traceback" not in err
    assert not any(f"did you mean `{argument}`" in err for argument in arguments)
    for word in words:
        assert word in err


def test_a_bug_is_one_message_too(schedlab: Call, scenario: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDLAB_TRACEBACK", raising=False)
    code, _, err = schedlab("compare", scenario(behaviour={"cfs": {"bug": True}}))
    assert code == 70
    assert "schedlab itself failed: ValueError: a bug in the stand-in" in err
    assert "Traceback" not in err


def test_a_panic_fails_its_runs_and_names_variant_and_seed(schedlab: Call, scenario: Write) -> None:
    name = scenario(behaviour={"eevdf": {"panic": True}})
    alone = ["run", name, "--variant", "eevdf", "--seed", "1"]
    for arguments, expected in ((["compare", name, "--seeds", "6"], 3), (alone, 70)):
        code, _, err = schedlab(*arguments)
        assert code == expected
        assert "the engine panicked: index out of bounds" in err
        assert "variant `eevdf`, seed 1" in err
        assert "Traceback" not in err


def test_colour_only_where_wanted(schedlab: Call, scenario: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    name = scenario(behaviour=SLOWER)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b" not in schedlab("compare", name)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    for evidence, coloured in ((Evidence("p99 latency", 9, 0, 1), True), (Evidence("p99 latency", 3, 2, 0), False)):
        monkeypatch.setattr("schedlab.compare_variants.evidence", lambda *_, evidence=evidence, **__: evidence)
        assert ("\x1b[31m" in schedlab("compare", name)[1]) == coloured, evidence.grade
    monkeypatch.setattr("schedlab.compare_variants.evidence", lambda *_, **__: Evidence("p99 latency", 9, 0, 1))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in schedlab("compare", name)[1]


def test_quiet_and_verbose(schedlab: Call, scenario: Write) -> None:
    assert schedlab("compare", scenario(), "-q")[2] == ""
    assert schedlab("compare", scenario(), "-v")[2].count(" switches, ") == 20
    assert "runs\n" not in schedlab("compare", scenario(), "--no-progress")[2]
    assert re.search(r"^20/20 runs, [\d,.]+ runs/s$", schedlab("compare", scenario())[2], re.M)


def test_an_output_directory_is_never_written_over(schedlab: Call, scenario: Write) -> None:
    assert schedlab("compare", scenario(), "--out", "r")[0] == 0
    code, _, err = schedlab("compare", scenario(), "--out", "r")
    assert code == 2
    assert "already holds a result" in err


@pytest.mark.parametrize("command", ["compare", "run", "list", "report"])
def test_every_command_has_help_with_the_exit_codes(command: str, schedlab: Call) -> None:
    code, out, _ = schedlab(command, "--help")
    assert code == 0
    assert "130  interrupted" in out


def test_choices_are_those_of_the_modules_that_carry_them() -> None:
    from schedlab import engine, render, verdicts

    assert STYLES == render.STYLES
    assert KINDS == engine.KINDS
    assert {*verdicts.GATES, verdicts.NOISY, verdicts.DETERMINISTIC} == set(verdicts.VERDICTS)
    assert build_parser().prog == "schedlab"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from schedlab.cli import main; main(['--help']); "
        "heavy = 'numpy', 'scipy', 'vl_convert', 'json', 'pandas', 'subprocess', 'dataclasses', 'schedlab._engine'; "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = _python("-c", code)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text("{}")
    command = f"{sys.executable} {HERE / 'stand_in_cli.py'} compare toy.toml -q --style mmtests | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, env=_env(), capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)


def test_a_full_stdout_is_said(tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text("{}")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, HERE / "stand_in_cli.py", "compare", "toy.toml", "-q"],
            cwd=tmp_path, env=_env(), stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == "error: cannot write to stdout: No space left on device\n  hint: free some space\n"


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], env=_env(), capture_output=True, text=True, check=True)


def _env() -> dict[str, Any]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}


def test_run_says_what_the_warm_up_leaves_out(schedlab: Call, scenario: Write) -> None:
    _, out, _ = schedlab("run", scenario(warmup_ns=50_000_000), "--variant", "cfs")
    assert "the metrics leave out the warm-up of 0.05 s" in " ".join(out.split())
    assert "warm-up" not in schedlab("run", scenario(), "--variant", "cfs")[1]


def test_doctor_fits_a_terminal(capsys: Any) -> None:
    assert main(["doctor"], Engine(fake_engine)) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line for line in lines if "/" not in line]
    assert words
    assert all(len(line) <= 90 for line in words)


@pytest.mark.parametrize(("arm", "early"), [("sim", True), ("host", False)])
def test_only_a_simulated_comparison_imports_scipy_beside_its_runs(
    arm: str, early: bool, schedlab: Call, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr("schedlab.cli.compare.import_early", lambda: begun.append("import"))
    # The runs of both arms are the simulator's: only the name of the arm differs.
    monkeypatch.setattr("schedlab.cli.compare.arm_of", lambda _, *rest, **keep: arm_of("sim", *rest, **keep))
    code, out, _ = schedlab("compare", scenario(), "--arm", arm)
    assert (code, bool(out), bool(begun)) == (0, True, early)
