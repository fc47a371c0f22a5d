"""The preemption models against stored measurements of real kernels: simulated anew, with the costs stored there."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from schedlab.engine import native_engine
from schedlab.validity import files
from schedlab.validity.effects import pairs
from schedlab.validity.validation import Trial, Validation

LONGEST = "rt.latency.max"
WITHIN = 1.3
"""What issue 17 asks of the longest latency of cyclictest."""
SEEDS = range(1, 9)
"""The longest latency of a run is a coincidence, such as a tick within a batch of a read: medians are compared."""


def measured() -> Validation:
    (file,) = (file for file in files.shipped() if file.stem == "preempt")
    return files.read(file)


def stored() -> list[tuple[Trial, dict[str, str]]]:
    found = measured()
    return [(trial, found.costs) for trial in found.trials if LONGEST in names(trial)]


def names(trial: Trial) -> list[str]:
    return [metric.name for metric in trial.measured.scenario.metrics]


TRIALS = stored()


@pytest.fixture(params=TRIALS, ids=[trial.measured.scenario.name for trial, _ in TRIALS])
def longest(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, tuple[float, float]]:
    """The longest latency of each variant, the median over the seeds, simulated and measured."""
    trial, costs = request.param
    scenario, engine, found = trial.measured.scenario, native_engine(), {}
    for variant in scenario.variants:
        machine = tmp_path / f"{variant.kernel}.toml"
        machine.write_text(costs[variant.kernel])
        overrides = {"seeds": list(SEEDS), "machine": str(machine)}
        simulated = engine.loads(str(scenario.description["text"]), scenario.file, overrides)
        values = [engine.run(simulated, variant.name, seed).metrics[LONGEST] or 0 for seed in SEEDS]
        real = [run.metrics[LONGEST] or 0 for (name, _), run in trial.measured.runs.items() if name == variant.name]
        found[variant.name] = (median(values), median(real))
    return found


def test_who_waits_for_kernel_code_waits_as_long_as_on_the_kernel(longest: dict[str, tuple[float, float]]) -> None:
    for name in (name for name in longest if name.startswith(("none", "voluntary"))):
        simulated, measured = longest[name]
        assert 1 / WITHIN < simulated / measured < WITHIN, name


def test_preemptible_kernel_code_shortens_the_wait_on_both(longest: dict[str, tuple[float, float]]) -> None:
    for trial, _ in TRIALS:
        for a, b in pairs(trial.measured.scenario.variants):
            if a in longest and b in longest and a.startswith("none") and not b.startswith("voluntary"):
                for side in (0, 1):
                    assert longest[b][side] < longest[a][side], (a, b, side)


def test_no_change_that_the_kernel_shows_has_the_other_sign_when_simulated() -> None:
    wrong = [(e.scenario, e.b, e.metric) for e in measured().effects if "WRONG" in (e.of_measured, e.of_simulated)]
    assert not wrong
