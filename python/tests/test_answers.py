"""The Python API beyond runs and comparisons: scenarios in code, questions as calls, shows, notebooks, reference."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import schedlab
from schedlab.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT: dict[str, Any] = {
    "machine": "laptop-8",
    "duration": "20ms",
    "seeds": 2,
    "workload": [{"use": "hog", "threads": 12, "name": "load"}],
    "variant": [
        {"name": "a", "kernel": "6.12.107"},
        {"name": "b", "kernel": "6.12.107", "knobs": {"base_slice": "1ms"}},
    ],
}


def test_a_scenario_is_built_in_code() -> None:
    s = schedlab.build(DOCUMENT, name="made", seeds=3, overrides={"workload.threads": 9})
    assert (s.name, s.seeds, s.workloads[0]["tasks"], s.overrides) == ("made", (1, 2, 3), 9, ("workload.threads=9",))
    with pytest.raises(schedlab.ScenarioError, match="unknown workload"):
        schedlab.build({**DOCUMENT, "workload": [{"use": "hgo"}]})
    with pytest.raises(InputError, match="the document is not a scenario"):
        schedlab.build({**DOCUMENT, "machine": object()})


def test_questions_are_calls_with_the_answers_of_the_commands() -> None:
    s = schedlab.build(DOCUMENT)
    divergence = schedlab.explain(s)
    assert (divergence.document["diverged"], divergence.document["variants"]) == (True, ["a", "b"])
    assert divergence == schedlab.explain(s, "a", "b", seed=1)
    assert schedlab.why(s, "3", 5_000_000, variant="a").document["schema"] == "schedlab.why/2"
    found = schedlab.ablate(s, metric="sched.switches", jobs=2)
    assert {m["name"] for m in found.document["mechanisms"]} == {"base_slice_ns"}
    for answer in (divergence, found):
        assert len(repr(answer)) < 120
        assert answer._repr_html_().startswith("<pre>")


BAD = [
    (lambda s: schedlab.explain(s, "a"), "two different variants are needed"),
    (lambda s: schedlab.explain(s, "a", "c"), "there is no variant `c`"),
    (lambda s: schedlab.ablate(s, metric="sched.swiches"), "has no metric"),
    (lambda _: schedlab.replay("x.ftrace", "6.1", matrix=True), "matrix replays every row"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_questions_are_errors(call: Any, message: str) -> None:
    with pytest.raises(schedlab.SchedlabError, match=message):
        call(schedlab.build(DOCUMENT))


def test_shows_are_short_and_their_text_is_escaped() -> None:
    s = schedlab.build({**DOCUMENT, "name": "<script>alert(1)</script>"}, seeds=1)
    run, comparison = schedlab.run(s, "a"), schedlab.compare(s)
    for shown in (s, run, comparison):
        assert len(repr(shown)) < 200
        assert "<script>" not in shown._repr_html_()
        assert shown._repr_html_().count("<tr>") > 3


def test_samples_as_a_dataframe() -> None:
    frame = schedlab.compare(schedlab.build(DOCUMENT)).samples_dataframe()
    assert list(frame.columns) == ["metric", "unit", "variant", "seed", "value"]
    assert set(frame.variant) == {"a", "b"}


def test_every_public_name_is_documented_and_on_the_page() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    on_page = set(re.findall(r"^\.\. auto\w+:: schedlab\.(\w+)", page, re.MULTILINE))
    public = set(schedlab.__all__) - {"__version__"}
    assert on_page == public
    assert all(inspect.getdoc(getattr(schedlab, name)) for name in public)


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs/notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_every_notebook_runs(notebook: Path) -> None:
    jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    found = jupytext.read(notebook)
    nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [out for cell in found.cells for out in cell.get("outputs", ()) if out.output_type == "execute_result"]
    assert any("text/html" in out.data for out in shown)
