"""How optional packages are installed."""

from __future__ import annotations


def install(extra: str) -> str:
    """The hint for a package of `[project.optional-dependencies]`; schedlab is installed from its source tree."""
    return f"in the source tree of schedlab: pip install '.[{extra}]'"
