"""What most tests need: an engine without Rust and a scenario file for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import fake_engine
from browser import Browser, started
from schedlab.cli import main
from schedlab.engine import Engine

# No test depends on the speed of the machine, so no example has a time limit. Every run draws the same examples;
# with SCHEDLAB_RANDOM_EXAMPLES=1 each draws others.
settings.register_profile("schedlab", deadline=None, derandomize="SCHEDLAB_RANDOM_EXAMPLES" not in os.environ)
settings.load_profile("schedlab")


@pytest.fixture(scope="session", autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every test runs with the home directory of a newcomer: empty. Rust's tools stay where they are installed."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            patch.setenv(variable, os.environ.get(variable) or str(Path.home() / folder))
        for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            patch.delenv(variable, raising=False)
        patch.setenv("HOME", str(home))
        yield home


@pytest.fixture
def engine() -> Engine:
    return Engine(fake_engine)


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a scenario file into a fresh working directory and give its name."""
    monkeypatch.chdir(tmp_path)

    def write(**changes: Any) -> str:
        (tmp_path / "toy.toml").write_text(json.dumps(changes))
        return "toy.toml"

    return write


@pytest.fixture
def schedlab(engine: Engine, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments, engine)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("browser")) as found:
        yield found
