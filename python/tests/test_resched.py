"""Requests to reschedule in the text of a replay."""

from __future__ import annotations

from typing import Any

from schedlab.render.resched import resched

DELAYS = {"count": 3, "p50_ns": 1500, "p99_ns": 2_000_000, "max_ns": 2_500_000}


def place(name: str, agreed: int, predicted: dict[str, int] | None) -> dict[str, Any]:
    return {
        "name": name,
        "score": {"decisions": 3, "agreed": agreed, "share": agreed / 3},
        "predicted": predicted,
        "recorded": DELAYS,
    }


REPORT = {
    "decisions": 6,
    "model": "lazy",
    "places": [place("tick that upgrades", 3, DELAYS), place("return from a call", 2, None)],
    "unjudged": [{"count": 4, "kind": "request", "reason": "the task blocked first"}],
    "disagreements": [
        {
            "time_ns": 2_000_000_000,
            "cpu": 0,
            "requested_ns": 1_000_000_000,
            "lazy": True,
            "kernel": "went on",
            "model": "return from a call",
        }
    ],
}


def test_the_check_point_with_misses_comes_first() -> None:
    (block,) = resched(REPORT)
    lines = block.splitlines()
    assert [line.split("  ")[0] for line in lines[2:4]] == ["return from a call", "tick that upgrades"]
    assert lines[3].split("  ")[-1].strip() == "1.5, 2,000.0, 2,500.0"
    assert "not judged: 4 requests, the task blocked first" in lines
    assert lines[-1].startswith("2.000000 s, lazy request of 1.000000 s on CPU 0: kernel went on")


def test_nothing_is_shown_where_nothing_is_judged() -> None:
    assert resched(None) == []
    assert resched({**REPORT, "decisions": 0}) == []
