"""The flags of `schedlab scx`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from schedlab.cli import values

ACTIONS = ("check", "stress")


def flags(p: argparse.ArgumentParser) -> None:
    """What is done with which schedulers, for which kernels."""
    p.add_argument(
        "action",
        choices=ACTIONS,
        metavar="|".join(ACTIONS),
        help="check: what each kernel lacks for the schedulers; stress: run them under random loads",
    )
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
    stress = p.add_argument_group("stress", "flags of `scx stress`")
    stress.add_argument("--seeds", type=values.seeds, metavar="N|LIST", help="loads: 20 (default: 10) or 1,2,7")
    stress.add_argument("--cpus", dest="load_cpus", type=cpus, metavar="N", help="CPUs, up to 64 (default: 4)")
    stress.add_argument("--tasks", dest="load_tasks", type=tasks, metavar="N", help="tasks, up to 1,000 (default: 12)")
    stress.add_argument(
        "--duration", dest="load_ns", type=duration, metavar="TIME", help="duration of a load (default: 60s)"
    )
    stress.add_argument(
        "--rodata",
        dest="variables",
        action="append",
        type=variable,
        metavar="NAME=VALUE",
        help="set a variable of the scheduler before it starts; repeatable",
    )


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [name for name in (part.strip() for part in text.split(",")) if name]
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` names no kernel; for example 6.12,7.2")
    return list(dict.fromkeys(found))


def cpus(text: str) -> int:
    """1 to 64."""
    return values.whole(text, 1, 64)


def tasks(text: str) -> int:
    """1 to 1,000."""
    return values.whole(text, 1, 1000)


def duration(text: str) -> int:
    """1 ms to an hour."""
    found = values.time(text)
    if not 1_000_000 <= found <= 3_600_000_000_000:
        raise argparse.ArgumentTypeError(f"`{text}` is not a duration from 1ms to 3600s")
    return found


def variable(text: str) -> tuple[str, int]:
    """`slice_us=5000`; `true` and `false` are 1 and 0."""
    name, equals, value = text.partition("=")
    number = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
    if not (name.strip() and equals and re.fullmatch(r"-?(\d+|0x[0-9a-fA-F]+)", number)):
        raise argparse.ArgumentTypeError(f"`{text}` is no variable and whole number, such as slice_us=5000")
    found = int(number, 0) if number.lstrip("-").startswith("0x") else int(number)
    if not -(2**63) <= found < 2**63:
        raise argparse.ArgumentTypeError(f"`{text}`: the number has more than 64 bits")
    return name.strip(), found
