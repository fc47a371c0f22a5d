"""Where the source of a kernel comes from: a tree of the user's own, or a Debian package `linux-source-*`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import ArmError, InputError, RunError, not_written

PACKAGE = re.compile(r"linux-source-\d+\.\d+")
TREE_FILES = ("Makefile", "Kconfig", "kernel/sched/core.c", "kernel/sched/fair.c", "arch/x86/Makefile")
UNUSED = ("drivers", "sound", "fs", "net", "samples", "tools/testing", "tools/perf", "Documentation", "crypto")
"""Directories of a package whose C files are not unpacked: only their Kconfig files are read."""


@dataclass(frozen=True)
class Tree:
    """A kernel's source tree."""

    path: Path
    release: str
    """Such as 6.12.107, from the Makefile."""
    origin: str
    """What the user named: the package with its version, or the path."""


def find(source: str, sources: Path) -> Tree:
    """The tree that `source` names; a package is unpacked below `sources` once.

    Raises:
        InputError: it is neither a tree nor a package of Debian.
    """
    path = Path(source)
    if path.is_dir():
        return _tree(path.resolve(), str(path.resolve()))
    if PACKAGE.fullmatch(source):
        return _package(source, sources)
    if path.exists():
        raise InputError("this is no directory", file=source, hint="give the directory of a kernel's source tree")
    hint = "give the directory of a kernel's source tree, or a Debian package such as linux-source-6.12"
    raise InputError(f"no such tree or package: {source}", hint=hint)


def _tree(path: Path, origin: str) -> Tree:
    missing = [name for name in TREE_FILES if not (path / name).is_file()]
    if missing:
        raise InputError(
            f"this is not the source tree of a kernel: it has no {missing[0]}",
            file=str(path),
            hint="give the directory that contains Makefile, kernel and arch",
        )
    if (path / "include" / "config").is_dir() or (path / ".config").is_file():
        raise InputError(
            "this tree has been configured or built in place, and make builds no other configuration of it",
            file=str(path),
            hint="`make mrproper` cleans it; or give a clean copy: `git worktree add ../clean`",
        )
    return Tree(path, _release(path), origin)


def _release(path: Path) -> str:
    head = (path / "Makefile").read_text(errors="replace")[:2000]
    numbers = [re.search(rf"^{name} = *(\d*)", head, re.M) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(numbers):
        raise InputError("the Makefile states no version", file=str(path / "Makefile"))
    return ".".join(found[1] for found in numbers if found and found[1])


def _package(name: str, sources: Path) -> Tree:
    archive, version = _archive(name, sources)
    target = sources / f"{name}_{version}"
    if not target.is_dir():
        _unpack(archive, name, target)
    return _tree(target, f"{name} {version}")


def _archive(name: str, sources: Path) -> tuple[Path, str]:
    """The archive of an installed package, or of one that apt downloads; and the package's version."""
    installed = Path("/usr/src") / f"{name}.tar.xz"
    if installed.is_file():
        shown = _output(["dpkg-query", "--show", "--showformat=${Version}", name])
        return installed, shown.strip() or "unknown"
    if not shutil.which("apt-get"):
        raise ArmError(f"{name} is not installed, and there is no apt-get", hint="give the directory of a tree")
    kept = sorted(sources.glob(f"{name}_*.deb"))
    if not kept:
        sources.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["apt-get", "download", "--quiet", name], cwd=sources, capture_output=True, text=True, check=False
        )
        kept = sorted(sources.glob(f"{name}_*.deb"))
        if done.returncode or not kept:
            said = (done.stderr.strip().splitlines() or ["nothing was downloaded"])[-1]
            raise ArmError(f"apt-get can't download {name}: {said}", hint=f"as root: apt-get install {name}")
    package = kept[-1]
    unpacked = sources / package.stem
    if not unpacked.is_dir():
        _run(["dpkg-deb", "--extract", str(package), str(unpacked)], f"unpack {package.name}")
    return unpacked / "usr" / "src" / f"{name}.tar.xz", package.stem.split("_")[1]


def _unpack(archive: Path, name: str, target: Path) -> None:
    """Beside the target first, so that an interrupted one is never taken for a tree."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=target.parent))
    except OSError as e:
        raise not_written(f"cannot unpack {name}", e, file=str(target)) from None
    try:
        excluded = [f"--exclude={name}/{folder}/*.c" for folder in UNUSED]
        _run(["tar", "--extract", "--file", str(archive), "--directory", str(part), *excluded], f"unpack {archive}")
        os.replace(part / name, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RunError(f"cannot {what}: {said}")


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
