"""`schedlab report`: stored runs, shown again or against each other."""

from __future__ import annotations

from schedlab import api
from schedlab.cli.console import Console
from schedlab.cli.output import check_paths, show
from schedlab.cli.parser import Options
from schedlab.engine import Engine


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0 or 1; a result with failed or missing runs is shown with what it has."""
    del engine
    check_paths(options)
    return show(api.report(*options.results), options, console)
