"""Checks before a command starts that every output it was given can be written."""

from __future__ import annotations

from pathlib import Path

from schedlab import files
from schedlab.cli.options import Options
from schedlab.errors import InputError

STDOUT = "-"
TO_STDOUT = {("calibrate", "out"), ("validate", "out")}
"""Outputs for which `-` is stdout, beside --json and --html of every command."""
DIRECTORIES = {
    ("compare", "out"),
    ("compare", "trace"),
    ("reproduce", "out"),
    ("sweep", "out"),
    ("sweep", "pictures"),
    ("tune", "out"),
}
BY_ENGINE = {("run", "trace"), ("record", "out"), ("convert", "target")}
"""Traces, which the engine writes into a directory that must exist."""
OPTIONS = ("html", "json", "trace", "out", "target", "page", "export", "pictures")


def check_paths(options: Options) -> None:
    """Refuse what could not be written after a run that took hours, and two outputs on one stream."""
    on_stdout = []
    for name in OPTIONS:
        given = getattr(options, name, None)
        if given is None:
            continue
        path, flag = Path(given), "OUT" if name == "target" else f"--{name}"
        if str(given) == STDOUT:
            if name not in ("html", "json") and (options.command, name) not in TO_STDOUT:
                raise InputError(f"{flag} cannot be stdout", hint="use ./- for a file named -")
            on_stdout.append(flag)
            continue
        if why := _why_not(path, (options.command, name)):
            raise InputError(f"cannot write {flag} {path}: {why}")
    if len(on_stdout) > 1:
        raise InputError(f"{' and '.join(on_stdout)} cannot both go to stdout", hint="write one of them to a file")


def _why_not(path: Path, output: tuple[str, str]) -> str | None:
    if output in DIRECTORIES:
        return files.why_not_in(path)
    if output in BY_ENGINE and not path.parent.is_dir():
        return f"{path.parent} is not a directory" if path.parent.exists() else f"there is no directory {path.parent}"
    return files.why_not(path)
