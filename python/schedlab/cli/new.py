"""`schedlab new FAMILY`: a commented scenario to begin with; without a family, the list of them."""

from __future__ import annotations

from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.engine import Engine
from schedlab.families import families, text
from schedlab.render.grid import columns


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Print the scenario or the list to stdout."""
    del engine
    if options.family is None:
        console.text("\n".join(columns([list(row) for row in families().items()], "<<")))
        console.say("schedlab new FAMILY > my.toml writes one of them")
    else:
        console.page(text(options.family).rstrip("\n"))
    return 0
