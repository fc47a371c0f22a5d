"""What a trace that was read lacks: said by every command that reads or makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedlab.cli.console import Console


def say_missing(console: Console, counts: Mapping[str, Any]) -> None:
    """Says how many events the recorder lost, and what else the reader noted. `counts` is the engine's document."""
    if counts["lost"]:
        console.say(f"the recorder had lost {counts['lost']:,} events")
    for note in counts["notes"]:
        console.say(note)
