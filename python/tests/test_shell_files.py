"""Shell completion and manual pages, which are made from the parser."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from schedlab.cli.parser import COMMANDS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

pytest.importorskip("shtab", reason="shtab is not installed")
pytest.importorskip("argparse_manpage", reason="argparse-manpage is not installed")

import shell_files  # noqa: E402


@cache
def files() -> dict[str, str]:
    return shell_files.files()


def test_every_flag_is_in_the_page_of_its_command() -> None:
    for command, parser in shell_files.subparsers(shell_files.whole_parser()).items():
        page = files()[f"man/man1/schedlab-{command}.1"]
        assert page.startswith(f'.TH SCHEDLAB-{command.upper()} "1"')
        flags = [flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")]
        assert len(flags) > 2
        for flag in {*flags} - {"--help"}:
            assert flag.replace("-", "\\-") in page, (command, flag)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("schedlab", "comp"), "compare"),
        (("schedlab", "compare", "x.toml", "--see"), "--seeds"),
        (("schedlab", "report", "--sty"), "--style"),
        (("schedlab", "compare", "x.toml", "--arm", "h"), "host"),
    ],
)
def test_bash_completes(words: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(files()[shell_files.SHELLS["bash"]])
    asked = " ".join(words)
    line = f"COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; _shtab_schedlab; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", f". {script}; {line}"], capture_output=True, text=True)
    assert expected in done.stdout.split(), done


def test_every_command_is_completed_in_every_shell() -> None:
    for file in shell_files.SHELLS.values():
        assert not [command for command in COMMANDS if command not in files()[file]]
