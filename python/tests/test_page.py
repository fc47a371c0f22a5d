"""The HTML page: one file, nothing from outside, every number a table cell, every picture there without scripts."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browser import WIDTHS, Browser
from schedlab import render
from schedlab.engine import Engine
from schedlab.render import charts, notes
from schedlab.render.answer import answer, sentences
from schedlab.render.forest import REACH, forest, place
from schedlab.render.markup import cells, table
from schedlab.render.unjudged import unjudged
from schedlab.verdicts import DETERMINISTIC

Write = Callable[..., str]
SLOWER = {"eevdf": {"factor": {"probe.latency.p99": 1.3}}}
THREE = [{"name": n, "kernel": "6.1", "summary": "", "changes": {}} for n in "abc"]
VOID = {"meta", "br", "hr", "img", "link"}


class Reader(html.parser.HTMLParser):
    """Collects elements and text, and checks that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.headings: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)


@pytest.fixture
def comparison(engine: Engine, scenario: Write) -> Any:
    import schedlab

    return lambda **changes: schedlab.compare(scenario(**changes), engine=engine)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_page_is_whole_and_refers_to_nothing_outside(comparison: Any) -> None:
    page = render.html(comparison(behaviour=SLOWER))
    assert len(page.encode()) < 1_500_000
    reader = read(page)
    for tag, attributes in reader.elements:
        assert tag not in ("link", "iframe", "base")
        for name in ("src", "href", "xlink:href", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), (tag, name, value)
    assert "@import" not in page
    assert "url(http" not in page


def test_page_shows_everything_without_scripts(comparison: Any) -> None:
    c = comparison(behaviour=SLOWER)
    page = re.sub(r"<script.*?</script>", "", render.html(c), flags=re.S)
    reader = read(page)
    words = " ".join(reader.text)
    assert page.count("<svg") == 2 + len(c.metrics)
    for expected in (
        "simulated",
        "worse",
        "laptop-8",
        "6.12.0",
        "fake 1",
        "deterministic, n = 1",
        *(m.metric.name for m in c.metrics),
    ):
        assert expected in words
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert len(cells) > len(c.metrics) * len(c.seeds) * 2
    for digest in (run.digest for column in c.columns for run in column.runs.values()):
        assert digest in cells


def test_page_can_be_read_aloud(comparison: Any) -> None:
    reader = read(render.html(comparison(behaviour=SLOWER)))
    assert ("html", {"lang": "en"}) in reader.elements
    assert reader.headings[0] == 1
    assert reader.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(reader.headings, reader.headings[1:], strict=False))
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("table") == tags.count("caption")
    assert all(a.get("scope") for tag, a in reader.elements if tag == "th")
    pictures = [a for tag, a in reader.elements if a.get("role") == "img" and tag == "div"]
    assert pictures
    assert all(a.get("aria-label") for a in pictures)
    assert "prefers-color-scheme: dark" in render.html(comparison())


def test_names_cannot_break_out_of_the_page(comparison: Any) -> None:
    evil = "</script><script>alert(1)</script>"
    variants = [{"name": n, "kernel": "6.1", "summary": "", "changes": {}} for n in ("a<b>", evil)]
    page = render.html(comparison(name=f"<img src=x>{evil}", variants=variants))
    read(page)
    assert "alert(1)</script>" not in page
    assert "<img src=x>" not in page


@pytest.mark.parametrize("seeds", [1, 2, 30])
def test_pictures_compile_for_any_number_of_seeds(seeds: int, comparison: Any) -> None:
    page = render.html(comparison(seeds=list(range(seeds)), behaviour=SLOWER))
    assert len(page.encode()) < 1_500_000
    for text in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.S):
        assert json.loads(text.replace("<\\/", "</"))["$schema"] == charts.SCHEMA


def test_nothing_to_draw_is_no_picture(comparison: Any) -> None:
    nothing = {"fixed": dict.fromkeys(("probe.latency.p50", "probe.latency.p99", "load.rate", "sched.switches"))}
    c = comparison(behaviour={"cfs": nothing, "eevdf": nothing})
    assert forest(c) is None
    assert charts.strips(c, c.metrics[0]) is None
    read(render.html(c))


def test_three_variants_keep_their_looks(comparison: Any) -> None:
    c = comparison(variants=THREE)
    assert c.pairs == (("a", "b"), ("a", "c"))
    spec = forest(c)
    assert spec is not None
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": ["b", "c"], "range": charts.COLOURS[1:3]}


def test_curves_take_the_median_and_the_range_over_seeds(comparison: Any) -> None:
    rows = charts.curve_rows(comparison(), "probe.latency")
    assert {r["percentile"] for r in rows} == {0, 50, 90, 99, 99.9}
    assert all(r["low"] <= r["value"] <= r["high"] for r in rows)
    assert next(r["nines"] for r in rows if r["percentile"] == 99.9) == 3


def test_the_script_of_the_page_is_bundled(comparison: Any) -> None:
    page = render.html(comparison())
    assert "window.vegaEmbed" in page
    assert (Path(charts.__file__).with_name("page.js").read_text()) in page


def test_the_page_shows_what_ran_and_the_model_error(comparison: Any) -> None:
    c = comparison(behaviour=SLOWER)
    page = re.sub(r"<script.*?</script>", "", render.html(c), flags=re.S)
    text = " ".join(read(page).text)
    assert all(fact.text in text for fact in c.setup)
    assert "model error" in text
    assert all(line in text for line in notes.models(c))
    assert notes.models(c), "a simulated comparison says how far the simulator may be off"


def test_every_cell_of_a_card_names_its_column(comparison: Any) -> None:
    page = re.sub(r"<script.*?</script>", "", render.html(comparison(behaviour=SLOWER)), flags=re.S)
    table = page.split('class="scroll cards"')[1].split("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table)
    rows = table.split("<tr>")[2:]
    assert rows
    assert all(re.findall(r'<td data-label="([^"]*)"', row) == heads[1:] for row in rows)


def test_one_wild_interval_does_not_flatten_the_others(comparison: Any) -> None:
    c = comparison(behaviour={"eevdf": {"factor": {"probe.latency.p50": 1.1, "probe.latency.p99": 90.0}}})
    spec = forest(c)
    assert spec is not None
    rows = {row["metric"]: row for row in spec["data"]["values"]}
    wild, calm = rows["probe.latency.p99"], rows["probe.latency.p50"]
    assert wild["low"] > 1000
    assert wild["shown_low"] == wild["shown_high"] == place(900)
    assert wild["beyond"].startswith("→ +")
    assert calm["beyond"] == ""
    first, last = spec["layer"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert calm["shown_change"] > (last - first) / 8


@pytest.mark.parametrize("change", [0.0, 3.0, 25.0, 400.0, 899.0])
def test_the_scale_is_symmetric_in_the_ratio(change: float) -> None:
    back = 100 / (1 + change / 100) - 100
    assert place(change) == pytest.approx(-place(back), abs=1e-5)
    assert abs(place(change)) <= place(900)
    assert place(-100) == -place(1e12)
    assert REACH > 2


SENTENCES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("worse", SLOWER, ["cfs is better: probe.latency.p99 of eevdf is ", "% higher than that of cfs (95% interval +"]),
    ("better", {"eevdf": {"factor": {"probe.latency.p50": 0.5, "probe.latency.p99": 1.2}}},
     ["eevdf is better: probe.latency.p50 of eevdf is ", " lower ", "But eevdf is worse in probe.latency.p99 (+"]),
    ("exchange", {"eevdf": {"factor": {"probe.latency.p50": 1.5, "probe.latency.p99": 0.8}}},
     ["cfs is better: probe.latency.p50 of eevdf is ", "But eevdf is better in probe.latency.p99 (-"]),
    ("alike", {}, ["cfs and eevdf are equivalent in probe.latency.p50"]),
]  # fmt: skip


@pytest.mark.parametrize(("behaviour", "parts"), [case[1:] for case in SENTENCES], ids=[case[0] for case in SENTENCES])
def test_the_first_sentence_says_who_wins_what(behaviour: Any, parts: list[str], comparison: Any) -> None:
    c = comparison(behaviour=behaviour)
    (said,) = sentences(c)
    assert all(part in said for part in parts), said
    shown = " ".join(read(re.sub(r"<script.*?</script>", "", render.html(c), flags=re.S)).text)
    assert all(text in shown for _, text in answer(c, *c.pairs[0]))
    assert said.split(":")[0] in " ".join(render.text(c).split())


def test_points_keep_off_the_edges_and_the_median_is_explained(comparison: Any) -> None:
    c = comparison(behaviour=SLOWER)
    strip = charts.strips(c, c.metrics[0])
    assert strip is not None
    x = strip["encoding"]["x"]
    assert "a bar at the median" in x["title"]
    assert x["scale"]["padding"] >= 8
    still = re.sub(r"<script.*?</script>", "", render.html(c), flags=re.S)
    assert still.count("a bar at the median") >= len(c.metrics)


def test_titles_stand_over_their_cells() -> None:
    head = ["sample", "variant", "its time", "took, ms"]
    shown = table("t", head, [cells(head, ["1", "a", "b", "2"], looks=["", "why", ""])])
    assert re.findall(r'<th scope="col"( class="text")?>', shown) == [' class="text"'] * 3 + [""]
    assert re.findall(r"<td[^>]*?( class=[^>]*)?>", shown) == [' class="text"', ' class="text why"', ""]
    assert '<th scope="col" class="text">any' in table("t", ["any", "b"], [])


def test_a_metric_with_too_few_seeds_counts_as_not_judged(comparison: Any) -> None:
    c = comparison(seeds=[1, 2, 3, 4, 5])
    exact = {m.name for m, j in c.judgements() if j.verdict == DETERMINISTIC}
    assert exact, "a metric that is the same in every seed needs no interval"
    (some,) = sentences(c)
    open_ones = len(c.metrics) - len(exact)
    assert f"{open_ones} of {len(c.metrics)} metrics could not be judged: 5 seeds, at least 6 are needed." in some
    (none,) = sentences(replace(c, metrics=tuple(m for m in c.metrics if m.metric.name not in exact)))
    assert "No metric could be judged: 5 seeds, at least 6 are needed." in none
    assert "No other metric" not in some + none, "what was not judged may have changed"
    (enough,) = sentences(comparison(seeds=[1, 2, 3, 4, 5, 6]))
    assert "be judged" not in enough


def test_a_metric_without_values_is_not_counted_as_one_with_too_few_seeds(comparison: Any) -> None:
    (some,) = sentences(comparison(behaviour={"cfs": {"fixed": {"load.rate": None}}}))
    assert "1 of 4 metrics could not be judged: no seed has a value for both variants." in some


def _adjusted(c: Any, values: Mapping[str, float]) -> Any:
    """The same comparison with other p values after Holm."""

    def one(m: Any) -> Any:
        value = values.get(m.metric.name)
        tested = (replace(j, p_holm=value) if value and j.p_holm is not None else j for j in m.comparisons)
        return replace(m, comparisons=tuple(tested))

    return replace(c, metrics=tuple(map(one, c.metrics)))


def test_the_first_sentences_state_what_the_correction_for_many_metrics_takes_back(comparison: Any) -> None:
    slower = {"eevdf": {"factor": {"probe.latency.p99": 1.3, "probe.latency.p50": 1.3}}}
    c = comparison(behaviour=slower, seeds=list(range(1, 15)))
    tested = len([j for _, j in c.judgements() if j.p_holm is not None])
    assert "Holm" not in sentences(c)[0]
    of = f"for all {tested} metrics together (Holm)"
    one = _adjusted(c, {"probe.latency.p99": 0.06})
    assert f"Not certain {of}: probe.latency.p99." in sentences(one)[0]
    assert any("not certain at 5%" in line and "probe.latency.p99" in line for line in notes.holm(one))
    every = {m.metric.name: 1.0 for m in c.metrics}
    assert f"No change is certain {of}." in sentences(_adjusted(c, every))[0]
    few = comparison(behaviour=slower, seeds=list(range(1, 7)))
    assert "No change is certain" in sentences(few)[0]
    assert re.search(r"that needs at least \d+ seeds\.", sentences(few)[0])


def test_the_correction_for_many_metrics_counts_changes_and_metrics(comparison: Any) -> None:
    slower = {"eevdf": {"factor": {"probe.latency.p99": 1.3, "probe.latency.p50": 1.3}}}
    c = comparison(behaviour=slower, seeds=list(range(1, 15)))
    found = [j for _, j in c.judgements() if j.p is not None and j.p <= 0.05]
    tested = [j for _, j in c.judgements() if j.p_holm is not None]
    assert 1 < len(found) < len(tested)
    assert notes.holm(c) == [
        f"all {len(found)} reported changes remain certain after correction for {len(tested)} metrics (Holm)"
    ]


@pytest.mark.parametrize("in_debian", [True, False, None])
def test_the_suggested_command_can_run(comparison: Any, in_debian: bool | None) -> None:
    known = {} if in_debian is None else {"in_debian": in_debian, "release": "6.1.192"}
    variants = [{"name": name, "kernel": "6.1", "summary": "", "changes": {}, **known} for name in ("cfs", "eevdf")]
    c = comparison(behaviour={"eevdf": {"factor": {"probe.latency.p99": 1.3}}}, variants=variants)
    lines = notes.models(c)
    assert any(line.endswith("--arm vm") and line.startswith("  schedlab compare") for line in lines) == (
        in_debian is not False
    )
    assert any(line.startswith("--arm vm cannot confirm this: Debian has no image of 6.1 ") for line in lines) == (
        in_debian is False
    )


def test_notes_on_ranks_stand_only_where_ranks_are_shown(comparison: Any) -> None:
    c = comparison(variants=THREE)
    assert any(line.startswith("rank:") for line in notes.below(c, ranks=True))
    assert "rank:" in render.text(c, "details")
    page = re.sub(r"<script.*?</script>", "", render.html(c), flags=re.S)
    for text in (page, render.text(c, "markdown")):
        assert "rank:" not in text
        assert "cannot be distinguished" not in text


def test_a_change_smaller_than_the_model_error_names_its_variant(comparison: Any) -> None:
    c = comparison(variants=THREE, behaviour={"b": {"factor": {"probe.latency.p99": 1.1}}})
    (line,) = (line for line in notes.models(c) if line.startswith("smaller than the model error"))
    assert "probe.latency.p99 of b" in line
    assert "probe.latency.p99 of c" not in line


def test_what_nobody_asked_about_is_shown_too(comparison: Any) -> None:
    fixed = {"sched.faults": 7.0, "vm.steal": 2.0, "sched.forks": 0.0, "sched.unheard_of": 1.0}
    c = comparison(behaviour={"cfs": {"fixed": fixed}, "eevdf": {"fixed": {**fixed, "vm.steal": 3.0}}})
    found = {one.name: one for one in unjudged(c, "cfs", "eevdf")}
    assert set(found) == {"sched.faults", "vm.steal"}
    assert found["vm.steal"].changed
    assert not found["sched.faults"].changed
    assert "not judged" in render.html(c)


WILD = {"eevdf": {"factor": {"probe.latency.p50": 1.1, "probe.latency.p99": 90.0}}}


@pytest.mark.parametrize("width", WIDTHS)
def test_a_browser_has_nothing_to_complain_about(width: int, comparison: Any, browser: Browser) -> None:
    browser.look(render.html(comparison(behaviour=WILD)), width).check()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_an_accessibility_audit_finds_nothing(dark: bool, comparison: Any, browser: Browser) -> None:
    browser.look(render.html(comparison(behaviour=WILD)), 1280, dark=dark).check()
    assert browser.audit() == []
