"""A browser without a screen: opens pages, scrolls through them, and says what is wrong with how they look."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

WIDTHS = [400, 1280, 1920]
HEIGHT = 900
CHARTS_MS = 20_000

SCROLL = """
const done = arguments[arguments.length - 1];
const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
(async () => {
  document.querySelectorAll('details').forEach((one) => { one.open = true; });
  const until = performance.now() + LIMIT;
  const charts = () => document.querySelectorAll('script[data-chart]').length;
  const live = () => document.querySelectorAll('.vega-embed svg.marks').length;
  for (let y = 0; y < document.documentElement.scrollHeight; y += 700) { window.scrollTo(0, y); await frame(); }
  while (live() < charts() && performance.now() < until) await pause(50);
  window.scrollTo(0, 0);
  done([charts(), live()]);
})();
""".replace("LIMIT", str(CHARTS_MS))

OVERFLOW = "const page = document.documentElement; return page.scrollWidth - page.clientWidth;"

CLIPPED = """
const found = [];
const name = (node) => node.textContent.trim().slice(0, 40);
for (const region of document.querySelectorAll('.scroll')) {
  if (innerWidth > 1000 && region.scrollWidth > region.clientWidth + 1) found.push('table: ' + region.ariaLabel);
}
for (const svg of document.querySelectorAll('.vega-embed svg.marks')) {
  const box = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll('text')) {
    const own = text.getBoundingClientRect();
    if (!own.width || getComputedStyle(text).opacity === '0') continue;
    if (own.left < box.left - 2 || own.right > box.right + 2) found.push('label: ' + name(text));
  }
}
return found;
"""

OVERLAPPING = """
const found = [];
for (const svg of document.querySelectorAll('.vega-embed svg.marks, svg.timeline')) {
  const texts = [...svg.querySelectorAll('text')].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width && text.getAttribute('opacity') !== '0' && text.textContent.trim();
  }).map((text) => [text.textContent, text.getBoundingClientRect()]);
  for (let i = 0; i < texts.length; i += 1) {
    for (let j = i + 1; j < texts.length; j += 1) {
      const [a, b] = [texts[i][1], texts[j][1]];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 2 && down > 4) found.push(texts[i][0] + ' / ' + texts[j][0]);
    }
  }
}
return found;
"""

AUDIT = (
    "const done = arguments[arguments.length - 1]; axe.run(document, OPTIONS).then((found) => done(found.violations));"
)
RULES = "{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'], resultTypes: ['violations'] }"


@dataclass(frozen=True)
class Looked:
    """What a browser made of a page."""

    overflow: int
    """Pixels by which it is wider than the window."""
    charts: int
    drawn: int
    """Charts, and those that were drawn live."""
    clipped: list[str]
    """Columns and labels of which a part cannot be seen."""
    overlapping: list[str]
    """Labels of charts that cover each other."""
    complaints: list[str]
    """What was written to the console."""

    def check(self) -> None:
        """Nothing is wrong."""
        assert self.complaints == []
        assert self.overflow == 0, "the page scrolls sideways"
        assert self.drawn == self.charts, "not every chart is live"
        assert self.clipped == []
        assert self.overlapping == []


class Browser:
    """One Chromium for all tests of a session."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self._folder = driver, folder

    def open(self, page: str, width: int, *, dark: bool = False, scripts: bool = True) -> None:
        """Show a page in a window of this width."""
        file = self._folder / "page.html"
        file.write_text(page, encoding="utf-8")
        self.visit(file.as_uri(), width, dark=dark, scripts=scripts)

    def visit(self, url: str, width: int, *, dark: bool = False, scripts: bool = True) -> None:
        """Show what is behind a URL."""
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.driver.get(url)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def look(self, page: str, width: int, *, dark: bool = False) -> Looked:
        """Open a page, unfold everything, scroll through it and measure it."""
        self.open(page, width, dark=dark)
        charts, drawn = self.driver.execute_async_script(SCROLL)
        return Looked(self.run(OVERFLOW), charts, drawn, self.run(CLIPPED), self.run(OVERLAPPING), self.complaints())

    def complaints(self) -> list[str]:
        """Errors and warnings since the last call."""
        levels = ("SEVERE", "WARNING")
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in levels]

    def audit(self) -> list[str]:
        """What axe finds wrong with the page that is open, one line per rule with the first element."""
        import axe_core_python

        self.run((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(AUDIT.replace("OPTIONS", RULES))
        return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}" for one in found]


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser; skips the test where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip(f"{'chromedriver' if chromium else 'chromium'} is not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    try:
        running.set_script_timeout(60)
        running.set_page_load_timeout(60)
        yield Browser(running, folder)
    finally:
        running.quit()
