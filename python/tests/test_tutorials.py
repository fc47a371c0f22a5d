"""What the tutorials and guides conclude from a run is what the run shows, with the real engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import schedlab
from schedlab.render import text
from schedlab.render.grid import percent

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "scenarios" / "first.toml"
GUIDE = ROOT / "docs" / "guides" / "choose-a-slice.md"
pytest.importorskip("schedlab._engine", reason="the engine is not built")


@pytest.mark.parametrize("variant", ["slice-1ms", "slice-0_1ms"])
def test_a_shorter_slice_answers_sooner_and_interrupts_work(variant: str) -> None:
    comparison = schedlab.compare(schedlab.load(FIRST))
    found = {m.metric.name: j for m in comparison.metrics for j in m.comparisons if j.b == variant}
    effects = {"service.response.p99": "better", "service.response.p50": "better", "service.request.p99": "worse"}
    assert {name: found[name].effect for name in effects} == effects
    assert all((found[name].p_holm or 0) <= 0.05 for name in effects), "the tutorial says: certain after Holm"


def test_samples_of_several_pairs_have_heads() -> None:
    comparison = schedlab.compare(schedlab.load(FIRST, seeds=6))
    (head,) = [line for line in text(comparison, "details").splitlines() if line.startswith("samples of all seeds")]
    assert re.search(r" unit +baseline +variant +difference ", head)


def test_the_time_before_a_request_begins_belongs_to_the_response_only() -> None:
    run = schedlab.run(schedlab.load(FIRST), "default", 1)
    response, request = run.metrics["service.response.p99"], run.metrics["service.request.p99"]
    assert response is not None
    assert request is not None
    assert response > 1.5 * request


def test_a_base_slice_alone_decides_which_task_runs() -> None:
    variants = [
        {"name": "default", "kernel": "6.12"},
        {"name": "base-1ms", "kernel": "6.12", "knobs": {"base_slice": "1ms"}},
    ]
    document = {**_document(), "variant": variants}
    found = schedlab.explain(schedlab.build(document), "default", "base-1ms", seed=2).document
    assert found["question"] == "preempt_check"
    assert [side["decision"]["action"] for side in found["sides"]] == ["keep", "preempt"]


def test_the_table_of_slices_is_what_a_comparison_finds() -> None:
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    rows = [re.findall(r"[^|]+", line) for line in lines if re.match(r"\| [\d.]+ ms \|", line)]
    assert len(rows) == 7
    slices = [row[0].split()[0] for row in rows]
    variants: list[dict[str, object]] = [{"name": "default", "kernel": "6.12"}]
    for ms in slices:
        name = f"slice-{ms.replace('.', '_')}ms"
        variants.append({"name": name, "kernel": "6.12", "tasks": {"service": {"slice": f"{ms}ms"}}})
    comparison = schedlab.compare(schedlab.build({**_document(), "variant": variants}))
    names = ("service.response.p50", "service.response.p99", "service.request.p99")
    found = {(m.metric.name, j.b): j for m in comparison.metrics for j in m.comparisons}
    for variant, row in zip(variants[1:], rows, strict=True):
        changes = [found[name, str(variant["name"])] for name in names]
        shown = ["no change detected" if j.effect == "none" else percent(j.difference.estimate or 0) for j in changes]
        assert shown == [cell.strip() for cell in row[1:]], variant["name"]


def _document() -> dict[str, object]:
    import tomllib

    return {k: v for k, v in tomllib.loads(FIRST.read_text(encoding="utf-8")).items() if k != "variant"}
