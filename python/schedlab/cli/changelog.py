"""`schedlab changelog`: what changed for a user from one kernel row to another."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from schedlab import documents
from schedlab.cli.console import Console, write_file
from schedlab.cli.parser import Options
from schedlab.engine import Engine, native_engine
from schedlab.render import changelog

COMMIT = re.compile(r"\b[0-9a-f]{12}\b")


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0."""
    found = (engine or native_engine()).changes(options.before, options.after)
    shown = scenarios(options.shown_in)
    for difference in found["differences"]:
        commits = [change["commit"] for change in difference["changes"]]
        difference["scenarios"] = [shown[commit] for commit in commits if commit in shown]
    document = documents.dumps(found, indent=1)
    if options.json == "-":
        console.result(document)
        return 0
    console.result(changelog.text(found))
    if options.json:
        write_file(Path(options.json), document + "\n")
    return 0


def scenarios(folder: Path) -> dict[str, dict[str, str]]:
    """By commit, the scenario whose comments name it."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.rglob("*.toml")):
        text = path.read_text()
        comments = "\n".join(line for line in text.splitlines() if line.startswith("#"))
        for commit in COMMIT.findall(comments):
            found.setdefault(commit, {"file": str(path), "summary": str(tomllib.loads(text).get("summary", ""))})
    return found
