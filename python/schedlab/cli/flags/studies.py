"""The flags of `schedlab reproduce`."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.cli import values

REASONS = ("none", "explain", "ablate")


def flags(p: argparse.ArgumentParser) -> None:
    """The studies, the number of runs, and the destination of the results."""
    p.add_argument(
        "studies",
        nargs="*",
        metavar="STUDY|all",
        help="study names or files; `all` for all studies, whose recorded results are shown: with --units, --short, "
        "--time, --reasons, --record or --out, they are simulated again, which takes hours",
    )
    p.add_argument("--list", action="store_true", help="list the studies and exit")
    p.add_argument("--units", type=values.units, metavar="N", help="runs per variant (default: 6)")
    p.add_argument("--short", action="store_true", help="run a short form, which only shows that a study runs")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
    p.add_argument(
        "--time",
        type=values.natural,
        metavar="MIN",
        help="do not start runs that would not end within this time; 0: show the runs so far",
    )
    p.add_argument(
        "--reasons",
        choices=REASONS,
        help="how to find out why rows disagree: none (default with --short), explain (default), or ablate as well",
    )
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all rows as JSON; - is stdout")
    p.add_argument("--page", type=Path, metavar="FILE", help="write a Markdown page")
    p.add_argument(
        "--html", type=Path, metavar="FILE", help="write the same page as HTML; - is stdout, with nothing else"
    )
    p.add_argument(
        "--record",
        metavar="NAME",
        help="keep the results in results.json of the package, and their scores in history.json under this name",
    )
    p.add_argument("--note", metavar="TEXT", help="a sentence about the recorded results, shown on the page")
    p.add_argument(
        "--stored",
        nargs="?",
        const="",
        metavar="FILE",
        help="show the results recorded last, without running anything (default: those of the package)",
    )
    p.add_argument("--out", type=Path, metavar="DIR", help="store the runs in DIR (default: schedlab-results/studies)")
