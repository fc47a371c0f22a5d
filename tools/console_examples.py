"""Runs the console examples of Markdown files and compares what they show with what comes out.

    console_examples.py check FILE...     exit 1 if an example is not true
    console_examples.py update FILE...    write what comes out into the file

An example is a block marked `console`: lines that start with `$ ` are commands, the lines below each are its standard
output. A block in which no command shows any output proves nothing and is refused: mark it `text`, or say why it is not
run. `...` stands for anything within a line, and on a line of its own for any number of lines. A block after the
comment `<!-- not run: WHY -->` counts as skipped. Commands run in the project's folder, with .venv/bin in the path.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:<!-- not run: (?P<why>[^>]*?) -->\n)?```console\n(?P<body>.*?)^```$", re.M | re.S)
LIMIT_S = 1200


@dataclass(frozen=True)
class Example:
    """One command of a block and the output that the page shows for it."""

    command: str
    expected: str

    def matches(self, actual: str) -> bool:
        pattern = "".join(
            r"(?:.*\n)*?" if line == "...\n" else r"[^\n]*".join(map(re.escape, line.split("...")))
            for line in self.expected.splitlines(keepends=True)
        )
        return re.fullmatch(pattern, actual) is not None


def main(mode: str, files: list[str]) -> int:
    passed = failed = skipped = 0
    for name in files:
        text = (ROOT / name).read_text(encoding="utf-8")
        for block in list(BLOCK.finditer(text)):
            if block["why"]:
                skipped += 1
                print(f"skipped: {name}: {block['body'].splitlines()[0]}: {block['why']}")
                continue
            if mode == "check" and not any(example.expected.strip() for example in examples(block["body"])):
                failed += 1
                first = (block["body"].splitlines() or ["an empty block"])[0]
                print(f"{name}: {first}: the example shows no output; mark it `text` or show some")
                continue
            body = ""
            for example in examples(block["body"]):
                actual = output_of(example.command)
                good = example.matches(actual)
                passed, failed = passed + good, failed + (not good)
                body += f"$ {example.command}\n{example.expected if good else actual}"
                if not good:
                    print(difference(name, example, actual))
            if mode == "update":
                text = text.replace(block["body"], body)
        if mode == "update":
            (ROOT / name).write_text(text, encoding="utf-8")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed and mode == "check" else 0


def examples(body: str) -> Iterator[Example]:
    """The commands of a block, each with the lines up to the next."""
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield Example(command, expected)


def output_of(command: str) -> str:
    """Standard output, and the exit code where it is not 0."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "MAKEFLAGS": "", "MAKELEVEL": ""}
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    if done.returncode:
        print(done.stderr.rstrip())
        return f"{done.stdout}exit code {done.returncode}\n"
    return done.stdout


def difference(name: str, example: Example, actual: str) -> str:
    lines = difflib.unified_diff(
        example.expected.splitlines(), actual.splitlines(), f"{name}: $ {example.command}", "what came out", lineterm=""
    )
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("check", "update"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
