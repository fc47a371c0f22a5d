"""A table of rt-app files, with what `schedlab` makes of each: it runs, or the reason why it is refused.

`tools/rt_app_table.py NAME=FOLDER...` reads every `.json` file below each folder and prints the rows of the table in
docs/guides/rt-app.md; NAME comes before the file's name. A file runs if a scenario with it loads for a machine of eight
CPUs and its first 200 ms can be simulated.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import schedlab
from schedlab.errors import SchedlabError

SCENARIO = """
name = "table"
machine = "laptop-8"
duration = "200ms"
seeds = 1

[[workload]]
rt-app = "{file}"
name = "app"

[[variant]]
name = "eevdf"
kernel = "6.12.0"
"""


def answer(file: Path, scratch: Path) -> str:
    """`runs`, or why not."""
    path = scratch / "table.toml"
    path.write_text(SCENARIO.format(file=file.resolve()), encoding="utf-8")
    try:
        schedlab.run(schedlab.load(path), "eevdf")
    except SchedlabError as error:
        first = str(error).splitlines()[0]
        return f"refused: {first.replace(str(file.resolve()), file.name)}"
    return "runs"


def main(arguments: list[str]) -> int:
    """Prints the rows; 2 if no folder is given."""
    named = [argument.partition("=") for argument in arguments]
    if not named or not all(folder for _, _, folder in named):
        print("usage: tools/rt_app_table.py NAME=FOLDER...", file=sys.stderr)
        return 2
    print("| file | |\n|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, _, folder in named:
            for file in sorted(Path(folder).rglob("*.json")):
                print(f"| `{name}/{file.relative_to(folder)}` | {answer(file, Path(scratch))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
