"""Installs the Debian packages that tests use where it may, and lists the missing ones where it may not.

Tests that lack one say so and are counted as skipped. Only those of rt-app's files fail, unless SCHEDLAB_WITHOUT=rt-app
leaves them out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Need:
    """A package, a file that proves it is there, and what is not tested without it."""

    package: str
    proof: str
    why: str
    uses: str = "test"


NEEDS = [
    Need(
        "rt-app", "/usr/share/doc/rt-app/examples", "that every rt-app example file is read or refused as it should be"
    ),
    Need("busybox-static", "/usr/share/doc/busybox-static", "that the guest of `schedlab record` has what it needs"),
    Need("qemu-system-x86", "/usr/bin/qemu-system-x86_64", "that QEMU takes our command line and boots a kernel"),
    Need(
        "linux-perf",
        "/usr/bin/perf",
        "that perf reads our perf.data, and how much faster the simulated perf pipe is than the real one",
        "test bench",
    ),
    Need("valgrind", "/usr/bin/valgrind", "whether a change makes the engine execute more instructions", "test bench"),
    Need("rt-tests", "/usr/bin/hackbench", "that the real hackbench and cyclictest run on the arms with real kernels"),
    Need("stress-ng", "/usr/bin/stress-ng", "that the real stressors run on the arms with real kernels"),
    Need("sysbench", "/usr/bin/sysbench", "that the real sysbench runs on the arms with real kernels"),
    Need("trace-cmd", "/usr/bin/trace-cmd", "that trace-cmd reads our trace.dat"),
    Need("chromium", "/usr/bin/chromium", "that a browser lays out the page at three widths without complaint"),
    Need("chromium-driver", "/usr/bin/chromedriver", "the same: it is what the tests drive the browser with"),
    Need("nodejs", "/usr/bin/node", "that the script of the page runs, and that Perfetto reads our traces"),
]


def main(use: str) -> int:
    needs = [need for need in NEEDS if use in need.uses.split()]
    missing = [need for need in needs if not Path(need.proof).exists()]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        install([need.package for need in missing])
        missing = [need for need in missing if not Path(need.proof).exists()]
    for need in missing:
        print(f"missing: {need.package} (apt-get install {need.package}); without it it is not tested {need.why}")
    return 0


def install(packages: list[str]) -> None:
    """With one refresh of the package lists if the first try finds nothing; a failure shows as what stays missing."""
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print(f"installing {' '.join(packages)}", file=sys.stderr)
    for attempt in (command, ["apt-get", "update"], command):
        done = subprocess.run(attempt, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if attempt is command and done.returncode == 0:
            return
    print(done.stderr.strip(), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["test"]))
