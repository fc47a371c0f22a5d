"""Hints for names that do not exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.spelling import MOST, hint, nearest

METRICS = ("probe.latency.p50", "probe.latency.p99", "load.time", "sched.switches")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("probe.latncy.p99", "probe.latency.p99"),
        ("Probe.Latency.P99", "probe.latency.p99"),
        ("latency.p99", "probe.latency.p99"),
        ("TIME", "load.time"),
        ("energy", None),
    ],
)
def test_the_name_that_was_meant(name: str, near: str | None) -> None:
    assert nearest(name, METRICS) == near


def test_without_a_similar_name_the_names_are_listed() -> None:
    assert hint("energy", METRICS, "the metrics are") == f"the metrics are {', '.join(METRICS)}"
    assert hint("energy", (), "the metrics are") == "there are none"
    many = [f"m{n}" for n in range(MOST + 3)]
    assert hint("energy", many, "there are").endswith(f"m{MOST - 1} and 3 more")


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)


@given(WORDS, st.lists(WORDS, max_size=8))
def test_a_hint_names_only_what_there_is(name: str, known: list[str]) -> None:
    near = nearest(name, known)
    assert near is None or near in known
    assert hint(name, known, "there are")
    if name in known:
        assert near is not None
        assert near.casefold() == name.casefold()
