"""JSON documents of the engine, the agent and stored results, and the ones that schedlab prints.

What is read has every string escaped (`schedlab.plain`), so that all outputs show the same safe text.
"""

from __future__ import annotations

import json
import re
from typing import Any

from schedlab.plain import escaped, lines

HARMLESS = re.compile(r'[ !#-\[\]-~\n"]*')
"""JSON text of printable ASCII without a backslash: no string in it needs an escape."""
TEXT = "text"
"""The key of the text of a scenario file, which is read again and never shown."""


def loads(text: str) -> Any:
    """A JSON document whose strings and keys are `escaped`."""
    document = json.loads(text)
    return document if HARMLESS.fullmatch(text) else cleaned(document)


def harmless(line: bytes) -> bool:
    """Whether a document has no string that needs an escape."""
    return HARMLESS.fullmatch(line.decode(errors="replace")) is not None


def cleaned(value: Any) -> Any:
    """A JSON document with every string and key `escaped`; the text of a scenario file keeps its lines."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {
            escaped(key): lines(item) if key == TEXT and isinstance(item, str) else cleaned(item)
            for key, item in value.items()
        }
    return value


def dumps(document: Any, indent: int | None = 2) -> str:
    """A JSON document as text, with what does not print as JSON's own escapes."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    printable = all(line.isprintable() for line in text.split("\n"))
    return text if printable else json.dumps(document, indent=indent, allow_nan=False)
