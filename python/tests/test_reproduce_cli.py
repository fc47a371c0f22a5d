"""`schedlab reproduce`: what it prints, keeps, resumes and records; the short forms of all studies."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schedlab.cli import main
from schedlab.engine import Engine
from schedlab.studies import history, results
from schedlab.studies.figures import COLUMNS
from schedlab.studies.reasons import Reason

HERE = Path(__file__).parent
Call = Callable[..., tuple[int, str, str]]

FIGURES = [
    # workload, metric, published baseline and variant
    ("small", "rate", 100, 150),
    ("small", "p99", 100, 104),
    ("large", "rate", 100, 50),
    ("large", "p99", 100, 200),
    ("absent", "rate", 100, 200),
    ("absent", "p99", 100, 200),
]
METRICS = [
    {"published": "rate", "metric": "load.rate", "unit": "1/s"},
    {"published": "p99", "metric": "probe.latency.p99", "unit": "us"},
]


def figures() -> str:
    lines = [",".join(COLUMNS)]
    for workload, metric, a, b in FIGURES:
        for name, value in (("CFS", a), ("EEVDF", b)):
            lines.append(f"e,{workload},,{metric},us,lower,{name},1,{value},")
    return "\n".join(lines) + "\n"


def case(workload: str, scenario: int | None, alternative: str | None = None) -> dict[str, Any]:
    missing = None if scenario is not None else "workload absent"
    return {
        "experiment": "e",
        "workload": workload,
        "case": "",
        "alternative": alternative,
        "missing": missing,
        "metrics": METRICS,
        "scenario": scenario,
        "fingerprint": None if scenario is None else str(scenario),
    }


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a study for the stand-in engine into a fresh working directory."""
    monkeypatch.chdir(tmp_path)
    for module in (history, results):
        monkeypatch.setattr(module, "FILE", tmp_path / module.FILE.name)

    def write(**behaviour: Any) -> str:
        quick = {"eevdf": {"factor": {"load.rate": 1.25, "probe.latency.p99": 0.5}}}
        variant = {"case": None, "missing": None}
        document = {
            "name": "toy",
            "summary": "a toy",
            "file": "toy.json",
            "source": "a test",
            "missing": None,
            "figures": {"file": "toy.csv", "text": figures()},
            "conditions": [{"what": "autogroup", "is": "on", "source": None, "assumed": "a test"}],
            "variants": [
                {**variant, "name": "cfs", "published": "CFS", "kernel": "6.1"},
                {**variant, "name": "eevdf", "published": "EEVDF", "kernel": "6.6"},
            ],
            "experiments": [{"name": "e", "variants": ["cfs", "eevdf"], "missing": None}],
            "cases": [
                case("small", 0),
                {**case("large", 1), "fingerprint": str(behaviour)},
                case("absent", None),
                case("small", 0, "autogroup"),
            ],
            "gaps": [
                {
                    "experiment": "e",
                    "workload": "large",
                    "metric": "p99",
                    "mechanism": "caches",
                    "found": "by hand",
                    "hypothesis": None,
                }
            ],
            "scenarios": [{"behaviour": quick}, {"behaviour": {**quick, **behaviour}}],
        }
        (tmp_path / "toy.json").write_text(json.dumps(document))
        return "toy.json"

    return write


def test_a_page_says_that_its_results_are_not_recorded(toy: Callable[..., str], schedlab: Call) -> None:
    assert schedlab("reproduce", toy(), "--out", "r", "--short", "--page", "p.md")[0] == 0
    page = Path("p.md").read_text(encoding="utf-8")
    assert "These results are not recorded; `--record NAME` keeps results." in page
    assert "This is the short form, whose results say nothing about agreement." in page
    assert "Recorded on" not in page
    assert "--stored" not in page


def test_rows_stand_side_by_side(toy: Callable[..., str], schedlab: Call) -> None:
    code, out, err = schedlab("reproduce", toy(), "--out", "r")
    assert code == 0
    assert "28 runs" in err
    assert "28 runs of unknown length" in err
    lines = out.splitlines()

    def find(*words: str) -> str:
        """A row of a table, which takes a line more where it does not fit."""
        at = next(i for i, line in enumerate(lines) if all(word in line for word in words))
        return " ".join([lines[at], *(line for line in lines[at + 1 : at + 3] if line.startswith("   "))])

    assert find("small: rate").split()[-1] == "agrees"
    assert "wrong sign" in find("large: rate")
    assert "missing: workload absent" in find("absent: rate")
    assert "sign agreement: 1 of 5 rows beyond noise (20%); 2 with the wrong sign, 2 missing" in out
    assert "simulated beyond it" in find("small: p99")
    assert find("small [autogroup]:").split()[5:9] == ["+24.4%", "2", "same", "sign"]
    assert "autogroup: on (assumed: a test)" in out
    assert "  caches; by hand\n    large: p99\n" in out
    reason = "the first difference is at 1.500 ms in pick_eevdf [RUN_TO_PARITY] and pick_eevdf"
    assert f" unexplained; {reason} large: rate " in " ".join(out.split())


def test_json_has_every_row(toy: Callable[..., str], schedlab: Call) -> None:
    code, out, _ = schedlab("reproduce", toy(), "--out", "r", "--json", "-", "--reasons", "none")
    document = json.loads(out)
    assert (code, document["schema"], len(document["studies"][0]["rows"])) == (0, "schedlab.reproduce/1", 8)
    assert document["scores"]["all"]["missing"] == 2
    assert [row["outcome"] for row in document["studies"][0]["rows"] if row["counted"]] == [
        "agrees",
        "wrong sign",
        "wrong sign",
        "missing",
        "missing",
    ]


def test_finished_runs_are_not_done_again(toy: Callable[..., str], schedlab: Call) -> None:
    first = schedlab("reproduce", toy(), "--out", "r", "--reasons", "none")
    kept = {path: path.read_bytes() for path in Path("r").rglob("results.jsonl")}
    second = schedlab("reproduce", toy(), "--out", "r", "--reasons", "none")
    assert len(kept) == 3
    assert kept == {path: path.read_bytes() for path in Path("r").rglob("results.jsonl")}
    assert "all runs have already finished" in second[2]
    assert first[1] == second[1]


def test_more_units_add_runs_and_an_estimate_is_known(toy: Callable[..., str], schedlab: Call) -> None:
    schedlab("reproduce", toy(), "--out", "r", "--units", "2", "--reasons", "none")
    code, _, err = schedlab("reproduce", toy(), "--out", "r", "--units", "5", "--jobs", "1", "--reasons", "none")
    assert code == 0
    assert "12 runs, 1 at a time: about 0 s" in err
    assert "unknown" not in err
    lines = sorted(len(path.read_text().splitlines()) for path in Path("r").rglob("results.jsonl"))
    assert lines == [4, 10, 10]


def test_a_changed_case_is_run_again(toy: Callable[..., str], schedlab: Call) -> None:
    schedlab("reproduce", toy(), "--out", "r", "--reasons", "none")
    _, _, err = schedlab("reproduce", toy(eevdf={"noise": 0.02}), "--out", "r", "--reasons", "none")
    assert "12 runs" in err


def test_runs_of_another_build_stay_beside_the_new_ones(
    toy: Callable[..., str], schedlab: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = toy()

    def reproduce(build: str) -> str:
        monkeypatch.setattr(Engine, "build", lambda _: build)
        code, _, err = schedlab("reproduce", study, "--out", "r", "--reasons", "none")
        assert code == 0
        return err

    reproduce("one")
    kept = {path: path.read_bytes() for path in Path("r").rglob("*") if path.is_file()}
    err = reproduce("two")
    assert "28 runs of other builds or of changed cases stay in r\n28 runs, " in err
    assert kept == {path: path.read_bytes() for path in kept}
    assert "all runs have already finished" in reproduce("one"), "the first build finds its own runs again"
    assert kept.keys() < {*Path("r").rglob("*")}
    for result in Path("r").rglob("manifest.json"):
        assert schedlab("report", str(result))[0] == 0, "the runs of either build can be looked at"


def test_what_does_not_fit_is_named(toy: Callable[..., str], schedlab: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    study = toy()
    schedlab("reproduce", study, "--out", "r", "--units", "1", "--reasons", "none")
    for path in Path("r").rglob("results.jsonl"):
        path.write_text(path.read_text().replace('"wall_s":0.01', '"wall_s":100.0'))
    code, out, err = schedlab(
        "reproduce", study, "--out", "r", "--units", "2", "--time", "1", "--jobs", "1", "--reasons", "none"
    )
    assert code == 0
    assert "more than --time 1" in err
    assert "did not fit into the time: 3 cases\n  toy: e, small\n  toy: e, large" in out


def start(study: str, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    command = [sys.executable, str(HERE / "stand_in_cli.py"), "reproduce", study, "-v", "--jobs", "1", *arguments]
    return subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_runs(process: subprocess.Popen[str], count: int) -> None:
    """Until so many runs are on the disk."""
    while sum(path.read_text().count("\n") for path in Path("r").rglob("results.jsonl")) < count:
        assert process.poll() is None, "it ended early"
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_reproduction_goes_on_where_it_was(
    toy: Callable[..., str], schedlab: Call, how: signal.Signals
) -> None:
    study = toy(cfs={"hang_on": [4], "hangs_until": "released"})
    process = start(study, "--out", "r", "--reasons", "none")
    wait_for_runs(process, 12 + 6)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command resumes" in err
    assert sum(path.read_text().count("\n") for path in Path("r").rglob("results.jsonl")) == 18
    Path("released").touch()
    code, out, err = schedlab("reproduce", study, "--out", "r", "--reasons", "none")
    assert code == 0
    assert "10 runs" in err
    assert "not run" not in out
    for path in Path("r").rglob("results.jsonl"):
        seeds = [(r["variant"], r["seed"]) for r in map(json.loads, path.read_text().splitlines())]
        assert len(set(seeds)) == len(seeds)


def test_a_failed_run_is_reported_and_repeated(toy: Callable[..., str], schedlab: Call) -> None:
    study = toy(eevdf={"fail_on": [2]})
    code, out, err = schedlab("reproduce", study, "--out", "r", "--reasons", "none")
    assert code == 3
    assert "toy: e, large: eevdf seed 2: deadlock" in err
    assert "large: rate" in out
    assert "1 run, " in schedlab("reproduce", study, "--out", "r", "--reasons", "none")[2]


def test_scores_are_recorded_and_shown_on_the_page(toy: Callable[..., str], schedlab: Call) -> None:
    study = toy()
    for name in ("start", "caches"):
        arguments = ("--out", "r", "--record", name, "--page", "page.md")
        assert schedlab("reproduce", study, *arguments)[0] == 0
    page = Path("page.md").read_text()
    assert page.index("## Misses") < page.index("## Scores") < page.index("## History")
    assert "by `schedlab reproduce toy.json --record caches` with 6 units per variant" in page
    assert "| what the model lacks | rows beyond noise | studies |" in page
    assert "| workload absent | 2 | toy (2) |" in page
    assert "| caches | 1 | toy (1) |" in page
    assert "| unexplained | 1 | toy (1) |" in page
    history = [line for line in page.splitlines() if line.startswith("| all ")]
    assert history[-1].count("1 of 5") == 2
    entries = json.loads(Path("history.json").read_text())["entries"]
    assert [entry["name"] for entry in entries] == ["start", "caches"]


def test_a_study_recorded_alone_keeps_what_is_stored_of_the_others(toy: Callable[..., str], schedlab: Call) -> None:
    study = Path(toy())
    Path("other.json").write_text(study.read_text().replace('"name": "toy"', '"name": "other"'))
    arguments = ("--out", "r", "--page", "page.md", "--record")
    assert schedlab("reproduce", "toy.json", "other.json", *arguments, "start")[0] == 0
    together = Path("page.md").read_text()
    assert schedlab("reproduce", "other.json", *arguments, "caches")[0] == 0
    page = Path("page.md").read_text()
    assert page.count("\n## toy\n") == page.count("\n## other\n") == 1
    assert "Studies: toy." in page
    assert "Studies: other." in page
    assert together.count("Recorded on") == 1
    rows = {line.split("|")[1].strip(): line for line in page.split("## History")[1].splitlines() if "|" in line}
    assert rows["toy"].endswith("| - |")
    assert rows["all"].count("2 of 10") == 2


def test_what_was_recorded_is_shown_without_a_run(toy: Callable[..., str], schedlab: Call) -> None:
    study = toy()
    pages = ("--page", "first.md", "--html", "first.html")
    _, first, _ = schedlab(
        "reproduce", study, "--out", "r", "--record", "start", "--note", "Two of them failed.", *pages
    )
    code, second, _ = schedlab("reproduce", "--stored", "--page", "second.md", "--html", "second.html")
    assert (code, second) == (0, first)
    for suffix in ("md", "html"):
        assert Path(f"second.{suffix}").read_text() == Path(f"first.{suffix}").read_text()
    page = Path("first.html").read_text()
    assert "Two of them failed." in page
    assert "<h1>Published studies, reproduced</h1>" in page
    text = re.sub(r"<script.*?</script>|<svg.*?</svg>", "", page, flags=re.S)
    assert "http" not in text
    assert text.count("<table>") == Path("first.md").read_text().count("\n| ---")
    assert schedlab("reproduce", "--stored", "--html", "-")[1].strip() == page.strip()


def test_all_studies_are_those_recorded_unless_it_says_how_to_run_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From any directory; what a reproduction would cost is known there, too."""
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "all"]) == 0
    out, err = capsys.readouterr()
    assert main(["reproduce", "--stored"]) == 0
    assert out == capsys.readouterr().out
    assert re.search(r"`schedlab reproduce all --units 6` simulates all studies again \([\d,]+ runs, .* h\)", err)
    assert not list(tmp_path.iterdir())
    assert main(["reproduce", "all", "--time", "0", "--out", "r"]) == 0
    assert re.search(r"[\d,]+ runs, \d+ at a time: about [\d.]+ h\n", capsys.readouterr().err)


def test_a_long_reproduction_says_how_to_shorten_it(toy: Callable[..., str], schedlab: Call) -> None:
    study = toy()
    seconds = dict.fromkeys(("toy: e, small", "toy: e, large"), 100.0)
    history.append(history.FILE, history.entry("start", "0.1.0", 6, {}, seconds))
    _, _, err = schedlab("reproduce", study, "--out", "r", "--jobs", "2")
    assert "28 runs, 2 at a time: about 20 min, and 4 runs of unknown length" in err
    assert "to shorten it: --units 2 takes about 7 min, and --time MIN leaves out" in err


def test_the_spread_between_runs_is_a_result(toy: Callable[..., str], schedlab: Call) -> None:
    study = toy(eevdf={"noise": 0.2})
    document = json.loads(Path(study).read_text())
    text = document["figures"]["text"].replace("large,,rate,us,lower,CFS,1,100,", "large,,rate,us,lower,CFS,1,100,3%")
    document["figures"]["text"] = text.replace("EEVDF,1,50,", "EEVDF,1,50,9%")
    Path(study).write_text(json.dumps(document))
    _, out, _ = schedlab("reproduce", study, "--out", "r", "--reasons", "none")
    (line,) = [line for line in out.splitlines() if line.startswith("large: rate") and " to " in line]
    assert line.split()[2:5] == ["eevdf", "3%", "9%"]


REASONS = [
    (Reason("first"), "first"),
    (Reason("first", "X", 80.4, ablated=True), "first; 80% of the simulated change is due to X"),
    (
        Reason("first", "X", None, ablated=True),
        "first; X contributes most to the simulated change, without certainty",
    ),
    (Reason("first", ablated=True), "first; no single mechanism contributes to the simulated change"),
]


@pytest.mark.parametrize(("reason", "text"), REASONS)
def test_reasons_in_words(reason: Reason, text: str) -> None:
    assert reason.text == text


BAD = [
    (("toy.json", "--note", "x"), 2, "--note is only stored with recorded results"),
    (("toy.json", "--stored"), 2, "--stored shows what was recorded"),
    (("--stored",), 2, "no stored results"),
    (("--stored", "toy.json"), 2, "not the results of studies"),
    ((), 2, "no study is named"),
    (("toy.json", "--units", "0"), 2, "`0` is not a whole number"),
    (("toy.json", "--short", "--record", "x"), 2, "the short form has none"),
    (("toy.json", "--reasons", "guess"), 2, "invalid choice"),
    (("toy.json", "--json", "."), 2, "cannot write"),
    (("toy.json", "--seeds", "3"), 2, "unrecognized arguments"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD)
def test_what_cannot_be_asked(
    toy: Callable[..., str], schedlab: Call, arguments: tuple[str, ...], code: int, message: str
) -> None:
    toy()
    found, _, err = schedlab("reproduce", *arguments)
    assert found == code
    assert message in err


def test_figures_that_do_not_fit_are_refused_before_any_run(toy: Callable[..., str], schedlab: Call) -> None:
    study = toy()
    document = json.loads(Path(study).read_text())
    document["figures"]["text"] += "e,other,,rate,us,lower,CFS,1,5,\n"
    Path(study).write_text(json.dumps(document))
    code, _, err = schedlab("reproduce", study, "--out", "r")
    assert code == 2
    assert "no case of the study has this figure: e, other, rate, CFS" in err
    assert "toy.csv:14" in err
    assert not Path("r").exists()


# The real engine.


def test_the_studies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "studies"]) == 0
    listed = capsys.readouterr().out
    assert main(["reproduce", "--list"]) == 0
    assert capsys.readouterr().out == listed
    for study in (HERE.parents[1] / "studies").glob("*.toml"):
        assert f"\n{study.stem} " in f"\n{listed}"


def test_a_near_name_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "eevdf-power-10"]) == 2
    assert 'did you mean "eevdf-power10"?' in capsys.readouterr().err


def test_the_short_forms_of_all_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "all", "--short", "--out", "r", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    total = document["scores"]["all"]
    assert total["not_run"] == 0
    assert total["counted"] == sum(total[key] for key in ("agreed", "wrong", "unchanged", "missing"))
    for study in document["studies"]:
        for row in study["rows"]:
            assert (row["outcome"] == "missing") == (row["missing"] is not None)
            assert row["simulated"] is not None or row["missing"]
