"""Charts of studies: every simulated row beyond noise, and a page that a browser can draw."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import vl_convert

from browser import Browser
from schedlab.engine import native_engine
from schedlab.render.blocks import html, markdown
from schedlab.render.study_charts import dumbbells, scatter
from schedlab.render.study_page import page
from schedlab.studies import results
from schedlab.studies.report import CaseRows, Report

STORED = results.FILE


@pytest.fixture(scope="module")
def report() -> Report:
    engine = native_engine()
    return results.read(STORED, lambda name, units: engine.load_study(name, units=units))[0]


@pytest.fixture(scope="module")
def document(report: Report) -> str:
    origins = results.origins(report, "", "schedlab reproduce", "0", lambda study: 60.0, "")
    blocks = page(report, [], origins)
    assert "vega" not in markdown(blocks)
    return html(blocks)


def values(spec: dict[str, Any] | None, layer: int) -> list[dict[str, Any]]:
    assert spec is not None
    found: list[dict[str, Any]] = spec["layer"][layer].get("data", spec.get("data"))["values"]
    return found


def test_every_simulated_row_beyond_noise_is_a_point(report: Report) -> None:
    points = values(scatter(report), -1)
    assert len(points) == report.total().ranked
    shown = [(p["study"], p["published"], p["simulated"]) for p in points]
    for study in report.studies:
        for row in study.rows:
            p, s = row.published, row.simulated
            if row.counted and p.change_pct is not None and s and s.change_pct is not None:
                assert (study.study.name, round(p.change_pct, 3), round(s.change_pct, 3)) in shown


def test_a_study_has_both_changes_of_each_row(report: Report) -> None:
    for study in report.studies:
        spec = dumbbells(study)
        assert (spec is None) == (study.score.ranked == 0)
        if spec:
            rules, ends = values(spec, 1), values(spec, 2)
            assert (len(rules), len(ends)) == (study.score.ranked, 2 * study.score.ranked)
            assert len({row["row"] for row in rules}) == len(rules), "each row has a line of its own"


def without_results(case: CaseRows) -> CaseRows:
    """The same published rows, none of them simulated."""
    return replace(case, rows=tuple(replace(row, simulated=None, outcome="not run") for row in case.rows))


def test_nothing_simulated_has_no_chart(report: Report) -> None:
    unsimulated = [replace(study, cases=tuple(map(without_results, study.cases))) for study in report.studies]
    assert unsimulated
    assert scatter(Report(tuple(unsimulated))) is None
    assert [dumbbells(study) for study in unsimulated] == [None] * len(unsimulated)


def test_the_charts_are_valid(document: str) -> None:
    specs = [json.loads(text) for text in re.findall(r'data-chart="[^"]*">(.*?)</script>', document)]
    assert len(specs) > 3
    for spec in specs:
        assert "NaN" not in vl_convert.vegalite_to_svg(spec)


@pytest.mark.parametrize("width", [400, 1280])
def test_a_browser_has_nothing_to_complain_about(width: int, document: str, browser: Browser) -> None:
    browser.look(document, width).check()


def test_an_accessibility_audit_finds_nothing(document: str, browser: Browser) -> None:
    browser.open(document, 1280)
    assert browser.audit() == []
