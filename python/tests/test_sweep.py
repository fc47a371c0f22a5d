"""`schedlab sweep` with the real engine: nothing that ended is lost, and every way to run it gives the same result."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import schedlab
import sweeps
from schedlab.cli import main
from schedlab.engine import native_engine
from schedlab.errors import ArmError
from schedlab.judge import judge
from schedlab.render.sweep import sentences
from schedlab.scenario import Metric
from schedlab.sweeping.cluster import trouble
from schedlab.sweeping.job import Job, Limits
from schedlab.sweeping.judged import Cell, Judged, Map
from schedlab.sweeping.local import TRIES, Local
from schedlab.sweeping.plan import content, run_id
from sweeps import RUNS, children, ids, lines, start, wait_for_lines
from test_full_disk import FULL, files_end_at

Sweep = Callable[..., tuple[int, str, str]]
HERE = Path(__file__).parent


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sweep:
    """The command in this process, in a folder with the files: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    sweeps.write(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["sweep", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep, run once without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    sweeps.write(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["sweep", "sweep.toml", "--out", "r", "--export", "all.jsonl", "-q"]) == 0
    finally:
        os.chdir(before)
    return folder


def same_as(whole: Path, file: str) -> bool:
    return Path(file).read_bytes() == (whole / "all.jsonl").read_bytes()


def test_every_run_is_there_once_and_shown(whole: Path, sweep: Sweep) -> None:
    assert len(lines(whole / "r")) == RUNS
    shutil.copytree(whole / "r", "r")
    code, out, err = sweep("sweep.toml", "--out", "r", "--json", "j.json", "--html", "p.html", "--pictures", "pics",
                           "--export", "e.csv")  # fmt: skip
    assert code == 0
    assert f"0 runs of 6 points to do, {RUNS} done" in err
    assert "2 seeds per point: a 95% interval needs at least 6, so no change is judged" in err
    assert len(lines("r")) == RUNS, "nothing was done again"
    first = " ".join(out.split("\n\n")[0].split())
    assert first.startswith("toy, simulated at 6 points: ")
    assert "no difference between eevdf and cfs in load.time is shown; 6 undecided." in first
    document = json.loads(Path("j.json").read_text())
    (map,) = document["maps"]
    assert [cell["point"]["load"] for cell in map["cells"]] == ["100%"] * 2 + ["200%"] * 2 + ["300%"] * 2
    assert {g["variant"] for g in document["growth"]} == {"cfs", "eevdf"}
    assert {Path(p).name for p in Path("pics").iterdir()} >= {"map-load.time-eevdf.svg", "growth-load.time-load.svg"}
    page = Path("p.html").read_text()
    assert "<h1>Sweep: toy</h1>" in page
    assert "http" not in re.sub(r"<script.*?</script>|<svg.*?</svg>", "", page, flags=re.S)
    table = Path("e.csv").read_text().splitlines()
    assert len(table) == 1 + 6 * 2 * 2, "one row per place in the plan"
    assert table[1:] == sorted(table[1:], key=lambda row: row.partition(",")[0])


def test_the_first_sentence_says_who_wins_where_and_at_what_cost() -> None:
    def over(name: str, *factors: float) -> Map:
        metric = Metric(name, name, None, "s", "lower", 2.0, "", False)
        base = [1.0 + i / 100 for i in range(8)]
        found = [judge(metric, "cfs", "eevdf", base, [x * (f + i / 1000) for i, x in enumerate(base)]) for f in factors]
        return Map(metric, "cfs", "eevdf", tuple(Cell(i, metric, j, None) for i, j in enumerate(found)))

    experiment = SimpleNamespace(
        manifest={"sweep": {"name": "toy"}}, points=[1, 2, 3], label=lambda point: f"load {point}"
    )
    judged = SimpleNamespace(experiment=experiment, maps=(over("time", 0.5, 0.8, 1.5), over("wait", 1.2, 1.0, 1.3)))
    (sentence,) = sentences(cast(Judged, judged))
    assert sentence.startswith("toy, simulated at 3 points: eevdf has the better time at 2 of 3, most at load 0: -49.")
    assert "8 seeds); cfs has the better time at 1 of 3, most at load 2: +50." in sentence
    assert sentence.endswith("Elsewhere eevdf is worse in wait (at 2 points).")


def test_points_of_a_latin_hypercube_are_judged_and_have_no_lines(sweep: Sweep, tmp_path: Path) -> None:
    head = 'name = "toy"\nscenario = "toy.toml"\ndesign = "latin-hypercube"\npoints = 3\nseeds = 1\n'
    slices = '[[axis]]\nkey = "variant.eevdf.knobs.base_slice_ns"\nfrom = "0.5ms"\nto = "30ms"\nscale = "log"\n'
    groups = '[[axis]]\nkey = "workload.load.groups"\nfrom = 1\nto = 9\n'
    sweeps.write(tmp_path, sweep=head + slices + groups)
    code, out, _ = sweep("sweep.toml", "--out", "r", "--html", "p.html")
    assert code == 0
    assert "toy, simulated at 3 points" in out
    assert "no two points lie on a line along an axis" in out
    assert "where the verdict flips" not in out


def test_parquet_holds_the_same_rows(whole: Path, sweep: Sweep) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: Parquet is not tested")
    shutil.copytree(whole / "r", "r")
    assert sweep("sweep.toml", "--out", "r", "--export", "e.parquet", "-q")[0] == 0
    rows = parquet.read_table("e.parquet").to_pylist()
    assert len(rows) == 24
    assert {row["status"] for row in rows} == {"ok"}


def test_shards_joined_are_the_whole(whole: Path, sweep: Sweep) -> None:
    for part in ("1/2", "2/2"):
        code, out, err = sweep("sweep.toml", "--out", f"part-{part[0]}", "--shard", part)
        assert (code, out) == (0, "")
        assert "runs of other shards not in" in err
    assert sweep("--merge", "part-1", "part-2", "--out", "r", "--export", "e.jsonl")[0] == 0
    assert same_as(whole, "e.jsonl")
    assert 0 < len(lines("part-1")) < RUNS
    code, _, err = sweep("--merge", "part-1", "--out", "half")
    assert "runs of the plan are in none of these directories" in err
    # Shards that share a directory need no merge.
    shutil.rmtree("part-1")
    sweep("sweep.toml", "--out", "part-2", "--shard", "1/2")
    assert sweep("sweep.toml", "--out", "part-2", "--export", "f.jsonl")[0] == 0
    assert same_as(whole, "f.jsonl")


def test_two_different_results_of_one_run_are_an_error(whole: Path, sweep: Sweep) -> None:
    for name in ("a", "b"):
        shutil.copytree(whole / "r", name)
    file = Path("b/results.jsonl")
    text = file.read_text()
    file.write_text(re.sub(r'"digest":"([0-9a-f]{4})', r'"digest":"0000', text, count=1))
    code, _, err = sweep("--merge", "a", "b", "--out", "r")
    assert code == 2
    assert "has two results, which differ: a/results.jsonl:1 and b/results.jsonl:1" in err
    assert not Path("r").exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_sweep_goes_on_where_it_was(whole: Path, sweep: Sweep, how: signal.Signals) -> None:
    process = start("sweep.toml", "--out", "r", "--jobs", "1")
    wait_for_lines(process, "r", 3)
    workers = children(process.pid)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    while any(Path(f"/proc/{pid}/exe").exists() for pid in workers):
        time.sleep(0.01)  # no worker outlives the command, however that ends
    if how == signal.SIGINT:
        assert process.returncode == 130
        # On a busy machine the last run may have ended before the signal arrives.
        assert "the same command resumes" in err or len(lines("r")) == RUNS
        assert "Traceback" not in err
    kept = Path("r/results.jsonl").read_bytes()
    with open("r/results.jsonl", "ab") as torn:
        torn.write(b'{"id":"00')
    assert sweep("sweep.toml", "--out", "r", "--export", "e.jsonl")[0] == 0
    assert Path("r/results.jsonl").read_bytes().startswith(kept)
    assert len(lines("r")) == RUNS
    assert same_as(whole, "e.jsonl")


def test_a_worker_that_is_killed_is_replaced(whole: Path, sweep: Sweep) -> None:
    process = start("sweep.toml", "--out", "r", "--jobs", "2", "--export", "e.jsonl")
    # Fewer kills than tries: a run whose worker is killed as often as it may be tried has failed.
    for count in range(1, 1 + 4 * (TRIES - 1), 4):
        wait_for_lines(process, "r", count)
        for pid in children(process.pid)[:1]:
            os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert len(lines("r")) == RUNS
    assert same_as(whole, "e.jsonl")


FAILURES = [
    # what one level of the axis sets, flags, what the message of its runs says
    ('duration = "24h"', ("--time-limit", "2"), "no end within 2 s"),
    ('"workload.hog.threads" = 100000', ("--memory", "120", "--time-limit", "60"), "memory allocation"),
]


@pytest.mark.parametrize(("sets", "flags", "message"), FAILURES)
def test_runs_that_hang_or_need_too_much_are_recorded(
    sweep: Sweep, tmp_path: Path, sets: str, flags: tuple[str, ...], message: str
) -> None:
    axis = f'[[axis]]\nname = "a"\n[[axis.level]]\nlabel = "bad"\nset = {{ {sets} }}\n[[axis.level]]\nlabel = "good"\n'
    scenario = sweeps.SCENARIO.replace("[[variant]]", '[[workload]]\nuse = "hog"\n[[variant]]', 1)
    sweeps.write(tmp_path, scenario, 'name = "toy"\nseeds = 1\nscenario = "toy.toml"\n' + axis)
    code, out, err = sweep("sweep.toml", "--out", "r", *flags)
    assert code == 3
    failed = [record for record in lines("r") if record["status"] == "failed"]
    assert len(failed) == 2
    assert len(lines("r")) == 4
    for record in failed:
        assert message in record["error"]["message"]
        assert record["replay"].startswith("schedlab run toy.toml --set ")
        assert record["replay"] in err
    assert "2 failed runs left out of these numbers" in out
    assert "0 runs of 2 points to do" in sweep("sweep.toml", "--out", "r", *flags)[2], "failures are results"
    if "--memory" in flags:
        code, out, err = sweep("sweep.toml", "--out", "r", "--retry")
        assert (code, "failed" in out) == (0, False)
        assert "2 runs of 2 points to do" in err


def test_runs_that_wait_behind_one_that_hangs_are_done(sweep: Sweep, tmp_path: Path) -> None:
    lengths = ["20ms", "21ms", "22ms", "23ms", "24h", "24ms", "25ms", "26ms"]
    sweeps.write(tmp_path, sweep=f'scenario = "toy.toml"\nseeds = 1\n[[axis]]\nkey = "duration"\nvalues = {lengths}\n')
    code, _, _ = sweep("sweep.toml", "--out", "r", "--jobs", "1", "--time-limit", "3")
    assert code == 3
    found = lines("r")
    assert len(ids(found)) == len({*ids(found)}) == 2 * len(lengths)
    failed = [record for record in found if record["status"] == "failed"]
    assert [record["variant"] for record in failed] == ["cfs", "eevdf"]
    assert all("duration=24h" in record["replay"] for record in failed)


def test_a_full_disk_ends_in_one_message_and_loses_nothing(whole: Path, sweep: Sweep) -> None:
    size = (whole / "r" / "results.jsonl").stat().st_size
    with files_end_at(size // 2):
        code, _, err = sweep("sweep.toml", "--out", "r", "--jobs", "1", "--no-progress")
    assert code == 3
    assert err.count("error: ") == 1
    assert f"cannot add to r/results.jsonl: {FULL}" in err
    assert "the same command resumes" in err
    kept = ids(lines("r"))
    assert 0 < len(kept) < RUNS
    assert Path("r/results.jsonl").read_bytes().endswith(b"\n"), "no torn line is left"
    assert sweep("sweep.toml", "--out", "r", "--export", "e.jsonl")[0] == 0
    assert same_as(whole, "e.jsonl")


def test_a_store_that_cannot_be_written(sweep: Sweep) -> None:
    Path("r").mkdir()
    Path("r/results.jsonl").mkdir()
    code, _, err = sweep("sweep.toml", "--out", "r")
    assert code == 3
    assert err.count("error: ") == 1
    assert "cannot keep runs in r: " in err
    assert "choose another directory with --out" in err


def test_runs_of_a_changed_sweep_stay_beside_the_older_ones(whole: Path, sweep: Sweep, tmp_path: Path) -> None:
    shutil.copytree(whole / "r", "r")
    (older,) = Path("r").glob("manifest-*.json")
    sweeps.write(tmp_path, sweep=sweeps.SWEEP.replace('"1ms"', '"2ms"'))
    code, _, err = sweep("sweep.toml", "--out", "r")
    assert code == 0
    assert f"6 runs of 6 points to do, {RUNS - 6} done" in err
    assert "6 runs of other plans or of another build of the engine stay in r" in err
    assert len(lines("r")) == RUNS + 6
    assert main(["report", str(older)]) == 0, "the older plan is still there"
    assert main(["report", "r"]) == 0


def test_a_stored_sweep_of_an_older_version_stays_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = HERE / "formats" / "sweep-1"
    copy = shutil.copytree(folder, tmp_path / "r")
    assert main(["report", str(copy)]) == 0
    # The model error is today's, from the stored validity sets, and not the sweep's.
    printed = re.sub(r"it was up to [0-9,]+%", "it was up to N%", capsys.readouterr().out)
    assert printed == (folder / "report.txt").read_text()


def test_the_plan_alone(sweep: Sweep) -> None:
    code, out, _ = sweep("sweep.toml", "--dry-run", "--jobs", "2")
    assert code == 0
    assert f"toy: 6 points, 24 runs ({RUNS} of them different)" in out
    assert re.search(r"about [0-9.]+ s \(from the first and the last point", out)
    assert f"{RUNS} runs to do, 2 at a time" in out
    assert not Path("schedlab-results").exists()


REFUSED = [
    ((), 2, "no sweep is named"),
    (("none.toml",), 2, "cannot read the sweep"),
    (("sweep.toml", "--shard", "3/2"), 2, "`3` is not a whole number from 1 to 2"),
    (("sweep.toml", "--shard", "1"), 2, "write 1/2 for the first of two"),
    (("sweep.toml", "--export", "e.xlsx"), 2, "no export has the suffix `.xlsx`"),
    (("sweep.toml", "--dask", "nowhere"), 2, "`nowhere` is not the address of a Dask scheduler"),
    (("--merge", "r"), 2, "--merge needs a directory"),
    (("--merge", "r", "--out", "s"), 2, "there is no sweep"),
    (("sweep.toml", "--merge", "r", "--shard", "1/2", "--out", "s"), 2, "--merge joins results and runs nothing"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSED)
def test_what_cannot_be_asked(sweep: Sweep, arguments: tuple[str, ...], code: int, message: str) -> None:
    found, _, err = sweep(*arguments)
    assert (found, err.count("error: ")) == (code, 1)
    assert message in err
    assert not Path("schedlab-results").exists()


BAD_AXES = [
    ('key = "workload.load.grups"\nvalues = [1]', "at 1: workload.grups: unknown key"),
    ('key = "workload.load.groups"\nvalues = [0]', "at 0: "),
    ('key = "variant.cfz.hz"\nvalues = [100]', "at 100: "),
    ('key = "machine"\nvalues = ["cray"]', "at cray: "),
]


@pytest.mark.parametrize(("axis", "message"), BAD_AXES)
def test_an_axis_that_the_scenario_refuses(sweep: Sweep, tmp_path: Path, axis: str, message: str) -> None:
    sweeps.write(tmp_path, sweep=f'scenario = "toy.toml"\n[[axis]]\n{axis}\n')
    code, _, err = sweep("sweep.toml", "--out", "r")
    assert (code, err.count("error: ")) == (2, 1)
    assert f"the scenario is not valid {message}" in err
    assert "sweep.toml" in err
    assert not Path("r").exists()


SHIPPED = sorted((HERE.parents[1] / "sweeps").rglob("*.toml"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_shipped_sweeps_run_in_short_form(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", str(file), "--short", "--out", "r", "--json", "-", "--html", "p.html", "-q"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["missing"] == 0
    values = [cell["median_a"] for map in document["maps"] for cell in map["cells"]]
    assert values
    assert None not in values, "every point measures something"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_every_level_of_a_shipped_sweep_has_the_cpus_that_its_summary_states(file: Path) -> None:
    """A `topology` replaces that of a preset as a whole: what a level leaves out is not the preset's."""
    text = tomllib.loads(file.read_text())
    stated = re.findall(r"\b(\d+) CPUs", text["summary"])
    levels = [level.get("set", {}) for axis in text["axis"] for level in axis.get("level", [])]
    for level in (level for level in levels if any(key.startswith("machine.topology.") for key in level)):
        cpus = schedlab.load(file.parent / text["scenario"], overrides=level).machine.cpus
        assert not stated or str(cpus) in stated, level


def test_there_are_four_shipped_sweeps() -> None:
    assert len(SHIPPED) >= 4


UNFIT = [
    # what is asked of a worker process: the build of the engine, the id of the run, and what the message says
    ("0" * 64, None, "a worker process could not start: this is another build of the engine"),
    (None, "0" * 32, "the scenario is not the same here as where the sweep was planned"),
]


@pytest.mark.parametrize(("build", "name", "message"), UNFIT)
def test_a_worker_that_would_do_other_runs_stops_the_sweep(
    tmp_path: Path, build: str | None, name: str | None, message: str
) -> None:
    sweeps.write(tmp_path)
    own = native_engine().build()
    scenario = schedlab.load(tmp_path / "toy.toml")
    known = run_id(content(native_engine(), own, scenario, "cfs"), 1)
    limits = Limits(60.0, 2000, tmp_path, build or own)
    job = Job(name or known, sweeps.SCENARIO, "toy", "cfs", 1, "")
    with pytest.raises(ArmError) as caught:
        list(Local(1, limits).answers([job]))
    assert message in caught.value.message
    if name:
        assert message in trouble([asdict(job)], {**asdict(limits), "folder": str(tmp_path)})
        assert trouble([{**asdict(job), "id": known}], {**asdict(limits), "folder": str(tmp_path)}) == ""


PROGRAM = """\
machine = "rpi4"
duration = "20ms"
seeds = 1
[[workload]]
name = "own"
program = [{ loop = "forever", do = [
    { run = "100us" },
    { sleep = "400us" },
] }]
[[variant]]
name = "eevdf"
kernel = "6.12.0"
[[metric]]
of = "sched.switches"
"""


def test_a_scenario_with_a_program_of_its_own_is_the_same_for_the_workers(sweep: Sweep) -> None:
    Path("own.toml").write_text(PROGRAM)
    axis = '[[axis]]\nkey = "duration"\nvalues = ["10ms", "20ms"]\n'
    Path("s.toml").write_text(f'scenario = "own.toml"\nseeds = 1\n{axis}')
    code, _, err = sweep("s.toml", "--out", "r", "--jobs", "1")
    assert code == 0, err


def test_where_a_step_stands_in_its_file_does_not_change_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(PROGRAM)
    (tmp_path / "b.toml").write_text("# a comment\n\n" + PROGRAM)
    engine = native_engine()
    first, second = (engine.spec(schedlab.load(tmp_path / name), "eevdf") for name in ("a.toml", "b.toml"))
    assert first == second
