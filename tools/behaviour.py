"""Records what the simulator and the replay do, or compares it with an earlier recording.

`behaviour.py record FILE` writes one line per fact: the trace digest of every variant of every shipped scenario, the
digests of 2,000 random runs, and the replay's agreement with every trace of the corpus. `behaviour.py check FILE`
computes the same facts and prints each line that differs; it exits with 1 if there is one. A refactoring must leave
every line as it was; any other change lists the lines it means to change.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SWARM_RUNS = 2000
ROWS = ["5.2", "5.7", "5.13", "6.1", "6.3", "eevdf-rfc", "6.6", "6.12.0", "6.12.107", "6.18.2", "6.18.44", "7.2"]
"""The rows that random runs draw from; a new row is not added, because that would change what every seed draws."""
SCENARIOS = ("*.toml", "bugs/*.toml", "validation/*.toml")


def main(arguments: list[str]) -> int:
    match arguments:
        case ["record", file]:
            Path(file).write_text("".join(f"{line}\n" for line in facts()))
            return 0
        case ["check", file]:
            before, now = Path(file).read_text().splitlines(), list(facts())
            changed = list(difflib.unified_diff(before, now, file, "now", lineterm="", n=0))
            print("\n".join(changed) or f"all {len(now)} facts are as recorded")
            return 1 if changed else 0
    print(__doc__)
    return 2


def facts() -> Iterator[str]:
    """Scenarios, random runs and the replay table, one line each."""
    paths = sorted(str(path.relative_to(ROOT)) for glob in SCENARIOS for path in (ROOT / "scenarios").glob(glob))
    for line in example("schedlab-lab", "digests", "1", *paths):
        yield f"scenario {line}"
    for line in example("schedlab-sim", "swarm_digests", str(SWARM_RUNS), *ROWS):
        yield f"swarm {line}"
    for line in run([sys.executable, "tools/agreement.py"]):
        yield f"replay {line}"


def example(crate: str, name: str, *arguments: str) -> list[str]:
    return run(["cargo", "run", "--release", "--quiet", "-p", crate, "--example", name, "--", *arguments])


def run(command: list[str]) -> list[str]:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
