"""Any pair, rankings, further seeds until a verdict is settled, and the noise floor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_engine
import schedlab as api
from schedlab.design import Design, further_seeds

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]

THREE = [{"name": name, "kernel": "6.12.0", "summary": "", "changes": {}} for name in ("one", "two", "three")]
FASTER: dict[str, Any] = {
    "one": {"factor": {"load.rate": 1.0}},
    "two": {"factor": {"load.rate": 1.3}},
    "three": {"factor": {"load.rate": 1.301}, "noise": 0.011},
}


def document(schedlab: Schedlab, *words: str) -> dict[str, Any]:
    code, out, err = schedlab(*words, "--json", "-")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def pairs(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(j["a"], j["b"]) for j in document["metrics"][0]["comparisons"]]


def test_any_variant_is_the_baseline(schedlab: Schedlab, scenario: Write) -> None:
    name = scenario(variants=THREE, behaviour=FASTER)
    assert pairs(document(schedlab, "compare", name, "--out", "r")) == [("one", "two"), ("one", "three")]
    assert pairs(document(schedlab, "report", "r", "--against", "two")) == [("two", "one"), ("two", "three")]
    every = [("one", "two"), ("one", "three"), ("two", "three")]
    assert pairs(document(schedlab, "report", "r", "--against", "all")) == every
    assert api.report("r", against="two").pairs[0] == ("two", "one")


def test_an_unknown_baseline_is_refused_before_the_runs(schedlab: Schedlab, scenario: Write) -> None:
    code, out, err = schedlab("compare", scenario(), "--against", "eevd")
    assert (code, out) == (2, "")
    assert "did you mean `eevdf`?" in err


def test_variants_that_cannot_be_told_apart_share_a_rank(schedlab: Schedlab, scenario: Write) -> None:
    name = scenario(variants=THREE, behaviour=FASTER, seeds=list(range(1, 16)))
    found = document(schedlab, "compare", name, "--out", "r")
    ranks = {r["metric"]: r["ranks"] for r in found["rankings"]}
    assert ranks["load.rate"] == {"one": 3, "two": 1, "three": 1}
    assert "sched.switches" not in ranks  # neither direction is better
    table = schedlab("report", "r", "--details")[1]
    ranking = table[table.index("rank by metric") :].splitlines()
    assert next(line for line in ranking if line.startswith("load.rate")).split() == [
        "load.rate",
        "two,",
        "three",
        "one",
    ]


def test_seeds_too_few_for_any_certainty_together_are_named(schedlab: Schedlab, scenario: Write) -> None:
    """The smallest p of n pairs is 2 / 2**n: Holm among 3 pairs, or 4 metrics, needs 7 of them."""
    for seeds, few in ((6, True), (7, False)):
        name = scenario(variants=THREE, behaviour=FASTER, seeds=list(range(1, seeds + 1)))
        _, out, err = schedlab("compare", name, "--details")
        table = " ".join(out.split())
        before = "no two of 3 variants can be distinguished with 6 seeds; that takes at least 7 (--seeds 7)"
        assert (before in " ".join(err.split())) is few, err
        short = " ".join(schedlab("compare", name)[1].split())
        assert ("That takes at least 7 seeds: --seeds 7." in short) is few, short
        assert ("with 6 seeds no pair of 3 can be distinguished; at least 7 seeds are needed" in table) is few
        assert ("with 6 seeds none can be; at least 7 are needed" in table) is few, table


def test_two_variants_have_no_ranking(schedlab: Schedlab, scenario: Write) -> None:
    assert document(schedlab, "compare", scenario())["rankings"] == []


def test_seeds_are_added_until_the_verdict_is_settled(schedlab: Schedlab, scenario: Write) -> None:
    clear = scenario(behaviour={"eevdf": {"factor": {"probe.latency.p99": 2.0}}}, metrics=declared("probe.latency.p99"))
    code, out, err = schedlab("compare", clear, "--seeds", "auto", "--out", "r")
    assert code == 0
    assert "looks after 10, 14, 20, 27, 38, 54, 75 and 100 seeds" in err
    assert "10 seeds; " in out
    assert "look 1 of 8 in a budget of 100 seeds" in out
    assert out == schedlab("report", "r")[1]
    unclear = {"cfs": {"noise": 0.6}, "eevdf": {"noise": 0.61}}
    noisy = scenario(behaviour=unclear, metrics=declared("probe.latency.p99"))
    _, out, _ = schedlab("compare", noisy, "--seeds", "auto:20", "--out", "noisy")
    assert "20 seeds; " in out
    assert "look 3 of 3 in its budget" in out
    assert out == schedlab("report", "noisy")[1]


def declared(*names: str) -> list[dict[str, Any]]:
    return [{**m, "declared": m["name"] in names} for m in fake_engine.describe()["metrics"]]


def test_a_look_needs_more_than_a_single_test(schedlab: Schedlab, scenario: Write) -> None:
    twice = {"eevdf": {"factor": {"probe.latency.p99": 2.0}}}
    name = scenario(behaviour=twice, seeds=list(range(1, 11)), metrics=declared("probe.latency.p99"))
    at_once = document(schedlab, "compare", name)
    looked = document(schedlab, "compare", name, "--seeds", "auto:100")
    assert looked["seeds"] == at_once["seeds"]
    for a, b in zip(at_once["metrics"][:3], looked["metrics"][:3], strict=True):
        (once,), (look,) = a["comparisons"], b["comparisons"]
        assert look["ci_pct"][0] <= once["ci_pct"][0]
        assert look["ci_pct"][1] >= once["ci_pct"][1]
        assert look["p"] >= once["p"]


def test_an_interrupted_stage_is_judged_at_the_last_whole_look() -> None:
    design, seeds = Design((10, 14, 20)), list(range(1, 21))
    everything = [("a", s) for s in seeds] + [("b", s) for s in seeds]
    assert design.reached(seeds, ["a", "b"], everything) == 20
    assert design.reached(seeds, ["a", "b"], [key for key in everything if key[1] <= 16]) == 14
    assert design.reached(seeds, ["a", "b"], [key for key in everything if key != ("b", 3)]) == 10
    assert Design().reached(seeds, ["a", "b"], []) == 20


def test_a_comparison_by_looks_is_resumed_with_the_same_looks(schedlab: Schedlab, scenario: Write) -> None:
    name = scenario(behaviour={"eevdf": {"factor": {"probe.latency.p99": 2.0}}})
    assert schedlab("compare", name, "--seeds", "auto:20", "--out", "r")[0] == 0
    assert schedlab("compare", name, "--seeds", "20", "--out", "r", "--resume")[0] == 2
    lines = Path("r/results.jsonl").read_text().splitlines(keepends=True)
    Path("r/results.jsonl").write_text("".join(lines[:7]))
    code, out, _ = schedlab("compare", name, "--seeds", "auto:20", "--out", "r", "--resume")
    assert code == 0
    assert "look 1 of 3" in out


def test_the_noise_floor_compares_the_first_variant_with_itself(schedlab: Schedlab, scenario: Write) -> None:
    name = scenario(behaviour={"eevdf": {"factor": {"probe.latency.p99": 1.1}}})
    found = document(schedlab, "compare", name, "--noise-floor", "--out", "r")
    floor = found["metrics"][1]["noise_floor"]
    assert floor["ci"][0] < 0 < floor["ci"][1]
    assert found["design"]["again"] == list(range(11, 21))
    lines = [json.loads(line) for line in Path("r/results.jsonl").read_text().splitlines()]
    assert sorted(r["seed"] for r in lines if r["variant"] == "cfs") == list(range(1, 21))
    assert sorted(r["seed"] for r in lines if r["variant"] == "eevdf") == list(range(1, 11))
    table = schedlab("report", "r", "--details")[1]
    head = table.split("\nmetric ", 1)[1].split("probe.latency.p50", 1)[0]
    assert "noise floor" in head
    assert "smaller than the noise floor: probe.latency.p99" in table
    assert document(schedlab, "report", "r") == found
    assert document(schedlab, "compare", name)["metrics"][1]["noise_floor"] is None


def test_further_seeds_are_others() -> None:
    assert further_seeds([1, 2, 7]) == (8, 9, 10)
    assert further_seeds([]) == ()
