"""Every path, command, flag and make target that the documents name exists."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from schedlab.cli.parser import Parser, build_parser
from schedlab.engine import Engine

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).rstrip("\0").split("\0")
DOCUMENTS = sorted(name for name in TRACKED if name.endswith(".md") and (ROOT / name).exists())
TOP = {name.split("/")[0] for name in TRACKED}
MADE = ("out/", "target/", ".venv/", "schedlab-results/")
"""Where the project's own commands write."""


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code(name: str) -> list[str]:
    """Inline code, and the lines of blocks that are not samples of other languages."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text(name), re.M | re.S)
    lines = [
        line for language, body in blocks if language in ("", "console", "sh", "make") for line in body.splitlines()
    ]
    return [*re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text(name), flags=re.M | re.S)), *lines]


@cache
def subcommands() -> dict[str, Parser]:
    parser = build_parser()
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    commands = dict(actions[0].choices)
    for command in commands.values():
        command.format_help()  # adds its flags
    return commands


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_exist(name: str) -> None:
    words = [w.strip(".,:;()") for c in code(name) for w in c.split()]
    paths = {w.rstrip("/") for w in words if "/" in w and w.split("/")[0] in TOP and not w.startswith(MADE)}
    missing = {p for p in paths if not list(ROOT.glob(p.partition(":")[0]))}
    assert not missing


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text(name)) if "://" not in link]
    assert not {link for link in links if link and not ((ROOT / name).parent / link).exists()}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    named = {t for c in code(name) for t in re.findall(r"(?:^|\$ )make ([a-z][a-z-]*)", c)}
    assert not named - targets


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_and_flags_exist(name: str) -> None:
    wrong = set()
    for line in code(name):
        for command, rest in re.findall(r"(?:^|\$ )schedlab ([a-z]+)\b([^|;&]*)", line):
            if command not in subcommands():
                wrong.add(command)
                continue
            flags = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
            wrong |= {f"{command} {f}" for f in flags - {*subcommands()[command]._option_string_actions}}
    assert not wrong


@pytest.mark.parametrize("name", DOCUMENTS)
def test_crates_exist(name: str) -> None:
    named = {crate for c in code(name) for crate in re.findall(r"\bschedlab-[a-z]+\b", c)} - {"schedlab-results"}
    assert not {crate for crate in named if not (ROOT / "crates" / crate).is_dir()}


def test_every_command_and_exit_code_is_listed() -> None:
    page = text("docs/commands.md")
    for command in subcommands():
        assert f"schedlab {command}" in page
    for code_and_meaning in ("| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 4 |", "| 70 |", "| 130 |"):
        assert code_and_meaning in page


def test_the_readme_stays_short() -> None:
    assert len(text("README.md")) < 7_000, "README says what schedlab is; docs say the rest"


def test_every_python_module_opens_with_its_sentence() -> None:
    import ast

    for path in [*(ROOT / "python/schedlab").rglob("*.py"), *(ROOT / "tools").glob("*.py")]:
        assert ast.get_docstring(ast.parse(path.read_text())), path
        assert len(path.read_text().splitlines()) < 450, f"{path}: look for the second idea in it"


def test_the_documented_python_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("schedlab._engine", reason="the engine is not built")
    monkeypatch.chdir(ROOT)
    (program,) = re.findall(r"^```python\n(.*?)^```", text("docs/commands.md"), re.M | re.S)
    exec(program, {})
    assert len(capsys.readouterr().out.splitlines()) >= 1


def test_the_documented_keys_are_the_keys(engine: Engine, scenario: Callable[..., str]) -> None:
    import schedlab
    from schedlab.render.document import compare_document, run_document

    tables = re.findall(r"\| key \| holds \|\n\|[-|]+\|\n((?:\|.*\n)+)", text("docs/results.md"))
    documented = [
        {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])} for table in tables
    ]
    loaded = schedlab.load(scenario(), engine=engine)
    compared = compare_document(schedlab.compare(loaded, engine=engine))
    metric = compared["metrics"][0]
    ran = run_document(loaded, "sim", schedlab.run(loaded, "cfs", 1, engine=engine))
    assert documented == [
        set(compared),
        set(metric),
        set(metric["comparisons"][0]),
        set(ran) - set(compared) | {"switches"},
    ]


def test_make_names_what_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", ROOT / "tools/prerequisites.sh", "python9"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    for word in ("cargo", "cc", "python9", "apt-get install"):
        assert word in done.stderr


@pytest.mark.parametrize(
    ("target", "optimised", "agent"),
    [
        ("compare", True, False),
        ("build", False, False),
        ("optimised", True, False),
        ("agent", False, True),
        ("bench", True, False),
        ("test", True, True),
    ],
)
def test_make_builds_what_a_target_needs(target: str, optimised: bool, agent: bool) -> None:
    """`--always-make` plans every step, built already or not; nothing is run."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    planned = subprocess.check_output(["make", "--dry-run", "--always-make", target], cwd=ROOT, text=True, env=clean)
    assert ("maturin develop --release" in planned, "-p schedlab-agent" in planned) == (optimised, agent)
