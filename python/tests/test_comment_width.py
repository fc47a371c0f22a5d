"""Comments in Rust keep the width that rustfmt keeps for code; rustfmt itself leaves comments as they are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH = tomllib.loads((ROOT / "rustfmt.toml").read_text())["max_width"]
COMMENT = re.compile(r"\s*//[/!]?")

ONE_LINE = "crates/schedlab-policy/src/knobs.rs"
"""A macro of this file takes a description of one line."""


def too_wide(text: str) -> list[int]:
    """The numbers of the lines of prose that are too wide: not of code blocks and tables."""
    found, block = [], False
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.match(line)
        body = line[comment.end() :] if comment else ""
        block = bool(comment) and block != body.lstrip().startswith("```")
        if comment and len(line) > WIDTH and not block and not body.lstrip().startswith("|"):
            found.append(number)
    return found


def test_a_wide_comment_is_found() -> None:
    wide = "x" * WIDTH
    assert too_wide(
        f"fn f() {{}}\n/// {wide}\n    // {wide}\n/// ```text\n/// {wide}\n/// ```\n//! | {wide} |\n{wide}\n"
    ) == [2, 3]


def test_comments_keep_the_width() -> None:
    files = sorted(set(ROOT.glob("crates/*/*/**/*.rs")) - {ROOT / ONE_LINE})
    assert len(files) > 500
    wide = [f"{file.relative_to(ROOT)}:{line}" for file in files for line in too_wide(file.read_text())]
    assert wide == []
