"""What a comparison says about how to read it: its columns, what it cannot tell, and what to do about that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from schedlab.statistics import paired_difference

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]

SLOWER: dict[str, Any] = {"eevdf": {"factor": {"probe.latency.p99": 1.5}}}
OTHERS = [1001, 1020, 990, 1003, 1040, 1007]
THREE = [{"name": n, "kernel": k, "summary": "", "changes": {}} for n, k in (("a", "6.1"), ("b", "6.6"), ("c", "6.8"))]


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_first_note_says_what_the_columns_are(schedlab: Schedlab, scenario: Write) -> None:
    _, out, _ = schedlab("compare", scenario(behaviour=SLOWER), "--html", "-", "--style", "table", "--out", "r")
    _, text, _ = schedlab("report", "r", "--details")
    below = text[text.index("columns of variants: ") :]
    assert words(below).startswith("columns of variants: medians over the seeds; change and interval: estimated from")
    assert "the change is not the ratio of the medians" in words(below)
    assert text.index("columns of variants: ") < text.rindex("model error of")
    assert "the change is not the ratio of the medians" in out


def test_values_have_heads_with_three_variants_too(schedlab: Schedlab, scenario: Write) -> None:
    behaviour = {"b": {"factor": {"probe.latency.p99": 1.5}, "noise": 0.4}}
    metrics = [{"name": "probe.latency.p99", "of": "probe.latency", "stat": "p99", "unit": "us", "better": "lower",
                "margin_pct": 5.0, "declared": True, "help": ""}]  # fmt: skip
    _, out, _ = schedlab("compare", scenario(variants=THREE, behaviour=behaviour, metrics=metrics), "--details")
    (head,) = [line for line in out.splitlines() if line.startswith("spread between seeds")]
    assert head.split()[3:5] == ["baseline", "variant"]


def test_what_cannot_be_negative_falls_by_no_more_than_all_of_it() -> None:
    a, b = [40.0, 40.0, 90.0, 10.0, 60.0, 44.0, 36.0], [0.0, 70.0, 0.0, 30.0, 10.0, 0.0, 41.0]
    found = paired_difference(a, b)
    assert found.interval is not None
    assert (found.cut, found.interval.low) == (True, -100.0)
    negative = paired_difference(a, [x - 100 for x in b])
    assert negative.interval is not None
    assert (negative.cut, negative.interval.low < -100) == (False, True)
    assert not paired_difference(a, a).cut
    assert not paired_difference([1.0, 2, 3, 4, 5, 6], [1e-9, 2e-9, 3e-9, 4e-9, 5e-9, 6e-9]).cut


def test_a_cut_interval_is_said(schedlab: Schedlab, scenario: Write) -> None:
    behaviour = {
        "cfs": {"by_seed": {"sched.switches": [40, 40, 90, 10, 60, 44, 36]}},
        "eevdf": {"by_seed": {"sched.switches": [0, 70, 0, 30, 10, 0, 41]}},
    }
    _, out, _ = schedlab("compare", scenario(behaviour=behaviour, seeds=list(range(1, 8))), "--details")
    assert "interval cut at -100%, since the value cannot be negative: sched.switches" in words(out)
    assert "-100.0% .. " in out


def test_a_percentile_of_few_samples_asks_for_longer_runs(schedlab: Schedlab, scenario: Write) -> None:
    _, few, _ = schedlab("compare", scenario(), "--details")
    what = "few samples of each seed lie above probe.latency.p99 (9 of 900): "
    assert f"{what}a longer run (--duration) may help more than additional seeds" in words(few)
    _, enough, _ = schedlab(
        "compare", scenario(behaviour={name: {"samples": 2000} for name in ("cfs", "eevdf")}), "--details"
    )
    assert "few samples" not in enough


def test_two_adjustments_do_not_contradict_each_other(schedlab: Schedlab, scenario: Write) -> None:
    # Certain among the three pairs of its metric (p = 0.0156 * 3), not among the four metrics of the pair.
    behaviour: dict[str, Any] = {
        name: {"factor": {"probe.latency.p99": factor}, "by_seed": {"sched.switches": [900 + 7 * factor % 5, *OTHERS]}}
        for name, factor in (("a", 1), ("b", 2), ("c", 4))
    }
    name = scenario(variants=THREE, behaviour=behaviour, seeds=list(range(1, 8)))
    _, out, _ = schedlab("compare", name, "--out", "r", "--details")
    found = json.loads(schedlab("report", "r", "--json", "-")[1])
    (p99,) = [m for m in found["metrics"] if m["metric"] == "probe.latency.p99"]
    assert all(j["p_holm"] > 0.05 for j in p99["comparisons"])
    (ranks,) = [r["ranks"] for r in found["rankings"] if r["metric"] == "probe.latency.p99"]
    assert ranks == {"a": 1, "b": 2, "c": 3}
    assert "tested for each metric by itself (Holm over its 3 pairs)" in words(out)
    both = "probe.latency.p99 (b against a), probe.latency.p99 (c against a)"
    assert f"ranked for the metric by itself, not certain for all metrics together: {both}" in words(out)


PATCHED = [
    {"name": "base", "kernel": "6.12.0", "summary": "", "changes": {}},
    {"name": "patched", "kernel": "6.12.0", "summary": "", "changes": {}},
]


def test_variants_that_are_the_same_here_are_named_first(schedlab: Schedlab, scenario: Write) -> None:
    arms = {"vm": {"image": None, "images": {"patched": "bzImage"}}}
    same = "patched and base are the same on this arm: both are kernel 6.12.0, with its own settings."
    why = "They differ in `image` of [arm.vm] alone, which only --arm vm uses."
    _, out, err = schedlab("compare", scenario(variants=PATCHED, arms=arms), "--out", "r")
    assert words(out.split("\n\n")[1]).startswith(f"{same} {why}")
    assert f"{same} {why}" in words(err)
    found = json.loads(schedlab("report", "r", "--json", "-")[1])
    assert found["remarks"][0] == f"{same} {why}"
    page = schedlab("report", "r", "--html", "-")[1]
    assert page.index(same) < page.index("<table")


@pytest.mark.parametrize("changes", [{"hz": 1000}, {"features": {"RUN_TO_PARITY": False}}])
def test_variants_that_differ_are_not_called_the_same(
    changes: dict[str, Any], schedlab: Schedlab, scenario: Write
) -> None:
    variants = [PATCHED[0], {**PATCHED[1], "changes": changes}]
    assert "are the same" not in schedlab("compare", scenario(variants=variants))[1]
