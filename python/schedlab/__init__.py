"""schedlab: an A/B laboratory for the Linux CPU scheduler. The API is `api.py`; heavy imports wait until used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedlab.answers import Answer, ablate, build, explain, replay, why
    from schedlab.api import compare, listing, load, report, run
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.errors import ArmError, InputError, OutputError, RunError, ScenarioError, SchedlabError
    from schedlab.judge import Judgement
    from schedlab.outcome import Run, Series, Task
    from schedlab.scenario import Machine, Metric, Scenario, Variant
    from schedlab.swept import Swept, sweep

    __version__: str

__all__ = [
    "Answer",
    "ArmError",
    "Comparison",
    "InputError",
    "Judgement",
    "Machine",
    "Metric",
    "MetricComparison",
    "OutputError",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SchedlabError",
    "Series",
    "Swept",
    "Task",
    "Variant",
    "__version__",
    "ablate",
    "build",
    "compare",
    "explain",
    "listing",
    "load",
    "replay",
    "report",
    "run",
    "sweep",
    "why",
]

_HOMES = {
    "answers": ("Answer", "ablate", "build", "explain", "replay", "why"),
    "api": ("compare", "listing", "load", "report", "run"),
    "comparison": ("Comparison", "MetricComparison"),
    "errors": ("ArmError", "InputError", "OutputError", "RunError", "ScenarioError", "SchedlabError"),
    "judge": ("Judgement",),
    "outcome": ("Run", "Series", "Task"),
    "scenario": ("Machine", "Metric", "Scenario", "Variant"),
    "swept": ("Swept", "sweep"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from importlib import metadata  # slow to import, and every `from schedlab import ...` calls this first

        try:
            return metadata.version("schedlab")
        except metadata.PackageNotFoundError:
            return "0+source"
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"schedlab.{home}"), name)
    raise AttributeError(f"module 'schedlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
