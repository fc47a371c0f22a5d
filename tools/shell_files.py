"""Writes the completion of shells and the manual pages, both made from the parser: `shell_files.py FOLDER`.

The command itself does not need the packages that this tool uses, so its start is as fast as without them.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from schedlab.cli.parser import COMMANDS, Parser, build_parser

SHELLS = {
    "bash": "bash-completion/completions/schedlab",
    "zsh": "zsh/site-functions/_schedlab",
    "tcsh": "tcsh/schedlab",
}
"""The file of each shell below the folder, as below /usr/share."""


def main(folder: Path) -> None:
    """Every file, at its place below a folder such as /usr/share."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)


def files() -> dict[str, str]:
    """The text of each file by its name."""
    import shtab

    completions = {file: shtab.complete(whole_parser(), shell) for shell, file in SHELLS.items()}
    pages = {"man/man1/schedlab.1": page(whole_parser(), "An A/B laboratory for the Linux CPU scheduler")}
    for command, parser in subparsers(whole_parser()).items():
        summary = COMMANDS[command][0]
        pages[f"man/man1/schedlab-{command}.1"] = page(parser, summary[:1].upper() + summary[1:])
    return {**completions, **pages}


def whole_parser() -> Parser:
    """The parser with the flags of all commands, which it otherwise adds on demand."""
    parser = build_parser()
    for command in subparsers(parser).values():
        command.format_help()
    return parser


def subparsers(parser: argparse.ArgumentParser) -> dict[str, Parser]:
    """The parser of each command."""
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(actions[0].choices)


def page(parser: argparse.ArgumentParser, description: str) -> str:
    """A manual page."""
    from argparse_manpage.manpage import Manpage

    data = {"project_name": "schedlab", "description": description, "manual_section": 1, "manual_title": "schedlab"}
    text = str(Manpage(parser, _data=data))
    # A name with a space would be two words of the head, and the description is wrapped for a terminal.
    text = text.replace(f".TH {parser.prog.upper()} ", f".TH {parser.prog.upper().replace(' ', '-')} ", 1)
    return re.sub(r"\n {4}(?=\S)", " ", text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: shell_files.py FOLDER, such as ~/.local/share")
    main(Path(sys.argv[1]))
