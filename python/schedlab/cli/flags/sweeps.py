"""The flags of `schedlab sweep`."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.cli import values
from schedlab.sweeping import TIME_LIMIT_S

RECIPES = ("slurm", "k8s", "ssh")


def flags(p: argparse.ArgumentParser) -> None:
    """What is swept, where it runs, and where the results go."""
    p.add_argument("sweep", metavar="SWEEP", nargs="?", help="a sweep file, such as sweeps/base-slice.toml")
    p.add_argument("--dry-run", action="store_true", help="print the plan with its estimated time and run nothing")
    p.add_argument("--short", action="store_true", help="run the short form that the file declares")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
    p.add_argument(
        "--time-limit",
        type=values.positive,
        default=TIME_LIMIT_S,
        metavar="S",
        help=f"seconds after which a run has failed (default: {TIME_LIMIT_S})",
    )
    p.add_argument(
        "--memory", type=values.positive, metavar="MB", help="memory of a run (default: its share of this machine's)"
    )
    p.add_argument("--retry", action="store_true", help="repeat the runs that failed before")
    p.add_argument(
        "--out", type=Path, metavar="DIR", help="store the runs in DIR (default: schedlab-results/sweeps/...)"
    )
    p.add_argument("--shard", type=values.shard, metavar="I/N", help="run only the I-th of N shares of the runs")
    p.add_argument(
        "--merge",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="join the shards in these directories into --out",
    )
    p.add_argument("--dask", metavar="ADDRESS", help="run on a Dask cluster: tcp://HOST:PORT, or `local` to try it")
    p.add_argument("--emit", choices=RECIPES, help="print a job that runs the shards of the sweep on a cluster")
    p.add_argument(
        "--shards", type=values.jobs, default=8, metavar="N", help="with --emit: how many shards (default: 8)"
    )
    p.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained HTML page")
    p.add_argument("--pictures", type=Path, metavar="DIR", help="write every picture of the page as SVG")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all judgements as JSON; - is stdout")
    p.add_argument(
        "--export", type=Path, metavar="FILE", help="write all runs, sorted by their ids: .jsonl, .csv or .parquet"
    )
