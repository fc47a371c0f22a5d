"""Kernels from Debian's archive: looked up and downloaded with apt, unpacked into a cache, never installed.

apt gets its own list of sources, lists and cache below the cache directory; the system's stay as they are. The archive
is the one that the system itself uses. A cache that another user can write is refused: its images are booted, and apt
acts on its lists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import ArmError, InputError, RunError, not_written
from schedlab.guests import digests
from schedlab.private import Directory

SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid")
METAPACKAGE = "linux-image-cloud-amd64"
TOOLS = ("apt-get", "apt-cache", "dpkg")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LISTS_AGE_S = 14 * 24 * 3600
IMAGES = ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz", "lib/modules/*/vmlinuz")


@dataclass(frozen=True, slots=True)
class Package:
    """An unpacked kernel."""

    name: str
    version: str
    image: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version of a package that the archive has."""

    package: str
    version: str
    suite: str


def kernel(name: str) -> Package:
    """The newest kernel that matches `6.1`, `6.12.107`, `trixie`, or the name of a package."""
    apt = Apt(cache())
    candidate = apt.best(name)
    return apt.unpacked(*apt.image_package(candidate))


def cache_directory() -> Path:
    """The cache of downloaded kernels."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "schedlab" / "kernels"


def cache() -> Path:
    """The cache directory, which only this user can write."""
    path = cache_directory()
    try:
        with Directory.open(path, create=True):
            return path
    except OSError as e:
        raise not_written(f"cannot keep kernels in {path}", e) from None


def cached() -> list[Package]:
    """Every kernel that is in the cache."""
    if not cache_directory().is_dir():
        return []
    found = []
    for folder in sorted(cache().glob("linux-*_*")):
        image = image_of(folder)
        if image is not None and ".part" not in folder.name:
            name, _, version = folder.name.partition("_")
            found.append(Package(name, version, image, digests.recorded(folder, image)))
    return found


def image_of(folder: Path) -> Path | None:
    """The kernel image of an unpacked package."""
    return next((image for pattern in IMAGES for image in sorted(folder.glob(pattern))), None)


class Apt:
    """apt with a state of its own."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._state = cache / "apt"
        self._sources = self._state / "sources.list"
        missing = [tool for tool in TOOLS if not shutil.which(tool)]
        if missing:
            raise ArmError(f"{missing[0]} is not installed: Debian's kernels come from apt", hint="name a kernel image")

    def best(self, name: str) -> Candidate:
        """The newest version that matches; the package lists are fetched if they are old or do not have it."""
        fresh = self._lists_are_fresh()
        if not fresh:
            self._update()
        found = choose(name, self._candidates(name))
        if found is None and fresh:
            self._update()
            found = choose(name, self._candidates(name))
        if found is not None:
            return found
        have = sorted({c.version for c in self._candidates(METAPACKAGE)})
        hint = f"the archive has {', '.join(have)}" if have else "check that the archive is reachable"
        raise InputError(f"there is no kernel `{name}`: no image file, and nothing in Debian's archive", hint=hint)

    def versions(self) -> list[Candidate]:
        """The versions in the current lists."""
        if not self._lists_are_fresh():
            self._update()
        return self._candidates(METAPACKAGE)

    def image_package(self, candidate: Candidate) -> tuple[str, str]:
        """Name and version of the package that holds the image: dependencies are followed to it."""
        name, version = candidate.package, candidate.version
        for _ in range(4):
            following = next_package(name, self._run("apt-cache", "show", f"{name}={version}"))
            if following is None:
                break
            name, version = following
        return name, version

    def unpacked(self, name: str, version: str) -> Package:
        """Download and unpack once."""
        folder = self._cache / f"{name}_{version}"
        if not folder.is_dir():
            self._fetch(name, version, folder)
        image = image_of(folder)
        if image is None:
            raise RunError(f"there is no kernel image in {name} {version}")
        return Package(name, version, image, digests.recorded(folder, image))

    def _fetch(self, name: str, version: str, folder: Path) -> None:
        part = folder.with_name(folder.name + f".part{os.getpid()}")
        try:
            part.mkdir(parents=True)
            self._run("apt-get", "download", f"{name}={version}", cwd=part)
            for archive in part.glob("*.deb"):
                self._run("dpkg", "-x", archive.name, ".", cwd=part, plain=True)
                archive.unlink()
            part.rename(folder)
        except OSError as e:
            raise not_written(f"cannot keep the kernel in {folder}", e) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _candidates(self, name: str) -> list[Candidate]:
        found = self._madison(name if name.startswith("linux-") else METAPACKAGE)
        if choose(name, found) is None and re.match(r"\d+\.\d+", name):
            found += self._superseded(name)
        return found

    def _superseded(self, version: str) -> list[Candidate]:
        """Images older than that of the metapackage, which the backports suites keep under their own names."""
        named = self._run("apt-cache", "pkgnames", f"linux-image-{version}").split()
        images = [name for name in named if is_image(name, version)]
        return sorted(self._madison(*images), key=_numbers, reverse=True) if images else []

    def _madison(self, *packages: str) -> list[Candidate]:
        return parse_madison(self._run("apt-cache", "madison", *packages))

    def _lists_are_fresh(self) -> bool:
        stamp = self._state / "updated"
        return stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_AGE_S

    def _update(self) -> None:
        """Fetch package lists. A suite that no longer exists is not an error; the kernel may be in another."""
        signed = f" [signed-by={KEYRING}]" if KEYRING.exists() else ""
        lines = [f"deb{signed} {uri} {suite} main\n" for uri, suite in sources(archive_uris())]
        try:
            for folder in ("lists/partial", "archives/partial"):
                (self._state / folder).mkdir(parents=True, exist_ok=True)
            self._sources.write_text("".join(lines))
            self._run("apt-get", "update", failing=True)
            (self._state / "updated").touch()
        except OSError as e:
            raise not_written(f"cannot keep package lists in {self._state}", e) from None

    def _run(self, tool: str, *words: str, cwd: Path | None = None, plain: bool = False, failing: bool = False) -> str:
        options = {
            "Dir::Etc::sourcelist": self._sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self._state / "lists",
            "Dir::Cache": self._state,
            # Container images switch this cache off, and apt would read all lists again at every call.
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "APT::Sandbox::User": "",
        }
        ours = [] if plain else [f"-o{key}={value}" for key, value in options.items()]
        done = subprocess.run(
            [tool, *ours, *words], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
        if done.returncode and not failing:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise RunError(f"{tool} {words[0]} failed: {said[-1] if said else 'no message'}")
        return done.stdout


def archive_uris() -> list[str]:
    """The Debian archives that the system's own sources name."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    uris = list(dict.fromkeys(done.stdout.split()))
    if not uris:
        raise ArmError(
            "apt has no Debian archive: its lists are empty, or its sources name none",
            hint="apt-get update; or name a kernel image",
        )
    return uris


def sources(uris: Sequence[str]) -> list[tuple[str, str]]:
    """Every suite with the archive it is in; security updates are in an archive of their own."""
    plain = [uri for uri in uris if "security" not in uri]
    security = [uri for uri in uris if "security" in uri]
    rows = [(uri, suite) for uri in plain[:1] for suite in SUITES]
    stable = [suite for suite in SUITES if suite != "sid" and not suite.endswith("-backports")]
    return rows + [(uri, f"{suite}-security") for uri in security[:1] for suite in stable]


def parse_madison(text: str) -> list[Candidate]:
    """`package | version | uri suite/component arch Packages`, newest first."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 3 and cells[2].endswith(" Packages"):
            suite = cells[2].split()[1].partition("/")[0]
            found.append(Candidate(cells[0], cells[1], suite))
    return found


def choose(name: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The newest that fits: by package, by suite (with its security updates), or by the beginning of its version."""
    for c in candidates:
        by_suite = c.suite in (name, f"{name}-security")
        by_version = re.match(rf"{re.escape(name)}(?![0-9])", c.version) is not None
        if c.package == name or by_suite or by_version:
            return c
    return None


def is_image(package: str, version: str) -> bool:
    """Whether a package is a cloud image of that version (`linux-image-7.0.13+deb13-cloud-amd64` of `7.0`)."""
    return re.fullmatch(rf"linux-image-{re.escape(version)}(?![0-9])\S*-cloud-amd64", package) is not None


def _numbers(candidate: Candidate) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", candidate.version)]


def next_package(name: str, shown: str) -> tuple[str, str] | None:
    """The package of the same kernel that `name` depends on for its image; None if it has the image itself."""
    depends = next((line[9:] for line in shown.splitlines() if line.startswith("Depends: ")), "")
    # A metapackage depends on the image of a version; since 7.0 that depends on a package with the binary.
    for following in re.finditer(r"(linux-(?:image|binary)-[0-9][^ ,]*) \(= ([^)]+)\)", depends):
        if following[1] != name:
            return following[1], following[2]
    return None
