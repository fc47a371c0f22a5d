"""`--fail-on`: which verdicts make a command fail, on which metrics, and from what size of change on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from schedlab import spelling
from schedlab.errors import InputError
from schedlab.statistics import SMALLEST_N
from schedlab.verdicts import GATES

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement
    from schedlab.scenario import Metric, Scenario
    from schedlab.validity import Validated

DIRECTED = ("worse", "better", "changed")


@dataclass(frozen=True, slots=True)
class Gate:
    """One of the conditions, each written VERDICT, VERDICT:METRIC or VERDICT:METRIC:SIZE."""

    verdict: str
    metric: str | None = None
    """None: every metric that the scenario declares, or every metric if it declares none."""
    size: float | Literal["model"] | None = None
    """The change must certainly be larger than this: a percentage, or the model error of the metric."""

    def __str__(self) -> str:
        size = () if self.size is None else (f"{self.size:g}" if isinstance(self.size, float) else self.size,)
        return ":".join((self.verdict, *([self.metric] if self.metric else []), *size))


def parse(text: str) -> list[Gate]:
    """Gates separated by commas; a ValueError says what is wrong."""
    return [_gate(part.strip()) for part in text.split(",")]


def _gate(text: str) -> Gate:
    verdict, *rest = text.split(":")
    if verdict not in GATES:
        raise ValueError(f"`{verdict}` is not a verdict; {spelling.hint(verdict, GATES, 'the verdicts are')}")
    if len(rest) > 2 or not all(rest):
        raise ValueError(f"`{text}` is not VERDICT, VERDICT:METRIC or VERDICT:METRIC:PERCENT")
    metric = rest[0] if rest else None
    if len(rest) < 2:
        return Gate(verdict, metric)
    if verdict not in DIRECTED:
        raise ValueError(f"`{text}`: {verdict} has no size; only {', '.join(DIRECTED)} have one")
    if rest[1] == "model":
        return Gate(verdict, metric, "model")
    try:
        size = float(rest[1].removesuffix("%"))
    except ValueError:
        size = -1.0
    if not 0 <= size < 1e6:
        raise ValueError(f"`{rest[1]}` is neither a percentage nor `model`")
    return Gate(verdict, metric, size)


def check(gates: Sequence[Gate], metrics: Iterable[tuple[Metric, Validated | None]]) -> None:
    """Refuse a gate that could never fail: an unknown metric, or a model error that has not been measured."""
    known = {metric.name: validated for metric, validated in metrics}
    for gate in gates:
        if gate.metric is not None and gate.metric not in known:
            hint = spelling.hint(gate.metric, known, "the metrics are")
            raise InputError(f"--fail-on {gate}: there is no metric `{gate.metric}`", hint=hint)
        if gate.size == "model" and gate.metric is not None:
            _check_model(gate, known[gate.metric])


def check_seeds(gates: Sequence[Gate], scenario: Scenario, seeds: int) -> None:
    """Refuse gates over fewer seeds than an interval needs: they would pass or fail by chance."""
    if gates and varies(scenario) and seeds < SMALLEST_N:
        have = "1 seed gives" if seeds == 1 else f"{seeds} seeds give"
        raise InputError(
            f"--fail-on {gates[0]}: {have} no verdict, a 95% interval needs at least {SMALLEST_N}",
            hint=f"run --seeds {SMALLEST_N} or more; with --noise off one seed is enough",
        )


def varies(scenario: Scenario) -> bool:
    """Whether another seed may give another number; only a simulation without noise is exact with one seed."""
    return scenario.noise or scenario.arm != "sim"


def _check_model(gate: Gate, validated: Validated | None) -> None:
    hint = f"demand a size instead: --fail-on {gate.verdict}:{gate.metric}:PERCENT"
    if validated is None:
        raise InputError(f"--fail-on {gate}: measured results have no model error", hint=hint)
    if not validated.holds:
        raise InputError(f"--fail-on {gate}: the model error is not known for {validated.unknown}", hint=hint)


def failed(gates: Sequence[Gate], comparison: Comparison) -> list[tuple[Gate, Metric, Judgement]]:
    """Every judgement that makes a gate fail."""
    return [
        (gate, m.metric, j)
        for gate, m, j in _watched(gates, comparison)
        if _fails(gate, j, m.model) and (not _unfounded(j, comparison) or j.verdict == gate.verdict)
    ]


def unjudged(gates: Sequence[Gate], comparison: Comparison) -> list[tuple[Gate, Metric, Judgement]]:
    """Judgements on too few values: a gate on one of them neither passes nor fails."""
    return [(gate, m.metric, j) for gate, m, j in _watched(gates, comparison) if _unfounded(j, comparison)]


def blind(gates: Sequence[Gate], comparison: Comparison) -> list[Gate]:
    """Gates that could not decide: a metric that they name or that the scenario declares has too few values, or all."""
    found = []
    for gate in gates:
        watched = [(m.metric, _unfounded(j, comparison)) for _, m, j in _watched([gate], comparison)]
        asked = [unfounded for m, unfounded in watched if gate.metric is not None or m.declared]
        if any(asked) or all(unfounded for _, unfounded in watched):
            found.append(gate)
    return found


def _watched(gates: Sequence[Gate], c: Comparison) -> Iterable[tuple[Gate, MetricComparison, Judgement]]:
    for gate in gates:
        for m in c.metrics:
            if _watches(gate, m.metric, c):
                yield from ((gate, m, j) for j in m.comparisons)


def _unfounded(j: Judgement, comparison: Comparison) -> bool:
    """Whether the values are too few for a verdict. A handful that happen to be equal are not deterministic."""
    return varies(comparison.scenario) and j.difference.pairs < SMALLEST_N


def unwatched(gates: Sequence[Gate], comparison: Comparison) -> list[tuple[Metric, Judgement, str]]:
    """Changes on which no gate could have failed, each with the reason: a gate that passes must not hide them."""
    found = []
    for m in comparison.metrics:
        watching = [gate for gate in gates if _watches(gate, m.metric, comparison)]
        for j in m.comparisons:
            if j.effect == "none" or any(j.effect == gate.verdict for gate in watching):
                continue
            if not watching and j.effect != "better":
                found.append((m.metric, j, "not declared by the scenario"))
            elif j.effect == "changed":
                found.append((m.metric, j, "neither direction is better"))
    return found


def _watches(gate: Gate, metric: Metric, comparison: Comparison) -> bool:
    if gate.metric is not None:
        return gate.metric == metric.name
    return metric.declared or not any(m.metric.declared for m in comparison.metrics)


def _fails(gate: Gate, j: Judgement, model: Validated | None) -> bool:
    # `undecided: noisy` is undecided too.
    if gate.verdict not in (j.verdict.partition(":")[0], j.effect):
        return False
    if gate.size is None:
        return True
    size = gate.size if isinstance(gate.size, float) else (model.error.error_pct if model and model.error else 0.0)
    return j.certain_pct > size
