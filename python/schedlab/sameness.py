"""Says which variants of a scenario do not differ on an arm, and whether they would differ on another arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedlab.scenario import Scenario, Variant
from schedlab.setup_facts import variant_text


def same_variants(scenario: Scenario, arm: str, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """For each pair of variants that run the same on `arm`, a sentence that says so and why."""
    found = {}
    for pair in pairs:
        a, b = (scenario.variant(name) for name in pair)
        if a and b and _same(a, b) and not (arm == "vm" and _images(scenario, a, b)):
            found[pair] = (
                f"{b.name} and {a.name} are the same on this arm: both are {variant_text(a)}{_why(scenario, a, b)}."
            )
    return found


def _same(a: Variant, b: Variant) -> bool:
    return (a.kernel, a.changes, a.settings, _boot(a)) == (b.kernel, b.changes, b.settings, _boot(b))


def _boot(variant: Variant) -> dict[str, Any]:
    """The configuration itself, whatever it is called."""
    return {key: value for key, value in variant.boot.items() if key not in ("kernel", "config", "config_source")}


def _images(scenario: Scenario, a: Variant, b: Variant) -> bool:
    """Whether QEMU would boot another image for each."""
    named = scenario.arms["vm"].get("images") or {}
    return named.get(a.name) != named.get(b.name)


def _why(scenario: Scenario, a: Variant, b: Variant) -> str:
    if _images(scenario, a, b):
        return ". They differ in `image` of [arm.vm] alone, which only --arm vm uses"
    return ""
