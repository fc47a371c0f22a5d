"""`schedlab report`: stored runs, shown again or against each other."""

from __future__ import annotations

from schedlab import api
from schedlab.cli.console import Console
from schedlab.cli.output import show
from schedlab.cli.parser import Options
from schedlab.engine import Engine

EXIT_INCOMPLETE = 3


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0 or 1, or 3 if runs of the result failed or are missing: the rest is shown."""
    comparison = api.report(*options.results, against=options.against, validity=options.validity)
    code = show(comparison, options, console, engine)
    return EXIT_INCOMPLETE if comparison.failures or comparison.missing else code
