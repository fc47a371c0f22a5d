"""Whether a verdict depends on the grouping of the tasks, and whether a metric still drifts at the end of the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from schedlab.scenario import Variant
from schedlab.setup_facts import boot_defaults, boot_text, variant_text

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]

SEEDS = list(range(1, 11))
P99 = "probe.latency.p99"


def grouped(other: float, **more: Any) -> dict[str, Any]:
    """A scenario in which eevdf is worse by half, and with the other grouping by this factor."""
    by_grouping = {"given": {P99: 1.5}, "none": {P99: other}}
    return {
        "behaviour": {"eevdf": {"by_grouping": by_grouping}},
        "other_grouping": "none",
        "check_groups": 3,
        "seeds": SEEDS,
        **more,
    }


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (0.5, "The verdict depends on groups: without groups probe.latency.p99 changes by -"),
        (1.7, "It has the same sign without groups, where it changes by +"),
        (1.0, "The verdict depends on groups: without groups probe.latency.p99 changes by"),
    ],
)
def test_the_first_paragraph_says_what_the_other_grouping_answers(
    schedlab: Schedlab, scenario: Write, other: float, says: str
) -> None:
    metrics = [{"name": P99, "of": "probe.latency", "stat": "p99", "unit": "us", "better": "lower"}]
    metrics = [{**m, "margin_pct": 5.0, "help": "", "declared": True} for m in metrics]
    file = scenario(**grouped(other, metrics=metrics))
    _, out, err = schedlab("compare", file, "--out", "r")
    assert "repeating 3 seeds without groups" in err
    assert says in " ".join(out.split())
    assert out == schedlab("report", "r")[1], "it is stored"
    found = json.loads(schedlab("report", "r", "--json", "-")[1])["robustness"]
    assert found["machines"] == 0
    assert found["regrouped"]["seeds"] == 3
    (change,) = found["regrouped"]["changes"]
    assert (change["change_pct"] > 0) == (other > 1) or other == 1.0


def test_the_other_grouping_runs_where_it_is_asked_for_and_exists(schedlab: Schedlab, scenario: Write) -> None:
    for more, flags, runs in [
        ({"check_groups": 0}, (), False),
        ({"check_groups": 0}, ("--robust", "1"), True),
        ({"other_grouping": None}, (), False),
    ]:
        _, _, err = schedlab("compare", scenario(**grouped(0.5, **more)), *flags)
        assert ("without groups" in err and "repeating 3 seeds" in err) == runs, (more, flags)


def test_a_metric_that_drifts_is_named(schedlab: Schedlab, scenario: Write) -> None:
    metric = {"name": P99, "of": "probe.latency", "stat": "p99", "unit": "us", "better": "lower", "margin_pct": 5.0}
    metric |= {"help": "", "declared": True}
    for factor, drifts in [(1.3, True), (1.0, False), (0.97, False), (0.7, True)]:
        file = scenario(behaviour={"cfs": {"drift": {P99: factor}}}, metrics=[metric], seeds=SEEDS)
        out = " ".join(schedlab("compare", file)[1].split())
        assert (f"{P99} still drifts at the end of the run" in out) == drifts, factor
    assert "in cfs" in out


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (2.0, "changes by +100%, so a longer warm-up"),
        (1.0, "does not change with certainty"),
        (0.5, None),
    ],
)
def test_a_change_that_only_the_start_of_the_run_makes_is_named(
    schedlab: Schedlab, scenario: Write, level: float, said: str | None
) -> None:
    metric = {"name": P99, "of": "probe.latency", "stat": "p99", "unit": "us", "better": "lower", "margin_pct": 5.0}
    metric |= {"help": "", "declared": True}
    behaviour = {"cfs": {"rest": {P99: 1.0}}, "eevdf": {"factor": {P99: 0.5}, "rest": {P99: level}}}
    out = " ".join(schedlab("compare", scenario(behaviour=behaviour, metrics=[metric], seeds=SEEDS))[1].split())
    named = f"the change of {P99} in eevdf comes from the start of the run: in the last two thirds"
    assert (named in out) == (said is not None)
    assert said is None or said in out


def boot(**changes: Any) -> dict[str, Any]:
    usual = {"kernel": "6.1", "config": None, "hz": 250, "preempt": "none", "autogroup": False, "groups": []}
    return {**usual, "ungrouped": True, "features": {}, **changes}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "250 Hz, preempt=none, groups=none"),
        ({"autogroup": True}, "250 Hz, preempt=none, groups=sessions"),
        ({"autogroup": True, "ungrouped": False, "groups": ["/web"]}, "250 Hz, preempt=none, groups=/web"),
        ({"autogroup": True, "groups": ["/web"]}, "250 Hz, preempt=none, groups=/web+sessions"),
        ({"groups": list("abcdef")}, "250 Hz, preempt=none, groups=a+b+c+d+2 more"),
        ({"features": {"PLACE_LAG": False}}, "250 Hz, preempt=none, groups=none, PLACE_LAG off"),
    ],
)
def test_a_configuration_is_one_line(changes: dict[str, Any], text: str) -> None:
    assert boot_text(boot(**changes)) == text


def test_a_variant_shows_its_configuration_once() -> None:
    changes = {"features": {"PLACE_LAG": False}, "hz": 250, "knobs": {"base_slice_ns": "3ms"}, "autogroup": True}
    own = boot(config="debian-12", autogroup=True, features={"PLACE_LAG": False})
    assert variant_text(Variant("v", "6.1", "", changes, boot=own)) == (
        "kernel 6.1 (debian-12), 250 Hz, preempt=none, groups=sessions, PLACE_LAG off, base_slice_ns=3ms"
    )


def test_variants_with_other_configurations_are_not_the_same(schedlab: Schedlab, scenario: Write) -> None:
    for other, same in [({"hz": 1000}, False), ({"autogroup": True}, False), ({"config": "debian-12"}, True)]:
        variants = [
            {"name": name, "kernel": "6.1", "summary": "", "changes": {}, "boot": boot(**own)}
            for name, own in (("a", {}), ("b", other))
        ]
        out = schedlab("compare", scenario(variants=variants))[1]
        assert ("are the same on this arm" in out) == same, other


@pytest.mark.parametrize(
    ("a", "b", "given", "says"),
    [
        ({}, {}, {}, ""),
        ({}, {"preempt": "lazy"}, {}, "preempt none in a and lazy in b"),
        ({}, {"preempt": "lazy", "hz": 1000}, {}, "preempt none in a and lazy in b; hz 250 in a and 1000 in b"),
        ({}, {"autogroup": True}, {}, "autogroup off in a and on in b"),
        ({}, {"preempt": "lazy"}, {"preempt": "x"}, ""),
    ],
)
def test_settings_that_differ_by_default_are_not_changes_of_the_scheduler(
    a: dict[str, Any], b: dict[str, Any], given: dict[str, Any], says: str
) -> None:
    found = boot_defaults(
        Variant("a", "6.1", "", given, boot=boot(**a)), Variant("b", "7.0", "", given, boot=boot(**b))
    )
    assert says in found
    assert bool(found) == bool(says)
