"""What a smaller scenario must still show: a verdict, a failing run, or two variants that diverge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schedlab import api, gate
from schedlab.compare_variants import compare_variants
from schedlab.engine import Engine
from schedlab.errors import InputError
from schedlab.scenario import Scenario

HINT = 'write "verdict worse:METRIC", "failure WORDS" or "divergence WORD"; WORDS may be left out'


@dataclass(frozen=True, slots=True)
class Keep:
    """A property of a scenario."""

    kind: Literal["verdict", "failure", "divergence"]
    words: str
    """The gate as --fail-on takes it; words of the failure; the kind of decision. Empty: any."""

    def __str__(self) -> str:
        return f"{self.kind} {self.words}".rstrip()

    def holds(self, engine: Engine, scenario: Scenario, jobs: int | None = None) -> bool:
        """Whether the scenario has it. Every run is simulated; Ctrl-C raises KeyboardInterrupt."""
        if self.kind == "divergence":
            return self._parts(engine, scenario)
        result, interrupted = api.run_all(engine, scenario, jobs=jobs)
        if interrupted:
            raise KeyboardInterrupt
        if self.kind == "failure":
            return any(self.words in failure.message for failure in result.failures)
        if result.failures or not result.runs:
            return False
        comparison = compare_variants(result)
        gates = gate.parse(self.words)
        gate.check(gates, ((m.metric, m.model) for m in comparison.metrics))
        return bool(gate.failed(gates, comparison))

    def _parts(self, engine: Engine, scenario: Scenario) -> bool:
        if len(scenario.variants) < 2:
            return False
        a, b = scenario.variants[0].name, scenario.variants[1].name
        divergence = engine.explain(scenario, a, b, scenario.seeds[0])
        return divergence is not None and self.words in ("", divergence.get("question"))


def parse(text: str) -> Keep:
    """The property that a text names; InputError with the form if it is none."""
    kind, _, words = text.strip().partition(" ")
    words = words.strip()
    if kind == "verdict":
        try:
            gate.parse(words)
        except ValueError as e:
            raise InputError(f"--keep {text}: {e}", hint=HINT) from None
        return Keep("verdict", words)
    if kind == "failure":
        return Keep("failure", words)
    if kind == "divergence":
        return Keep("divergence", words)
    raise InputError(f"--keep {text}: not a property", hint=HINT)
