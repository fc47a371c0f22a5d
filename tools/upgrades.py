"""Writes the pages about what changes with an upgrade of a distribution: `upgrades.py update`, or `check`."""

from __future__ import annotations

import sys
from pathlib import Path

from schedlab import upgrades
from schedlab.engine import native_engine
from schedlab.render import changelog

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/upgrades"
SCENARIOS = Path("scenarios")


def main(mode: str) -> int:
    """Exit code 1 if a page is not what the command prints."""
    wrong = [step.name for step in upgrades.STEPS if page_of(step) != _kept(step)]
    if mode == "update":
        PAGES.mkdir(exist_ok=True)
        for step in upgrades.STEPS:
            (PAGES / f"{step.name}.md").write_text(page_of(step), encoding="utf-8")
        return 0
    for name in wrong:
        print(f"docs/upgrades/{name}.md is not what comes out; run tools/upgrades.py update")
    return 1 if wrong else 0


def page_of(step: upgrades.Step) -> str:
    """The page: what the distributions have, what is listed, and the list as the command prints it."""
    found = upgrades.changes(native_engine(), step.before, step.after, ROOT / SCENARIOS)
    command = f"schedlab changelog {step.before} {step.after} --markdown"
    about = (
        f"# {step.title}\n\n{step.about} This page lists what changed between the two in the scheduler, as far as "
        f"[the models](../models/fair.md) contain it, with the release and the commit; a backport has the number of "
        f"its mainline commit. Distributions add patches and settings of their own, which are not listed.\n\n"
        f"Made by `{command}`.\n\n"
    )
    return about + changelog.markdown(found).replace(f"`{ROOT}/", "`")


def _kept(step: upgrades.Step) -> str:
    path = PAGES / f"{step.name}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    if sys.argv[1:] not in (["check"], ["update"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
