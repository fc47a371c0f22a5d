"""Opens a page in a browser without a screen and says how it looks."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

WATCH = """<script>addEventListener("load", () => setTimeout(() => {
  const page = document.documentElement, live = document.querySelectorAll(".vega-embed svg.marks");
  document.title = `${page.scrollWidth - page.clientWidth} ${live.length}`;
}, 1000));</script></body>"""


@dataclass(frozen=True)
class Looked:
    """What a browser made of a page."""

    overflow: int
    """Pixels by which it is wider than the window."""
    drawn: int
    """Pictures that were drawn live."""
    complaints: list[str]
    """What it wrote to the console."""


def look(page: str, width: int, folder: Path) -> Looked:
    """Open the page in a window of this width; skips the test where there is no browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("chromium is not installed")
    # The bundle holds `</body>` in a string: the last one is the page's own.
    before, _, after = page.rpartition("</body>")
    (folder / "page.html").write_text(before + WATCH + after)
    command = [
        chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={folder}/profile", f"--window-size={width},900", "--virtual-time-budget=9000",
        "--dump-dom", f"file://{folder}/page.html",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    title = re.search(r"<title>(\d+) (\d+)</title>", done.stdout)
    assert title, done.stderr[-2000:]
    overflow, drawn = map(int, title.groups())
    return Looked(overflow, drawn, [line for line in done.stderr.splitlines() if "CONSOLE" in line])
