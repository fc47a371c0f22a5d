"""The short answer of a comparison: how sure it is, many variants as a matrix, and what a page opens with."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schedlab import render
from schedlab.engine import Engine
from schedlab.render.answer import answer
from schedlab.render.further import commands
from schedlab.render.lines import MOST
from schedlab.render.navigation import navigation
from schedlab.scenario import Metric
from schedlab.validity import checked as found
from schedlab.validity.checked import Evidence

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]
SLOWER: dict[str, Any] = {"eevdf": {"factor": {"probe.latency.p99": 1.3}}}
P99 = {"name": "probe.latency.p99", "of": "probe.latency", "stat": "p99", "unit": "us", "better": "lower",
       "margin_pct": 5.0, "declared": True, "help": ""}  # fmt: skip


@pytest.fixture
def comparison(engine: Engine, scenario: Write) -> Any:
    import schedlab

    return lambda **changes: schedlab.compare(scenario(**changes), engine=engine)


GRADES = [
    # right, unseen, wrong, the word, whether a verdict may rest on it
    (9, 1, 0, "high", True),
    (26, 2, 0, "high", True),
    (7, 2, 1, "fair", True),
    (6, 3, 0, "low", False),
    (0, 0, 9, "low", False),
    (4, 0, 0, "unknown", False),
    (0, 0, 0, "unknown", False),
]


@pytest.mark.parametrize(("right", "unseen", "wrong", "word", "carries"), GRADES)
def test_the_word_for_how_sure_is_a_share_of_checks(
    right: int, unseen: int, wrong: int, word: str, carries: bool
) -> None:
    one = Evidence("p99 latency", right, unseen, wrong)
    assert (one.grade, one.carries, one.checks) == (word, carries, right + unseen + wrong)


def test_checks_are_those_of_the_same_kind_and_about_the_same_size(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = Metric(**P99)
    p99 = ("p99 latency", False)
    checks = ((p99, 0.1, "same"), (p99, 0.3, "WRONG"), (p99, 2.0, "not shown"), (p99, 5.0, "same"),
              (("throughput", False), 0.1, "same"), (("p99 latency", True), 0.1, "WRONG"))  # fmt: skip
    monkeypatch.setattr(found, "shipped", lambda: [Path("one")])
    monkeypatch.setattr(found, "_of_file", lambda _: checks)
    numbers = {pct: found.evidence(metric, pct) for pct in (10.0, -10.0, 20.0, 300.0, 3.0)}
    assert {pct: (e.right, e.unseen, e.wrong) for pct, e in numbers.items()} == {
        10.0: (1, 0, 0),
        -10.0: (1, 0, 0),
        20.0: (1, 0, 1),
        300.0: (1, 1, 0),
        3.0: (0, 0, 0),
    }
    between_models = found.evidence(metric, 10.0, preempt=True)
    assert (between_models.right, between_models.wrong) == (0, 1)


def test_the_answer_says_which_how_much_and_how_sure(comparison: Any) -> None:
    c = comparison(behaviour=SLOWER)
    said = dict(answer(c, "cfs", "eevdf"))
    assert said[""].startswith("cfs is better: probe.latency.p99 of eevdf is ")
    assert re.match(r"(high|fair|low|unknown): ", said["sure"])
    assert "sure" not in dict(answer(comparison(), "cfs", "eevdf")), (
        "nothing changed, so there is nothing to be sure of"
    )


def test_the_short_table_has_one_line_per_metric_and_points_to_the_rest(schedlab: Schedlab, scenario: Write) -> None:
    metrics = [{**P99, "name": f"probe.latency.p{i}", "stat": f"p{i}"} for i in range(60, 60 + MOST + 3)]
    _, out, _ = schedlab("compare", scenario(metrics=metrics), "--out", "r", "-q")
    rows = [line for line in out.splitlines() if re.match(r"probe.latency.p\d+ us ", line)]
    assert len(rows) == MOST
    assert "... and 3 metrics more" in out
    assert "details: schedlab report r --details" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_many_variants_are_a_matrix_with_the_best_marked(comparison: Any) -> None:
    names = [{"name": n, "kernel": "6.1", "summary": "", "changes": {"hz": 100 * i}}
             for i, n in enumerate(("base", "slow", "fast"), 1)]  # fmt: skip
    by = {"slow": {"factor": {"probe.latency.p99": 1.5}}, "fast": {"factor": {"probe.latency.p99": 0.5}}}
    shown = render.text(comparison(variants=names, behaviour=by, metrics=[P99]), width=100)
    lines = shown.splitlines()
    assert any(re.match(r"fast \(-\d.*% against base\) is the best in probe.latency.p99\.", line) for line in lines)
    marked = [line.split()[0] for line in lines if line.rstrip().endswith("*")]
    assert marked == ["fast"]
    assert len([line for line in lines if line.startswith(("base  ", "slow  ", "fast  "))]) == 3


def test_sections_are_linked_where_there_are_several() -> None:
    contents, parts = navigation(["<h2>A &amp; b</h2>", "<p>x</p><h2>C</h2>", "<h2>D</h2>"])
    assert re.findall(r'href="#([^"]+)">([^<]*)<', contents) == [
        ("section-1", "A &amp; b"), ("section-2", "C"), ("section-3", "D")]  # fmt: skip
    assert re.findall(r'id="([^"]+)"', "".join(parts)) == ["section-1", "section-2", "section-3"]
    assert navigation(["<h2>A</h2>"])[0] == ""


def test_commands_that_go_further_name_the_scenario(comparison: Any) -> None:
    c = comparison(behaviour=SLOWER)
    lines = dict(commands(c))
    assert lines["the first decision that differs"] == "schedlab explain toy.toml cfs eevdf"
    assert lines["which difference between the variants matters"] == "schedlab ablate toy.toml cfs eevdf"
