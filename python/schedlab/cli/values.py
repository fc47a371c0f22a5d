"""Parsers for the values of flags: counts, seeds, times, gates; each with an error message."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from schedlab.cli.auto import Auto

if TYPE_CHECKING:
    from schedlab.gate import Gate

MOST_SEEDS = 10_000
MOST_DRAWS = 1000
MOST_JOBS = 4096


def jobs(text: str) -> int:
    return whole(text, 1, MOST_JOBS)


def units(text: str) -> int:
    return whole(text, 1, MOST_SEEDS)


def positive(text: str) -> int:
    return whole(text, 1, 2**63 - 1)


def natural(text: str) -> int:
    return whole(text, 0, 2**63 - 1)


def machine_cpus(text: str) -> list[int]:
    """Numbers of CPUs such as 1,4,64."""
    return [whole(part.strip(), 1, 512) for part in text.split(",")]


def seed(text: str) -> int:
    return whole(text, 0, 2**64 - 1)


def port(text: str) -> int:
    return whole(text, 0, 65535)


def whole(text: str, smallest: int, largest: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and smallest <= int(text) <= largest):
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from {smallest} to {largest}")
    return int(text)


def time(text: str) -> int:
    """Nanoseconds of a time with its unit; commas may stand between thousands, as tables print them."""
    import re

    units = {"s": 9, "ms": 6, "us": 3, "ns": 0}
    number = r"(\d{1,12}|\d{1,3}(?:,\d{3}){1,3})(?:\.(\d{1,9}))?"
    found = re.fullmatch(rf"{number} ?(s|ms|us|ns)", text.strip(), re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time; write 12.5ms, 1.5s, 800us or 1200000ns")
    whole, fraction, unit = found[1].replace(",", ""), found[2] or "", units[found[3]]
    return int(whole + fraction.ljust(unit, "0")[:unit])


def moment(text: str) -> tuple[str, int]:
    """A task and a time in ns on the trace's clock, which is written in seconds."""
    task, at, clock = text.rpartition("@")
    if not (task and at and clock):
        raise argparse.ArgumentTypeError(f"`{text}` is not TASK@TIME; write 154@5.180241 or sh@5.180241")
    return task, time(clock if clock[-1:].isalpha() else clock + "s")


def switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"`{text}` is neither `on` nor `off`")
    return text == "on"


def seeds(text: str) -> int | list[int]:
    if "," not in text:
        return whole(text, 1, MOST_SEEDS)
    seeds = [seed(part.strip()) for part in text.rstrip(",").split(",")]
    if len(set(seeds)) < len(seeds):
        raise argparse.ArgumentTypeError(f"`{text}` contains a seed twice")
    return seeds


def seeds_or_auto(text: str) -> int | list[int] | Auto:
    word, colon, budget = text.partition(":")
    if word != "auto":
        return seeds(text)
    return Auto(whole(budget, 1, MOST_SEEDS) if colon else None)


def shard(text: str) -> tuple[int, int]:
    """Which shard of how many, as 1/2."""
    part, slash, of = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"`{text}` is not a shard; write 1/2 for the first of two")
    many = whole(of, 1, MOST_JOBS)
    return whole(part, 1, many), many


def draws(text: str) -> int:
    return whole(text, 1, MOST_DRAWS)


def gates(text: str) -> list[Gate]:
    from schedlab import gate  # slow to import, and `--help` does not need it

    try:
        return gate.parse(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None
