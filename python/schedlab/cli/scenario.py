"""The scenario that a command was given, with what its flags override."""

from __future__ import annotations

from schedlab import api
from schedlab.cli.options import Options
from schedlab.engine import Engine
from schedlab.errors import InputError
from schedlab.scenario import Scenario


def loaded(options: Options, engine: Engine) -> Scenario:
    """Read the scenario; a flag that its arm cannot follow is refused."""
    arm = getattr(options, "arm", None)
    if arm == "host" and (options.machine or any(text.startswith("machine") for text in options.overrides)):
        raise InputError("the host arm runs on this machine", hint="omit --machine, --set machine=... or --arm host")
    scenario = api.load(
        options.scenario,
        seeds=getattr(options, "seeds", None),
        machine=options.machine,
        duration=options.duration,
        noise=options.noise,
        overrides=options.overrides,
        engine=engine,
    )
    if arm in (None, scenario.arm):
        return scenario
    from dataclasses import replace  # most commands do without

    return replace(scenario, arm=arm)
