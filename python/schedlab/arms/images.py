"""Decides which image boots for a version row: the one it was read from, or Debian's newest of that series."""

from __future__ import annotations

import re
from pathlib import Path

from schedlab.engine import Engine
from schedlab.errors import ArmError, SchedlabError
from schedlab.guests import debian, kernels
from schedlab.guests.kernels import Kernel


def for_row(engine: Engine, row: str) -> Kernel:
    """An image whose release belongs to `row`, by its name or an alias; downloaded once and kept."""
    row = engine.row_of(row) or row
    if kept := _kept(engine, row):
        return kept
    series = ".".join(row.split(".")[:2])
    trouble: SchedlabError | None = None
    for name in dict.fromkeys((row, series)):
        if not re.match(r"\d", name) or engine.row_of(name) != row:
            continue
        try:
            return kernels.find(name)
        except SchedlabError as e:
            trouble = e
    have = sorted({r for r in map(engine.row_of, available()) if r})
    works = f"rows with an image: {', '.join(have)}" if have else "no archive of images is within reach"
    why = f" ({trouble.message})" if trouble else ""
    raise ArmError(f"there is no kernel image of {row}{why}", hint=f"{works}; or image = PATH in [arm.vm]")


def of_file(path: str) -> Kernel:
    """An image that a scenario names."""
    if not Path(path).is_file():
        raise ArmError("there is no such kernel image", file=path)
    return kernels.find(path)


def available() -> list[str]:
    """Versions of the kernels that can be had, from the archive and the cache."""
    try:
        apt = debian.Apt(debian.cache_directory())
        listed = [c.version for c in apt.versions()]
    except SchedlabError:
        listed = []
    return [*listed, *(version for _, version, _ in cached())]


def cached() -> list[tuple[str, str, Path]]:
    """Name, version and image of every kernel in the cache."""
    found = []
    for folder in sorted(debian.cache_directory().glob("linux-*_*")):
        image = next((i for pattern in debian.IMAGES for i in sorted(folder.glob(pattern))), None)
        if image is not None and ".part" not in folder.name:
            name, _, version = folder.name.partition("_")
            found.append((name, version, image))
    return found


def _kept(engine: Engine, row: str) -> Kernel | None:
    """One from the cache: the row's own, else the newest."""
    fits = [(version.startswith(f"{row}-"), name, version, image) for name, version, image in cached()]
    fits = [found for found in fits if engine.row_of(found[2]) == row]
    if not fits:
        return None
    _, name, version, image = max(fits, key=lambda f: (f[0], _numbers(f[2])))
    return Kernel(image, kernels.digest(image), f"{name} {version}")


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)]
