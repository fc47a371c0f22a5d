"""`schedlab report`: stored runs, shown again or against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab import api
from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.cli.output import show
from schedlab.engine import Engine

if TYPE_CHECKING:
    from schedlab.sweeping.store import Experiment

EXIT_INCOMPLETE = 3


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0 or 1, or 3 if runs of the result failed or are missing: the rest is shown."""
    if len(options.results) == 1:
        from schedlab.sweeping import store

        if store.holds_sweep(options.results[0]):
            return _sweep(store.read(options.results[0]), options, console)
    comparison = api.report(*options.results, against=options.against, validity=options.validity)
    code = show(comparison, options, console, engine)
    return EXIT_INCOMPLETE if comparison.failures or comparison.missing else code


def _sweep(experiment: Experiment, options: Options, console: Console) -> int:
    from schedlab.cli import sweep_output

    options.export = options.pictures = None
    sweep_output.tell_failures(experiment, console)
    sweep_output.show(experiment, options, console)
    return EXIT_INCOMPLETE if experiment.failures or experiment.missing else 0
