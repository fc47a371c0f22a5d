"""Runs clippy on the workspace. Warnings are errors with the compiler that rust-toolchain.toml names, and only with it.

Another compiler, such as the one that a distribution packages, has lints that were not there when the code was
written. What it warns of is printed.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIPPY = ["cargo", "clippy", "--workspace", "--all-targets", "--quiet"]


def main() -> int:
    pin = pinned()
    done = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True)
    found = version(done.stdout)
    if found != pin:
        print(f"rustc is {found or 'unknown'}, rust-toolchain.toml names {pin}: warnings are not errors")
    return subprocess.run(command(found, pin), cwd=ROOT).returncode


def pinned() -> str:
    """The release that rust-toolchain.toml names."""
    return str(tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"])


def version(printed: str) -> str:
    """The release in the output of `rustc --version`; empty if there is none."""
    words = printed.split()
    return words[1] if words[:1] == ["rustc"] and len(words) > 1 else ""


def command(found: str, pin: str) -> list[str]:
    """The command line of clippy for a compiler of that release."""
    return [*CLIPPY, "--", "-D", "warnings"] if found == pin else CLIPPY


if __name__ == "__main__":
    sys.exit(main())
