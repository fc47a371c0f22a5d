"""The flags of `schedlab scx`."""

from __future__ import annotations

import argparse
from pathlib import Path

ACTIONS = ("check",)


def flags(p: argparse.ArgumentParser) -> None:
    """What is done with which schedulers, for which kernels."""
    p.add_argument("action", choices=ACTIONS, metavar="check", help="check: what each kernel lacks for the schedulers")
    p.add_argument(
        "objects",
        nargs="+",
        type=Path,
        metavar="OBJECT",
        help="a BPF object of a scheduler, or a program that embeds one, such as an installed scx_bpfland",
    )
    p.add_argument(
        "--kernel",
        dest="kernels",
        type=names,
        default=["running"],
        metavar="LIST",
        help="Debian kernels by version, suite or package (6.12,7.2), or files (image, vmlinux, BTF); default: running",
    )
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write everything as JSON; - is stdout")


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [name for name in (part.strip() for part in text.split(",")) if name]
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` names no kernel; for example 6.12,7.2")
    return list(dict.fromkeys(found))
