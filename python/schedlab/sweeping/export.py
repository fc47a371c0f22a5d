"""A sweep as a file for other tools: canonical JSON lines, CSV or Parquet, always in the order of the run ids."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from schedlab import extras
from schedlab.errors import InputError
from schedlab.outcome import Run
from schedlab.sweeping.store import Experiment, canonical

SUFFIXES = (".jsonl", ".csv", ".parquet")


def content(experiment: Experiment, suffix: str) -> bytes:
    """The whole file of that suffix. It does not depend on where, when and in which order the runs were executed."""
    if suffix == ".jsonl":
        lines = (json.dumps(canonical(record), sort_keys=True) for record in experiment.records.values())
        return "".join(line + "\n" for line in lines).encode()
    if suffix not in SUFFIXES:
        raise InputError(f"no export has the suffix `{suffix}`", hint=f"the suffixes are {', '.join(SUFFIXES)}")
    rows = table(experiment)
    return _csv(rows) if suffix == ".csv" else _parquet(rows)


def check(path: Path) -> None:
    """Refuse before the first run what could not be written after the last."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"no export has the suffix `{path.suffix}`", hint=f"the suffixes are {', '.join(SUFFIXES)}")
    if path.suffix == ".parquet":
        _pyarrow()


def metric_names(experiment: Experiment) -> list[str]:
    """The columns of `table` that hold numbers measured in a run."""
    return sorted({metric.name for scenario in experiment.scenarios for metric in scenario.metrics})


def table(experiment: Experiment) -> list[dict[str, Any]]:
    """One row per planned run that ended: its place, its state, its digest and every metric."""
    names = metric_names(experiment)
    axes = [axis.name for axis in experiment.axes]
    rows = []
    for run in sorted(experiment.runs, key=lambda run: (run.id, run.point, run.variant)):
        if run.id not in experiment.outcomes:
            continue
        outcome = experiment.outcomes[run.id]
        ok = isinstance(outcome, Run)
        levels = (level.label for level in experiment.points[run.point])
        row: dict[str, Any] = {"id": run.id, **dict(zip(axes, levels, strict=True))}
        row |= {"variant": run.variant, "seed": run.seed, "status": "ok" if ok else "failed"}
        row["digest"] = outcome.digest if isinstance(outcome, Run) else None
        values = outcome.metrics if isinstance(outcome, Run) else {}
        rows.append({**row, **{name: values.get(name) for name in names}})
    return rows


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    arrow, parquet = _pyarrow()
    sink = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow", hint=extras.install("parquet")) from None
    return pyarrow, parquet
