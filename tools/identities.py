"""Prints which row each kernel image was identified as, as a Markdown table, worst first.

`identities.py FOLDER [IMAGE...]`: the images named, or all of IMAGES. The traces of the loads of `schedlab identify`
are kept in FOLDER, and those missing are recorded (QEMU, the archive, some minutes for each). `RELEASE=FILE` names the
image of a kernel that the archive does not have.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from corpus import images
from schedlab.cli.identify import LIMIT_S, best_first, fit
from schedlab.engine import native_engine
from schedlab.errors import SchedlabError
from schedlab.native.replayed import Report
from schedlab.record import Order, identifying, record
from schedlab.render.identity import agreement, best_of, departure

IMAGES = (
    *("5.10.223", "5.10.262", "6.1.176", "6.1.192", "6.12.43", "6.12.117", "6.16.3", "6.16.12", "6.17.8", "6.17.13"),
    *(
        "6.18.5",
        "6.18.12",
        "6.18.15",
        "6.19.6",
        "6.19.14",
        "7.0.4",
        "7.0.13",
        "7.1.3",
        "7.1.13",
        "7.2.6",
        "7.2.13",
        "7.3.4",
    ),
)
"""First and last of each series in the archive, and those that a row was read from."""
HEAD = (
    "| kernel | row by its release | fits best | agreement of that row | where the next row diverges |",
    "|---|---|---|---|---|",
)


def main(folder: Path, named: Sequence[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    rows, failed = [], 0
    for release, image in images(named or IMAGES).items():
        trace = folder / f"{release}.ftrace.gz"
        try:
            if not trace.exists():
                order = Order(image, (identifying.load(),), trace, records=identifying.RECORDS, time_limit_s=LIMIT_S)
                record(order, native_engine())
            rows.append(row(release, trace))
        except SchedlabError as e:
            failed += 1
            print(f"{release}: {e.message}", file=sys.stderr)
    print("\n".join([*HEAD, *(text for _, text in sorted(rows))]))
    return 1 if failed else 0


def row(release: str, trace: Path) -> tuple[tuple[float, ...], str]:
    """Sorted by decisions and state of the row that fits best."""
    engine = native_engine()
    reports = engine.replay(str(trace), matrix=True, first=1)
    ranked = best_first(reports)
    best = best_of(ranked)
    others = [r for r in ranked if r not in best]
    own = engine.row_of(release) or "none"
    cells = [release, own, ", ".join(r["row"] for r in best), agreement(best[0]), following(others)]
    state = best[0]["state"]["events"]
    shown = state["agreed"] / state["decisions"] if state["decisions"] else 1.0
    return (fit(best[0])[0], shown, *map(int, re.findall(r"\d+", release))), f"| {' | '.join(cells)} |"


def following(others: list[Report]) -> str:
    return departure(others[0]).replace("|", "/") if others else "every row fits equally well"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
