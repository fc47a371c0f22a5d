"""`import schedlab` gives what the command line gives."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

import fake_engine
import schedlab
from schedlab.api import provenance
from schedlab.comparison import NUMBERS
from schedlab.engine import Engine
from schedlab.runner import Runner, plan

Write = Callable[..., str]


def test_load_run_and_compare(engine: Engine, scenario: Write) -> None:
    s = schedlab.load(scenario(), seeds=7, engine=engine)
    assert s.seeds == (1, 2, 3, 4, 5, 6, 7)
    assert [v.name for v in s.variants] == ["cfs", "eevdf"]
    run = schedlab.run(s, "cfs", 2, engine=engine)
    assert run.series["probe.latency"].curve[1] == (50, run.metrics["probe.latency.p50"])
    assert run.tasks[0].cpu_ns == 5000
    seen = []
    c = schedlab.compare(s, out="r", jobs=2, on_outcome=seen.append, engine=engine)
    assert len(seen) == 14
    assert c.table() == schedlab.report("r").table()
    assert c.table()[0] | {"reason": ""} == {
        "arm": "simulated", "metric": "probe.latency.p50", "unit": "us", "better": "lower", "a": "cfs", "b": "eevdf",
        "median_a": c.table()[0]["median_a"], "median_b": c.table()[0]["median_b"], "delta_pct": 0.0, "low_pct": 0.0,
        "high_pct": 0.0, "n": 7, "margin_pct": 5.0, "verdict": "equivalent", "reason": "",
        "p": 1.0, "p_holm": 1.0, "p_equivalent": 1 / 128, "validated": False,
        "model_error_pct": c.table()[0]["model_error_pct"],
    }  # fmt: skip
    assert len(c.samples_table()) == 4 * 2 * 7


def test_dataframe_on_request(engine: Engine, scenario: Write) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = schedlab.compare(scenario(), engine=engine).to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["metric"]) == [m[0] for m in fake_engine.METRICS]


def test_columns_of_numbers_are_floats_even_if_nothing_was_measured(engine: Engine, scenario: Write) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    for seeds in (7, 1):
        compared = schedlab.compare(schedlab.load(scenario(), seeds=seeds, engine=engine), engine=engine)
        frame = compared.to_dataframe()
        kinds = {name: str(frame[name].dtype) for name in NUMBERS}
        assert set(kinds.values()) == {"float64"}, kinds
        assert str(compared.samples_dataframe()["value"].dtype) == "float64"


def test_errors_are_schedlab_errors(engine: Engine, scenario: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDLAB_AGENT", "none")
    scenario(behaviour={"cfs": {"fail_on": [1]}})
    with pytest.raises(schedlab.ScenarioError, match="cannot read"):
        schedlab.load("nowhere.toml", engine=engine)
    with pytest.raises(schedlab.RunError, match="deadlock") as raised:
        schedlab.run("toy.toml", "cfs", 1, engine=engine)
    assert raised.value.hint == "replay with --seed"
    with pytest.raises(schedlab.InputError, match="one result"):
        schedlab.report()
    with pytest.raises(schedlab.ArmError):
        schedlab.compare(scenario(arm="vm"), engine=engine)


def test_every_name_of_the_package_exists() -> None:
    for name in schedlab.__all__:
        assert getattr(schedlab, name) is not None
    with pytest.raises(AttributeError):
        _ = schedlab.nonsense


def test_variants_of_a_seed_are_planned_beside_each_other(engine: Engine, scenario: Write) -> None:
    jobs = plan(schedlab.load(scenario(), engine=engine), [5, 6])
    assert [(j.variant, j.seed) for j in jobs] == [("cfs", 5), ("eevdf", 5), ("cfs", 6), ("eevdf", 6)]


def test_runs_are_really_at_the_same_time(engine: Engine, scenario: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)
    real = fake_engine.run

    def meet(*args: object, **kwargs: object) -> str:
        both.wait()
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(fake_engine, "run", meet)
    s = schedlab.load(scenario(), engine=engine)
    assert len(list(Runner(engine, s, plan(s, [1, 2]), threads=2).outcomes())) == 4


def test_a_caller_that_stops_early_stops_the_runs(engine: Engine, scenario: Write) -> None:
    s = schedlab.load(scenario(behaviour={"eevdf": {"hang_on": [1]}}), engine=engine)
    runner = Runner(engine, s, plan(s, s.seeds), threads=2)
    outcomes = runner.outcomes()
    next(outcomes)
    outcomes.close()
    assert all(not t.is_alive() for t in runner._threads)


def test_the_stand_in_keeps_to_the_stub() -> None:
    import ast
    from pathlib import Path

    stub = ast.parse(Path(schedlab.__file__).with_name("_engine.pyi").read_text())
    functions = {node.name: node.args for node in stub.body if isinstance(node, ast.FunctionDef)}
    for name in ("load", "loads", "run", "listing"):
        named = [a.arg for a in (*functions[name].args, *functions[name].kwonlyargs)]
        assert list(getattr(fake_engine, name).__annotations__)[: len(named)] == named


def test_the_stub_is_true_of_the_compiled_module() -> None:
    import ast
    from pathlib import Path

    native = pytest.importorskip("schedlab._engine", reason="the engine is not built")
    stub = ast.parse(Path(schedlab.__file__).with_name("_engine.pyi").read_text())
    said = {n.name for n in stub.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    assert {n for n in dir(native) if not n.startswith("_")} == {*said, "ENGINE"}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            named = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            assert getattr(native, node.name).__text_signature__.replace("*, ", "").count(",") == len(named) - 1
            assert all(name in getattr(native, node.name).__text_signature__ for name in named)


def test_a_comparison_is_one_line_in_a_repl(engine: Engine, scenario: Write) -> None:
    shown = repr(schedlab.compare(scenario(), engine=engine))
    assert shown == "<Comparison toy: cfs, eevdf; simulated, 10 seeds, 4 metrics>"


def test_an_error_in_a_repl_has_its_hint(engine: Engine, scenario: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = schedlab.compare(scenario(), engine=engine)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(schedlab.SchedlabError) as refused:
        comparison.to_dataframe()
    assert "pip install '.[pandas]'" in str(refused.value)


@pytest.mark.parametrize("program", ["/usr/bin/schedlab", "/somewhere/schedlab/__main__.py"])
def test_a_result_says_how_to_repeat_it(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [program, "compare", "a file.toml", "--seeds", "1-6"])
    assert provenance()["command"] == "schedlab compare 'a file.toml' --seeds 1-6"
