"""The build backend of the package (PEP 517): maturin, with the agent built first, so that a wheel holds it.

`pip install .` and `pip wheel .` call it. `tools/wheels.py` uses `build_agent` for other machines.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).parents[1]
AGENT = ROOT / "python" / "schedlab" / "schedlab-agent"
NAME = AGENT.name

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """The agent, then what maturin makes: the engine, and the wheel with both."""
    build_agent(host())
    print("building the engine", file=sys.stderr, flush=True)
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_agent(target: str, environment: dict[str, str] | None = None) -> Path:
    """Build the agent for a machine and put it into the package; static, so that it also runs in an initramfs."""
    print(f"building the agent for {target}", file=sys.stderr, flush=True)
    env = {**os.environ, **(environment or {}), "RUSTFLAGS": "-C target-feature=+crt-static"}
    command = ["cargo", "build", "-p", NAME, "--profile", "agent", "--target", target]
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=sys.stderr)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    # A running agent keeps its file: the new one takes its place.
    part = AGENT.with_name(f".{NAME}.new")
    shutil.copy2(folder / target / "agent" / NAME, part)
    part.replace(AGENT)
    return AGENT


def host() -> str:
    """The machine that this is, as cargo names it."""
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))
