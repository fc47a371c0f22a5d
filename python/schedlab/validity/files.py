"""Stored validations: everything that the errors are computed from, small enough to live in the repository."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from schedlab import shape
from schedlab.errors import InputError, reason
from schedlab.outcome import Failure, Outcome, Run, from_record, to_record
from schedlab.scenario import Scenario
from schedlab.store import Result
from schedlab.validity.rows import MOST_DISTINGUISHED
from schedlab.validity.validation import Trial, Validation

SCHEMA = "schedlab.validity/1"
_RUN_KEYS = ("variant", "seed", "kernel", "engine", "digest", "events", "switches", "sim_s", "run_s", "wall_s", "ended")
_STATE_KEYS = ("release", "build", "clocksource", "qemu", "agent_sha256", "image", "image_sha256", "debugfs.preempt")
_MACHINE_KEYS = ("name", "summary", "cpus", "calibrated")
_DIGITS = 8


def shipped() -> list[Path]:
    """The validations that come with schedlab."""
    folder = resources.files("schedlab.validity")
    return sorted(Path(str(file)) for file in folder.iterdir() if file.name.endswith(".json"))


def dump(found: Validation) -> str:
    """The validation as text: only the parts of runs from which errors are computed."""
    document = {
        "schema": SCHEMA,
        "arm": found.arm,
        "measured": found.measured,
        "simulated": found.simulated,
        "costs": found.costs,
        "trials": [_trial(trial) for trial in found.trials],
    }
    lines = json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1)
    return _runs_on_lines(lines) + "\n"


def read(path: Path) -> Validation:
    """The inverse of `dump`."""
    hint = "`schedlab validate --store FILE` writes one"
    try:
        document = shape.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise InputError(f"not a validation of schema {SCHEMA}", file=str(path), hint=hint)
        trials = [_read_trial(trial, document["arm"]) for trial in document["trials"]]
        costs, made = document["costs"], (document["measured"], document["simulated"])
        return Validation(document["arm"], trials, costs, *made)
    except OSError as e:
        raise InputError(f"cannot read a validation: {reason(e)}", file=str(path), hint=hint) from None
    except ValueError as e:
        raise InputError(f"not a stored validation: {e}", file=str(path), hint=hint) from None
    except KeyError as e:
        raise InputError(f"not a stored validation: there is no {e}", file=str(path), hint=hint) from None
    except (TypeError, AttributeError):
        message = "not a stored validation: a value in it has the wrong type"
        raise InputError(message, file=str(path), hint=hint) from None


def _trial(trial: Trial) -> dict[str, Any]:
    scenario = trial.measured.scenario
    names = {m.name for m in scenario.metrics}
    return {
        "scenario": _scenario(scenario),
        "seeds": list(trial.measured.seeds),
        "simulated": [_slim(o, names) for o in _outcomes(trial.simulated)],
        "measured": [_slim(o, names) for o in _outcomes(trial.measured)],
    }


def _read_trial(d: Mapping[str, Any], arm: str) -> Trial:
    scenario = Scenario.from_description(d["scenario"])
    sides = (
        Result.of(scenario, word, d["seeds"], [from_record(run) for run in d[key]], {})
        for word, key in (("sim", "simulated"), (arm, "measured"))
    )
    return Trial(*sides)


def _outcomes(result: Result) -> list[Outcome]:
    return [*result.runs.values(), *result.failures]


def _scenario(scenario: Scenario) -> dict[str, Any]:
    d = dict(scenario.description)
    machine = {key: d["machine"][key] for key in _MACHINE_KEYS if key in d["machine"]}
    metrics = [{**m, "help": ""} for m in d["metrics"]]
    return {**d, "machine": machine, "metrics": metrics}


def _slim(outcome: Outcome, names: set[str]) -> dict[str, Any]:
    if isinstance(outcome, Failure):
        return to_record(outcome)
    record = outcome.record
    slim = {"status": "ok", **{key: record[key] for key in _RUN_KEYS if key in record}}
    slim["metrics"] = {name: _rounded(value) for name, value in outcome.metrics.items() if name in names}
    slim["tasks"] = _tasks(outcome)
    if place := record.get("place"):
        state = {key: place["state"][key] for key in _STATE_KEYS if key in place["state"]}
        slim["place"] = {"machine": place["machine"], "state": state, "untimed": place.get("untimed")}
    return slim


def _tasks(run: Run) -> list[dict[str, Any]]:
    """Tasks one by one where a name has few of them, otherwise added up."""
    by_name: dict[str, list[Any]] = {}
    for task in sorted(run.tasks, key=lambda t: t.pid):
        by_name.setdefault(task.name, []).append(task)
    found = []
    for name, tasks in sorted(by_name.items()):
        if sum(t.tasks for t in tasks) <= MOST_DISTINGUISHED:
            found += [{"name": name, "pid": t.pid, "cpu_ns": t.cpu_ns, "switches": t.switches} for t in tasks]
        else:
            sums = {"cpu_ns": sum(t.cpu_ns for t in tasks), "switches": sum(t.switches or 0 for t in tasks)}
            found.append({"name": name, "pid": 0, **sums, "tasks": sum(t.tasks for t in tasks)})
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _runs_on_lines(text: str) -> str:
    """Each run on a line of its own: a difference between two versions of the file shows which runs changed."""
    lines, run = list[str](), list[str]()
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if run or (depth == 4 and line.strip() == "{"):
            run.append(line.strip())
            if depth == 4 and line.strip() in ("}", "},"):
                lines.append("    " + " ".join(run))
                run = []
        else:
            lines.append(line)
    return "\n".join(lines)
