"""Finds the agent, the program that runs a scenario's tasks with real threads, and parses its output."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from schedlab import documents
from schedlab.arms import process
from schedlab.errors import ArmError, RunError, ScenarioError, SchedlabError
from schedlab.outcome import Run
from schedlab.scenario import Scenario

NAME = "schedlab-agent"
HINT = "`make agent` or `pip install .` in a source tree builds it; SCHEDLAB_AGENT=PATH names another one"
TARGET = f"{platform.machine()}-unknown-linux-gnu"


def find() -> Path:
    """The agent: `$SCHEDLAB_AGENT`, or next to the package, in PATH, or where cargo builds it."""
    for path in _places():
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise ArmError(f"cannot find {NAME}, which runs the tasks on real kernels", hint=HINT)


def check_version(engine: str) -> None:
    """Refuse an agent whose version differs from the engine's: the two would not run the same scenario."""
    done = process.run([str(find()), "--version"], limit_s=60)
    said = done.stdout.strip()
    if done.code != 0 or said != f"{NAME} {engine}":
        raise ArmError(
            f"the agent says `{said or done.stderr.strip()}`, and the engine is version {engine}",
            hint=f"build both from the same sources: {HINT}",
            file=str(find()),
        )


def _places() -> list[Path]:
    named = os.environ.get("SCHEDLAB_AGENT")
    if named:
        return [Path(named)]
    package = Path(__file__).parents[1]
    root = package.parents[1]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    in_path = shutil.which(NAME)
    return [package / NAME, *([Path(in_path)] if in_path else []), target / TARGET / "agent" / NAME]


def arguments(
    scenario: Scenario, file: str, variant: str, seed: int, out: str, trace: str | None, untimed: str | None = None
) -> list[str]:
    """The arguments for one run, without the name of the program; `file` is the path of the scenario for the agent."""
    words = ["run", file, "--variant", variant, "--seed", str(seed), "--out", out]
    words += overridden(scenario)
    words += ["--trace", trace] if trace else []
    words += ["--remark", f"no durations: {untimed}"] if untimed else []
    driver = scenario.arms.get("driver")
    return words + (["--driver", driver] if driver else [])


def overridden(scenario: Scenario) -> list[str]:
    """The arguments for what replaces keys of the file. The agent has a machine of its own."""
    return [word for text in scenario.overrides if not text.startswith("machine") for word in ("--set", text)]


def programs(scenario: Scenario) -> list[str]:
    """The names of the real programs of a scenario's benchmarks, installed or not."""
    done = process.run([str(find()), "programs", scenario.file, *overridden(scenario)], limit_s=60)
    if done.code != 0:
        raise failure(done.code, done.stderr, scenario.file)
    by_workload: dict[str, list[str]] = json.loads(done.stdout)
    return list(dict.fromkeys(name for names in by_workload.values() for name in names))


def report(text: str, place: dict[str, Any], wall_s: float) -> Run:
    """The agent's document as a run, with the place that the arm recorded."""
    try:
        record = documents.loads(text)
        return Run.from_record({**record, "wall_s": wall_s, "place": place})
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise RunError(
            f"the agent's report cannot be read: {type(e).__name__} {e}", hint="this is a bug in schedlab"
        ) from None


def failure(code: int | None, stderr: str, where: str) -> SchedlabError:
    """The error of a failed command, with the message of the agent."""
    kind, said, hint = _said(code, stderr)
    return kind(f"{where}: {said}", hint=hint)


def run_failure(code: int | None, stderr: str, variant: str, seed: int) -> SchedlabError:
    """The error of a failed run, with variant and seed only if it ends the command: others are stored with them."""
    kind, said, hint = _said(code, stderr)
    return kind(said if kind is RunError else f"{variant} seed {seed}: {said}", hint=hint)


def _said(code: int | None, stderr: str) -> tuple[type[SchedlabError], str, str | None]:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = next((found[1] for line in lines if (found := re.match(rf"(?:error|{NAME}): (.*)", line))), None)
    hint = next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), None)
    kind: type[SchedlabError] = {2: ScenarioError, 4: ArmError}.get(code or 0, RunError)
    ended = f"ended with signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    if said is None:
        last = "".join(f"\n  | {line}" for line in lines[-8:])
        said = f"the agent {ended}" + (f"; its last output was{last}" if last else " without output")
    return kind, said, hint
