"""How far the simulator is from a kernel: errors, both directions of changes, model errors, and their storage."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_engine
from schedlab import validity
from schedlab.errors import InputError
from schedlab.outcome import Failure, Run
from schedlab.render.grid import size
from schedlab.render.validation import document, page, text
from schedlab.scenario import Metric, Scenario
from schedlab.store import Result
from schedlab.validity import errors, files
from schedlab.validity.effects import Change, Effect, effects, pairs
from schedlab.validity.rows import family_of, rows
from schedlab.validity.validation import Trial, Validation, rates, summary

Schedlab = Callable[..., tuple[int, str, str]]


def result(arm: str, values: dict[str, dict[str, float]], shares: dict[str, int], cpus: int = 1) -> Result:
    """Four seeds of two variants, all with the same numbers."""
    machine = {"name": "made-up", "summary": "", "cpus": cpus, "calibrated": True, "sources": []}
    scenario = Scenario.from_description(fake_engine.describe(seeds=[1, 2, 3, 4], machine=machine))
    runs = {}
    for variant in scenario.variants:
        for seed in scenario.seeds:
            record = fake_engine.record(variant.name, seed, variant.kernel, values[variant.name])
            task = {"pid": 1, "wait_ns": 0, "switches": 0, "migrations": 0}
            record["tasks"] = [{**task, "name": name, "cpu_ns": ns} for name, ns in shares.items()]
            if arm != "sim":
                state = {"release": f"{variant.kernel}-made-up", "sysctl.x": "1"}
                record["place"] = {"machine": "made-up hardware", "state": state, "noise": {}, "untimed": None}
            runs[variant.name, seed] = Run.from_record(record)
    return Result(scenario, arm, scenario.seeds, runs)


def numbers(latency: float, switches: float) -> dict[str, float | None]:
    return {"probe.latency.p50": 1.0, "probe.latency.p99": latency, "load.rate": 5.0, "sched.switches": switches}


@pytest.fixture
def both() -> tuple[Result, Result]:
    simulated = result("sim", {"cfs": numbers(100, 110), "eevdf": numbers(90, 100)}, {"a": 60, "b": 40})
    measured = result("vm", {"cfs": numbers(100, 100), "eevdf": numbers(150, 120)}, {"a": 50, "b": 50})
    return simulated, measured


@pytest.fixture
def found(both: tuple[Result, Result]) -> Validation:
    return Validation("vm", [Trial(*both)], {"6.1": "hz = 250"}, {"date": "2026-01-02"}, {"date": "2026-01-03"})


def test_errors_are_of_the_measured_value(found: Validation) -> None:
    by_name = {(r.variant, r.metric): r for r in found.rows}
    assert by_name["cfs", "sched.switches"].error == pytest.approx(10)
    assert by_name["eevdf", "probe.latency.p99"].error == pytest.approx(-40)
    assert by_name["cfs", "a share"].error == pytest.approx(10)
    assert [key for key, row in by_name.items() if row.missed] == [
        ("cfs", "sched.switches"),
        ("cfs", "a share"),
        ("cfs", "b share"),
        ("eevdf", "probe.latency.p99"),
        ("eevdf", "sched.switches"),
        ("eevdf", "a share"),
        ("eevdf", "b share"),
    ]


CERTAIN, DOUBTFUL = True, False
DIRECTIONS = [
    # simulated, measured, judged as measured, judged as simulated
    ((-59.0, CERTAIN), (4.5, CERTAIN), None, "WRONG"),
    ((-59.0, CERTAIN), (4.5, DOUBTFUL), None, "not shown"),
    ((-59.0, DOUBTFUL), (20.0, CERTAIN), "not shown", None),
    ((4.0, CERTAIN), (20.0, CERTAIN), "same", None),
    ((30.0, CERTAIN), (20.0, CERTAIN), "same", "same"),
    ((0.0, DOUBTFUL), (20.0, CERTAIN), "not shown", None),
    ((-30.0, CERTAIN), (20.0, CERTAIN), "WRONG", "WRONG"),
    ((4.0, CERTAIN), (3.0, CERTAIN), None, None),
    ((30.0, CERTAIN), (None, DOUBTFUL), None, "not shown"),
]


@pytest.mark.parametrize(("simulated", "measured", "of_measured", "of_simulated"), DIRECTIONS)
def test_changes_are_judged_in_both_directions(
    simulated: tuple[float, bool], measured: tuple[float, bool], of_measured: str | None, of_simulated: str | None
) -> None:
    effect = Effect("toy", "m", "switches", "a", "b", Change(*simulated), Change(*measured))
    assert (effect.of_measured, effect.of_simulated) == (of_measured, of_simulated)


def test_what_the_simulator_invents_fails() -> None:
    # The kernel shows no change; judged as measured alone nothing would be wrong.
    invented = result("sim", {"cfs": numbers(100, 100), "eevdf": numbers(200, 100)}, {"a": 1})
    nothing = result("vm", {"cfs": numbers(100, 100), "eevdf": numbers(100, 100)}, {"a": 1})
    found = rates(list(effects(invented, nothing)))
    assert found["measured"] == {"judged": 0, "same": 0, "WRONG": 0, "not shown": 0, "near": 0}
    assert found["simulated"] == {"judged": 1, "same": 0, "WRONG": 0, "not shown": 1, "near": 0}


@pytest.mark.parametrize(
    ("simulated", "measured", "gap", "error"),
    [(-50, 100, -75, 300), (100, -50, 300, 300), (20, 20, 0, 0), (0, -100, None, None), (None, 3, None, None)],
)
def test_the_gap_compares_ratios(
    simulated: float | None, measured: float, gap: float | None, error: float | None
) -> None:
    effect = Effect("toy", "m", "switches", "a", "b", Change(simulated, True), Change(measured, True))
    assert effect.gap == (None if gap is None else pytest.approx(gap))
    assert effect.error == (None if error is None else pytest.approx(error))


@pytest.mark.parametrize(("simulated", "near"), [(100, True), (200, True), (201, False), (33, False), (34, True)])
def test_a_size_is_reproduced_within_a_factor_of_a_half_more(simulated: float, near: bool) -> None:
    effect = Effect("toy", "m", "switches", "a", "b", Change(simulated, True), Change(100, True))
    assert effect.near is near


KERNELS_AND_MODELS = [
    # Variants as (name, kernel, preempt), and the pairs that are compared.
    ((("a", "6.1", None), ("b", "6.12", None), ("c", "6.12", None)), [("a", "b"), ("a", "c")]),
    ((("a", "6.1", "none"), ("b", "6.12", "none")), [("a", "b")]),
    (
        (("a", "6.1", "none"), ("b", "6.1", "full"), ("c", "6.12", "none"), ("d", "6.12", "full")),
        [("a", "b"), ("c", "d")],
    ),
    ((("a", "6.1", None), ("b", "6.1", "full"), ("c", "6.12", "full")), [("a", "b"), ("a", "c")]),
]


@pytest.mark.parametrize(("variants", "expected"), KERNELS_AND_MODELS)
def test_preemption_models_are_compared_on_one_kernel(
    variants: tuple[tuple[str, str, str | None], ...], expected: list[tuple[str, str]]
) -> None:
    made = [
        {"name": name, "kernel": kernel, "summary": "", "changes": {"preempt": preempt}}
        for name, kernel, preempt in variants
    ]
    scenario = Scenario.from_description(fake_engine.describe(variants=made))
    assert pairs(scenario.variants) == expected


def test_the_summary_has_both_rates(found: Validation) -> None:
    table = {row[0]: row for row in summary(found.rows, found.effects)}
    assert table["changes, measured"][1:6:4] == ["2", "2"]
    assert table["changes, simulated"][1:6:4] == ["2", "2"]
    assert table["throughput"][4:6] == ["5%", "0"]
    shown = text(found)
    assert "Of 2 changes that are certain and above 5% when measured, 0 have the same sign with certainty" in shown


FAMILIES = [
    ("sched.switches", None, "", "switches"),
    ("sched.migrations", None, "", "migrations"),
    ("a.latency.mean", "mean", "us", "mean latency"),
    ("a.latency.p50", "p50", "us", "typical latency"),
    ("a.latency.p90", "p90", "ms", "typical latency"),
    ("a.latency.p99", "p99", "us", "p99 latency"),
    ("a.latency.p99.9", "p99.9", "us", "extreme latency"),
    ("a.latency.p99.99", "p99.99", "us", "extreme latency"),
    ("a.latency.max", "max", "us", "extreme latency"),
    ("load.time", None, "s", "throughput"),
    ("load.rate", None, "/s", "throughput"),
]


@pytest.mark.parametrize(("name", "stat", "unit", "family"), FAMILIES)
def test_every_metric_has_a_family(name: str, stat: str | None, unit: str, family: str) -> None:
    assert family_of(Metric(name, name, stat, unit, "lower", 2, "", True)) == family


def test_the_worst_values_come_first_everywhere(found: Validation) -> None:
    shown = text(found)
    assert shown.index("eevdf    probe.latency.p99") < shown.index("eevdf    sched.switches")
    assert "WRONG" in shown
    assert "| toy | eevdf | probe.latency.p99 |" in page([(found, "a file")])
    sizes = [row["error"] for row in json.loads(document(found))["rows"]]
    assert [abs(e) for e in sizes] == sorted((abs(e) for e in sizes), reverse=True)


def test_a_run_that_failed_is_listed(both: tuple[Result, Result]) -> None:
    lost = Failure("cfs", 3, "the guest's Kernel panic\n  | more", None)
    found = Validation("vm", [Trial(both[0], dataclasses.replace(both[1], failures=(lost,)))])
    assert "toy cfs seed 3, measured: the guest's Kernel panic" in page([(found, "x")]).splitlines()[-1]
    assert text(found).endswith("panic")


def test_a_metric_that_one_arm_lacks_keeps_its_row(both: tuple[Result, Result]) -> None:
    for run in both[1].runs.values():
        run.record["metrics"]["sched.switches"] = None
    row = next(r for r in rows(*both) if r.metric == "sched.switches")
    assert (row.measured, row.error, row.note) == (None, None, "the real kernel has no value")


def test_a_stored_validation_says_the_same(found: Validation, tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    file.write_text(files.dump(found))
    again = files.read(file)
    assert document(again) == document(found)
    assert page([(again, "x")]) == page([(found, "x")])
    assert files.dump(again) == file.read_text()
    assert again.kernels == {"6.1": "6.1-made-up", "6.12.0": "6.12.0-made-up"}


BROKEN = {
    "{}": "not a stored validation: there is no 'schema'",
    "[]": "not a stored validation: a value in it has the wrong type",
    "x": "not a stored validation: Expecting value: line 1 column 1 (char 0)",
    '{"schema": "schedlab.validity/1"}': "not a stored validation: there is no 'trials'",
    '{"schema": "schedlab.validity/2", "trials": []}': "not a validation of schema schedlab.validity/1",
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_a_validation_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(InputError) as e:
        files.read(tmp_path / "v.json")
    assert e.value.message == BROKEN[text]
    assert e.value.file == str(tmp_path / "v.json")
    with pytest.raises(InputError):
        files.read(tmp_path / "none.json")


def test_model_errors_are_of_the_ratio_of_two_variants(found: Validation) -> None:
    by_family = {e.family: e for e in errors.of_validation(found)}
    # p99: 0.9 simulated, 1.5 measured; switches: 100 / 110 simulated, 1.2 measured.
    assert by_family["p99 latency"].error_pct == pytest.approx(100 * (1.5 / 0.9 - 1))
    assert by_family["switches"].error_pct == pytest.approx(100 * (1.2 * 110 / 100 - 1))
    assert (by_family["throughput"].error_pct, by_family["throughput"].changes) == (pytest.approx(0), 1)
    assert {(e.cpus, e.machine, e.arm) for e in by_family.values()} == {(1, "made-up hardware", "vm")}


def test_the_error_is_the_worst_and_half_of_the_changes_are_within_the_median() -> None:
    middle, worst = errors._middle_and_worst([0.1, 0.3, 0.2])
    assert (middle, worst) == (pytest.approx(100 * (math.e**0.2 - 1)), pytest.approx(100 * (math.e**0.3 - 1)))


def metric(name: str, stat: str | None, unit: str) -> Metric:
    return Metric(name, name, stat, unit, "lower", 2, "", True)


def scenario(cpus: int, calibrated: bool) -> Scenario:
    machine = {"name": "box", "summary": "", "cpus": cpus, "calibrated": calibrated, "sources": []}
    return Scenario.from_description(fake_engine.describe(machine=machine))


KNOWN = (
    validity.ModelError("switches", "vm", "QEMU", 1, 9, 5.0, 10.0),
    validity.ModelError("switches", "vm", "QEMU", 4, 3, 5.0, 20.0),
)


@pytest.mark.parametrize(
    ("cpus", "calibrated", "size", "missing"),
    [
        (1, True, 10.0, ()),
        (1, False, 10.0, ("the costs of box",)),
        (4, True, 20.0, ()),
        (8, True, 20.0, ("8 CPUs",)),
        (8, False, 20.0, ("8 CPUs", "the costs of box")),
    ],
)
def test_the_nearest_error_and_what_it_is_not_for(
    cpus: int, calibrated: bool, size: float, missing: tuple[str, ...]
) -> None:
    known = validity.validated(scenario(cpus, calibrated), metric("sched.switches", None, ""), KNOWN)
    assert known.error is not None
    assert (known.error.error_pct, known.missing, known.holds) == (size, missing, not missing)


def test_no_error_was_measured_in_guests() -> None:
    guests = dataclasses.replace(scenario(1, True), guests=("vm",))
    known = validity.validated(guests, metric("sched.switches", None, ""), KNOWN)
    assert (known.missing, known.holds) == (("guests",), False)


def test_a_change_within_the_model_error_is_recognised() -> None:
    known = validity.validated(scenario(1, True), metric("sched.switches", None, ""), KNOWN)
    assert known.covers(9.9)
    assert known.covers(-9.0)
    assert not known.covers(10.1)
    assert not known.covers(-9.2)  # 1 / 1.1
    assert not known.covers(-100.0)
    unknown = validity.validated(scenario(1, True), metric("load.time", None, "s"), KNOWN)
    assert (unknown.error, unknown.holds, unknown.covers(1.0)) == (None, False, False)
    words = [validity.Validated("x", None, missing).unknown for missing in ((), ("a",), ("a", "b"), ("a", "b", "c"))]
    assert words == ["", "a", "a and b", "a, b and c"]


def test_a_comparison_shows_the_model_error(
    schedlab: Schedlab, scenario: Any, found: Validation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "shipped", list)
    (tmp_path / "v.json").write_text(files.dump(found))
    name = scenario(behaviour={"eevdf": {"factor": {"probe.latency.p99": 1.3}}})
    _, out, _ = schedlab("compare", name, "--validity", "v.json", "--out", "r", "--details")
    shown = out.splitlines()
    at = next(at for at, line in enumerate(shown) if line.startswith("probe.latency.p99 "))
    # The row is folded: the verdict ends its first line, the model error begins the second.
    assert (shown[at].split()[-1], shown[at + 1].split()[0]) == ("worse", "67%?")
    assert "NOT VALIDATED (?): 8 CPUs" in out
    assert "smaller than the model error on the other kind of machine: probe.latency.p99" in " ".join(out.split())
    assert f"  schedlab compare {name} --arm vm" in out.splitlines()
    _, _, refused = schedlab("compare", name, "--validity", "v.json", "--fail-on", "worse:probe.latency.p99:model")
    assert "the model error is not known for 8 CPUs" in refused
    _, shown, _ = schedlab("report", "r", "--validity", "v.json", "--json")
    model = next(m["model_error"] for m in json.loads(shown)["metrics"] if m["metric"] == "probe.latency.p99")
    assert (model["error_pct"], model["cpus"], model["holds"]) == (pytest.approx(66.6666667), 1, False)
    assert model["not_validated"] == ["8 CPUs"]


def test_a_stored_validation_is_shown_and_simulated_again(
    schedlab: Schedlab, found: Validation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stored = json.loads(files.dump(found))
    stored["trials"][0]["scenario"]["text"] = json.dumps({"machine": {**fake_engine.describe()["machine"], "cpus": 1}})
    stored["costs"]["6.12.0"] = "hz = 250"
    (tmp_path / "v.json").write_text(json.dumps(stored))
    code, out, _ = schedlab("validate", "--stored", "v.json", "--out", "page.md")
    assert code == 0
    assert "simulated against measured on made-up hardware" in out
    assert "from `v.json`" in (tmp_path / "page.md").read_text()


REFUSED = [
    (("validate", "toy.toml", "--arm", "sim"), "invalid choice"),
    (("validate",), "--stored"),
    (("validate", "toy.toml", "--stored", "v.json"), "--stored"),
    (("validate", "toy.toml", "--resimulate"), "--stored"),
    (("validate", "--stored", "none.json"), "no such file"),
]


@pytest.mark.parametrize(("words", "reason"), REFUSED)
def test_what_validate_refuses(words: tuple[str, ...], reason: str, schedlab: Schedlab) -> None:
    code, _, err = schedlab(*words)
    assert code == 2
    assert reason.lower() in err.lower()


ROOT = Path(__file__).parents[2]


def test_the_page_of_the_documentation_is_the_stored_validations() -> None:
    sets = []
    for stored in files.shipped():
        found = files.read(stored)
        assert files.dump(found) == stored.read_text(encoding="utf-8")
        sets.append((found, str(stored.relative_to(ROOT))))
    assert page(sets) == (ROOT / "docs/validation.md").read_text(encoding="utf-8")


def test_every_model_error_of_the_page_is_the_error_of_a_change_in_its_table() -> None:
    for stored in files.shipped():
        found = files.read(stored)
        shown = page([(found, "")])
        table = shown.partition("### Changes between variants")[2].partition("### Every value")[0]
        table = table or shown.partition("## Changes between variants")[2].partition("## Every value")[0]
        rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
        column = rows[0].index("error")
        for error in errors.of_validation(found):
            assert size(error.error_pct) in {row[column] for row in rows}, error.family


def test_the_headline_comparison_is_not_validated() -> None:
    # 8 CPUs and estimated costs; the shipped validations have measured costs and up to 2 CPUs, the worst here 2.
    known = validity.validated(scenario(8, False), metric("probe.latency.p99", "p99", "us"), validity.model_errors())
    assert known.error is not None
    assert (known.error.cpus, known.missing) == (2, ("8 CPUs", "the costs of box"))


@pytest.mark.parametrize(
    ("name", "stat", "unit", "family"),
    [
        ("load.time", None, "s", "throughput"),
        ("load.time", None, "ms", "throughput"),
        ("a.latency.p99", "p99", "us", "p99 latency"),
        ("sched.idle_while_runnable", None, "%", "sched.idle_while_runnable"),
        ("sched.wakeups", None, "count", "sched.wakeups"),
    ],
)
def test_only_what_is_validated_shares_an_error(name: str, stat: str | None, unit: str, family: str) -> None:
    known = validity.validated(scenario(1, True), metric(name, stat, unit), errors.model_errors())
    assert (known.family, known.error is None) == (family, family.startswith("sched."))
