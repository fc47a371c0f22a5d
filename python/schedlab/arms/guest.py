"""The input of a guest (the scenario with its programs) and its output (a report with the state of the guest)."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import plain
from schedlab.arms import agent
from schedlab.errors import ArmError, RunError
from schedlab.guests import initramfs, programs
from schedlab.guests.qemu import QEMU

HERE = Path(__file__).parent
WORK = "work"
TOOLS = {QEMU: "qemu-system-x86", "busybox": "busybox-static"}
"""Programs that every guest needs, with their Debian packages."""
TOPOLOGY = ("cores", "llcs", "sockets", "nodes")


def check_tools() -> None:
    """Refuse if guests cannot be built here; the hint names all missing packages."""
    missing = [package for program, package in TOOLS.items() if not shutil.which(program)]
    if missing:
        what = " and ".join(program for program in TOOLS if not shutil.which(program))
        raise ArmError(f"guests need {what}", hint=f"apt-get install {' '.join(missing)}")
    programs.find_busybox()


def base(programs_used: Sequence[str]) -> bytes:
    """The part of a guest's file system that all runs share."""
    files = {"bin/busybox": programs.find_busybox(), f"bin/{agent.NAME}": agent.find()}
    files |= programs.libraries(agent.find())
    for name in programs_used:
        if path := installed(name):
            files |= {f"bin/{name}": path, **programs.libraries(path)}
    texts = {"init": (HERE / "guest.sh").read_text(), "schedlab/state": (HERE / "state.sh").read_text()}
    return initramfs.build(files, texts)


def installed(name: str) -> Path | None:
    """A real program, as the agent looks for it: `SCHEDLAB_SCHBENCH=PATH` and the like, or in the path."""
    path = os.environ.get(variable(name)) or shutil.which(name)
    return Path(path) if path and Path(path).is_file() else None


def variable(name: str) -> str:
    """The environment variable that names a program."""
    return f"SCHEDLAB_{name.upper().replace('-', '_')}"


def own(scenario: str, words: Sequence[str], settings: Sequence[tuple[str, str]], cgroup: str) -> bytes:
    """What is different for each run; the kernel unpacks it after the shared part."""
    texts = {
        "schedlab/cgroup": f"{cgroup}\n",
        "schedlab/settings": "".join(f"{file} {value}\n" for file, value in settings),
        "schedlab/command": shlex.join([f"/bin/{agent.NAME}", *words]) + "\n",
    }
    return initramfs.build({f"{WORK}/{name}": path for name, path in scenario_files(Path(scenario))}, texts)


def texts(files: Mapping[str, str]) -> bytes:
    """Files by their content, as a part of the guest's file system."""
    return initramfs.build({}, files)


def scenario_files(scenario: Path) -> Iterator[tuple[str, Path]]:
    """The scenario and every file below its folder that it names, but for the settings of the arm: no kernel image."""
    yield scenario.name, scenario
    home = scenario.parent.resolve()
    document = tomllib.loads(scenario.read_text(encoding="utf-8"))
    for text in _strings({key: value for key, value in document.items() if key != "arm"}):
        path = scenario.parent / text
        plain = "." in text and "\0" not in text and ".." not in path.parts
        if plain and path.is_file() and path.resolve().is_relative_to(home):
            yield text, path


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a guest sent back."""

    files: Mapping[str, bytes]
    state: Mapping[str, str]
    topology: Mapping[str, tuple[str, ...]]
    """The CPU lists that the guest's kernel reports."""

    def text(self, name: str) -> str:
        return self.files.get(name, b"").decode(errors="replace")


def received(raw: Path) -> Sent:
    """Unpack what came through the serial line."""
    try:
        with tarfile.open(fileobj=io.BytesIO(raw.read_bytes()), mode="r:gz") as archive:
            members = [m for m in archive.getmembers() if m.isfile()]
            files = {m.name.removeprefix("./"): _content(archive, m) for m in members}
    except (tarfile.TarError, EOFError, OSError) as e:
        raise RunError(f"the guest's report is incomplete: {e}", hint="this is a bug in schedlab") from None
    lines = files.get("state", b"").decode(errors="replace").split("\n")
    pairs = [plain.escaped(line).partition(" ")[::2] for line in lines if line]
    topology = {key: tuple(dict.fromkeys(v for k, v in pairs if k == key)) for key in TOPOLOGY}
    return Sent(files, {k: v for k, v in pairs if k not in TOPOLOGY}, topology)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return stream.read() if stream else b""
