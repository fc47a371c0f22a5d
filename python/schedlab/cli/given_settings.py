"""`--settings FILE`: the settings of a kernel become overrides of the variants, before those of `--set`."""

from __future__ import annotations

from pathlib import Path

from schedlab import api
from schedlab.cli import settings
from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.imported import Imported, imported
from schedlab.overrides import texts
from schedlab.scenario import Variant


def apply(options: Options, console: Console, engine: Engine | None) -> None:
    """Read each file under the row of each of its variants; what a row cannot take over is said on stderr."""
    engine = engine or native_engine()
    variants = api.load(options.scenario, overrides=options.overrides, engine=engine).variants
    given: list[str] = []
    for argument in options.settings:
        name, _, path = argument.partition("=")
        chosen = [variant for variant in variants if variant.name == name] if path else []
        file = Path(path if chosen else argument)
        text = settings.read(file)
        for variant in chosen or variants:
            found = _read(text, variant, engine)
            settings.check(found, file)
            given += _overrides(found, variant.name)
            for what, why in found.left_out:
                console.say(f"{file}: not taken over by variant {variant.name}: {what}: {why}")
    options.overrides = [*given, *options.overrides]


def _read(text: str, variant: Variant, engine: Engine) -> Imported:
    features, knobs = (engine.listing(kind, variant.kernel) for kind in ("features", "knobs"))
    sources = (variant.changes, variant.boot)
    changed = {key for one in sources for kind in ("features", "knobs") for key in one.get(kind) or {}}
    return imported(text, variant.kernel, features, knobs, changed)


def _overrides(found: Imported, variant: str) -> list[str]:
    of_kinds = {"features": found.features, "knobs": found.knobs}
    keys = {f"{kind}.{name}": value for kind, values in of_kinds.items() for name, value in values.items()}
    return texts({f'variant."{variant}".{key}': value for key, value in {**keys, **found.others}.items()})
