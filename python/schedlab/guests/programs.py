"""What the guest needs to run a workload: its programs with their libraries, and the files it names."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from schedlab.errors import ArmError, InputError

WORK = "work"
"""The guest's folder for files named by a relative path; the workload starts there."""


def shell_line(workload: Sequence[str]) -> str:
    """One word is a line for the shell, several are a command with its arguments."""
    return workload[0] if len(workload) == 1 else shlex.join(workload)


def files(line: str, busybox: Path) -> dict[str, Path]:
    """The files to copy, by their path in the guest."""
    applets = _applets(busybox)
    found: dict[str, Path] = {"bin/busybox": busybox}
    commands = 0
    for word in _words(line):
        program = shutil.which(word)
        if program and word not in applets:
            found |= with_libraries(Path(program))
            commands += 1
        elif word in applets:
            commands += 1
        elif re.fullmatch(r"[\w./+-]+", word) and Path(word).is_file():
            found[word.lstrip("/") if word.startswith("/") else f"{WORK}/{word}"] = Path(word)
    if not commands:
        raise InputError(f"the workload names no program that is installed here: {line}")
    return found


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError as e:
        raise InputError(f"the workload is not a valid shell command: {e}") from None


def with_libraries(program: Path, ldd: Callable[[Path], str] | None = None) -> dict[str, Path]:
    """A program and what the dynamic linker maps for it."""
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            raise InputError(f"{program} is not a binary", hint="name the interpreter, with the script as its argument")
    home = str(program).lstrip("/") if program.is_absolute() else f"{WORK}/{program}"
    return {home: program, **libraries(program, ldd)}


def libraries(program: Path, ldd: Callable[[Path], str] | None = None) -> dict[str, Path]:
    """What the dynamic linker maps for it; nothing for a static program or a script."""
    listed = (ldd or _ldd)(program)
    return {path.lstrip("/"): Path(path) for path in re.findall(r"(/\S+) \(0x[0-9a-f]+\)", listed)}


def _ldd(program: Path) -> str:
    done = subprocess.run(["ldd", str(program)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if missing := re.search(r"(\S+) => not found", done.stdout):
        raise InputError(f"{program} needs {missing[1]}, which is not installed")
    return done.stdout  # "not a dynamic executable" is an answer too


def find_busybox() -> Path:
    """A static busybox: the guest has no libraries of its own."""
    found = shutil.which("busybox")
    if not found:
        raise ArmError("busybox is not installed", hint="apt-get install busybox-static")
    if "=>" in _ldd(Path(found)):
        raise ArmError(f"{found} is not statically linked", hint="apt-get install busybox-static")
    return Path(found)


def _applets(busybox: Path) -> set[str]:
    done = subprocess.run([str(busybox), "--list"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return set(done.stdout.split())
