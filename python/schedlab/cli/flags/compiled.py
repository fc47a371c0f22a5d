"""The flags of `schedlab kernel` and its actions."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.cli import values


def kernel(p: argparse.ArgumentParser) -> None:
    """One action and what it acts on."""
    p.add_argument("action", choices=("build", "check", "verify", "list"), metavar="build|check|verify|list")
    p.add_argument(
        "what",
        nargs="?",
        metavar="TREE|PACKAGE|NAME",
        help="build: a kernel's source tree, or a Debian package such as linux-source-6.12; otherwise a native row",
    )
    p.add_argument("--name", metavar="NAME", help="build: the name of the row (default: that of the tree or package)")
    p.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="build: take HZ and the scheduler's options from this kernel configuration",
    )
    p.add_argument("--against", metavar="ROW", help="verify: the row to compare with, such as 6.12")
    p.add_argument(
        "--cpus",
        dest="machine_cpus",
        type=values.machine_cpus,
        metavar="LIST",
        help="verify: sizes of the machines (default: 1,4,16,64)",
    )
    p.add_argument(
        "--switches", type=values.natural, metavar="N", help="verify: stop after so many switches (default: 100000)"
    )
    p.add_argument("--seed", type=values.seed, metavar="N", help="verify: the seed of the first load (default: 1)")
    p.add_argument("--out", type=Path, metavar="FILE", help="verify: write the smallest scenario that differs to FILE")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the result as JSON; - is stdout")
