"""Text that may come from anywhere, made safe to show: nothing in it can control a terminal or hide what it says.

Names of tasks, messages of kernels and stored results may hold escape sequences, line breaks or marks that change the
direction of writing. They are shown as escapes, `\\x1b` or `\\u202e`, in every output.
"""

from __future__ import annotations

import re

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    """The text on one line, with every character that does not print as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def lines(text: str, *, colour: bool = False) -> str:
    """The same, but line breaks and tabs stay; with `colour`, so do sequences that set a colour."""
    if not colour:
        return "".join(part if part in ("\n", "\t") else escaped(part) for part in re.split(r"([\n\t])", text))
    parts = zip(COLOURS.split(text), [*COLOURS.findall(text), ""], strict=True)
    return "".join(lines(part) + code for part, code in parts)


def _escape(character: str) -> str:
    code = ord(character)
    if character in SHORT:
        return SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
