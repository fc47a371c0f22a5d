"""Selects a kernel image: of a row (the release that it models, or Debian's newest of its series), or of a sublevel."""

from __future__ import annotations

import re

from schedlab.engine import Engine
from schedlab.errors import ArmError, SchedlabError, UnsafeError
from schedlab.guests import debian, identity, kernels
from schedlab.guests.kernels import Kernel


def for_row(engine: Engine, row: str) -> Kernel:
    """An image whose release belongs to `row`, by its name or an alias; downloaded once and kept.

    A sublevel that is no row's name (`6.12.117`) means the image of that sublevel alone.
    """
    named, row = row, engine.row_of(row) or row
    if re.fullmatch(r"\d+\.\d+\.\d+", named) and named != row:
        return _of_sublevel(named, row)
    if kept := _kept(engine, row) or _identified(row):
        return kept
    series = ".".join(row.split(".")[:2])
    trouble: SchedlabError | None = None
    for name in dict.fromkeys((row, series)):
        if not re.match(r"\d", name) or engine.row_of(name) != row:
            continue
        try:
            return kernels.find(name)
        except UnsafeError:
            raise
        except SchedlabError as e:
            trouble = e
    have = sorted({r for r in map(engine.row_of, available()) if r})
    works = f"rows with an image: {', '.join(have)}" if have else "no archive of kernel images is reachable"
    why = f" ({trouble.message})" if trouble else ""
    raise ArmError(f"there is no kernel image of {row}{why}", hint=f"{works}; or image = PATH in [arm.vm]")


def of_file(path: str) -> Kernel:
    """An image that a scenario names."""
    return kernels.image(path)


def available() -> list[str]:
    """Versions of the kernels in the archive and in the cache."""
    try:
        listed = [c.version for c in debian.Apt(debian.cache()).versions()]
    except UnsafeError:
        raise
    except SchedlabError:
        listed = []
    return [*listed, *(package.version for package in debian.cached())]


def row_words(engine: Engine, kernel: Kernel, row: str) -> str | None:
    """What is known of a kernel whose release does not say that it belongs to `row`; None if it does."""
    release = re.search(r" (\d+\.\d+\S*)$", kernel.source)
    if release and engine.row_of(release[1]) == row:
        return None
    known = identity.find(kernel.sha256)
    return known.words() if known else "not identified: schedlab identify says whether the row fits"


def _of_sublevel(sublevel: str, row: str) -> Kernel:
    """The image of one release, from the cache or the archive."""
    same = re.compile(rf"{re.escape(sublevel)}(?!\d)")
    for package in debian.cached():
        if same.match(package.version):
            return _kernel(package)
    try:
        return kernels.find(sublevel)
    except UnsafeError:
        raise
    except SchedlabError as e:
        series = ".".join(sublevel.split(".")[:2])
        have = sorted({v for v in available() if re.match(rf"{re.escape(series)}(?!\d)", v)}, key=_numbers)
        there = f"images of {series}: {', '.join(have)}" if have else f"there is no image of {series}"
        raise ArmError(
            f"there is no kernel image of {sublevel} ({e.message})",
            hint=f"{there}; {row} asks for any image of the row that has the rules of {sublevel}",
        ) from None


def _identified(row: str) -> Kernel | None:
    """One from the cache that `schedlab identify` found to be of that row."""
    for package in debian.cached():
        known = identity.find(package.sha256)
        if known and row in known.rows:
            return _kernel(package)
    return None


def _kept(engine: Engine, row: str) -> Kernel | None:
    """One from the cache: the row's own, else the newest."""
    fits = [package for package in debian.cached() if engine.row_of(package.version) == row]
    if not fits:
        return None
    best = max(fits, key=lambda p: (p.version.startswith(f"{row}-"), _numbers(p.version)))
    return _kernel(best)


def _kernel(package: debian.Package) -> Kernel:
    return Kernel(package.image, package.sha256, f"{package.name} {package.version}")


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)]
