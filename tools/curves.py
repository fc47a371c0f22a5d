"""Prints the curves of docs/models/physics.md: the metrics of a sweep of sweeps/physics as a Markdown table.

    curves.py [--short] [NAME...]

One row per point, one column per metric and variant, each the mean over the seeds. Without a name all of them run,
which takes about two minutes of CPU time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import schedlab
from schedlab.swept import Swept

FOLDER = Path(__file__).parents[1] / "sweeps/physics"
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no curve {unknown[0]}; expected {', '.join(NAMES)}")
    for name in options.names or NAMES:
        print(f"{name}\n\n{table(schedlab.sweep(FOLDER / f'{name}.toml', short=options.short))}")
    return 0


def table(swept: Swept) -> str:
    """The Markdown table of a sweep."""
    runs = swept.runs_table()
    metrics = list(dict.fromkeys(row["metric"] for row in swept.table()))
    variants = list(dict.fromkeys(name for row in swept.table() for name in (row["a"], row["b"])))
    columns = [(metric, variant) for metric in metrics for variant in variants]
    head = [*swept.axes, *(f"{metric}: {variant}" for metric, variant in columns)]
    rows = []
    for point in dict.fromkeys(tuple(row[axis] for axis in swept.axes) for row in swept.table()):
        here = [run for run in runs if tuple(run[axis] for axis in swept.axes) == point]
        rows.append([*map(str, point), *(cell(mean(here, variant, metric)) for metric, variant in columns)])
    rule = ["---"] * len(swept.axes) + ["---:"] * len(columns)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def mean(runs: Iterable[Mapping[str, Any]], variant: str, metric: str) -> float | None:
    """The mean over the seeds of one variant; `None` if a run failed or measured nothing."""
    values = [run.get(metric) for run in runs if run["variant"] == variant]
    return None if not values or None in values else fmean(values)


def cell(value: float | None) -> str:
    """Three digits, or all of an integer that has more."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
