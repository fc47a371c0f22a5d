"""Runs the shipped sweeps and redraws the pictures and the answers of docs/guides/sweeps.md from them.

    sweep_pictures.py [--short] [--out DIR] [NAME...]

All sweeps take about 20 minutes of CPU time, half of it server-hackbench. The runs stay in DIR (out/sweeps), so an
interrupted command continues. --short does the short forms and writes their pictures to DIR instead of the guide.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import vl_convert

import schedlab
from schedlab.render.charts import Spec
from schedlab.render.sweep import flip_rows, sentences
from schedlab.render.sweep_charts import charts
from schedlab.swept import Swept

ROOT = Path(__file__).parents[1]
GUIDE, FOLDER = ROOT / "docs/guides/sweeps.md", ROOT / "docs/pictures"
PICTURES = {
    "server-schbench": {"map-app.latency.p99-eevdf": "sweep-map", "response-app.latency.p99-eevdf": "sweep-response"},
    "server-hackbench": {"map-load.time-eevdf": "sweep-hackbench"},
    "idle-search": {"growth-sched.scan_tested-cores per LLC": "sweep-growth"},
    "over-commit": {"map-app.latency.p99-informed": "sweep-over-commit"},
    "base-slice": {},
}
"""The pictures of each sweep: the chart, and the file that the guide shows."""
ABOVE = ("sweep-map", "sweep-response", "sweep-growth")
"""The guide shows these at its beginning, the others with the answer."""
BEGIN, END = "<!-- answers of {} -->\n", "<!-- end of answers -->\n"
SHOWN_FLIPS = 6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "out/sweeps")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PICTURES]
    if unknown:
        parser.error(f"there is no sweep {unknown[0]}")
    for name in options.names or PICTURES:
        began = time.monotonic()
        folder = options.out / (name + "-short" * options.short)
        swept = schedlab.sweep(ROOT / "sweeps" / f"{name}.toml", short=options.short, out=folder)
        missing = written(name, swept, folder if options.short else FOLDER)
        print(f"{name}: {time.monotonic() - began:.0f} s\n{answers(name, swept)}")
        if not options.short:
            if missing or swept.document["failures"]:
                sys.exit(f"{name}: failed runs, or no chart for {', '.join(missing)}; the guide stays as it was")
            GUIDE.write_text(
                with_answers(GUIDE.read_text(encoding="utf-8"), name, answers(name, swept)), encoding="utf-8"
            )
    return 0


def written(name: str, swept: Swept, folder: Path) -> list[str]:
    """Writes the pictures; those that the sweep does not have, as a short form without intervals."""
    found: dict[str, Spec] = charts(swept.judged)
    for chart, file in PICTURES[name].items():
        if chart in found:
            (folder / f"{file}.svg").write_text(drawn(found[chart]), encoding="utf-8")
    return [chart for chart in PICTURES[name] if chart not in found]


def drawn(spec: Spec) -> str:
    """An SVG on a white ground, for pages whose own colours a picture cannot take."""
    plain = {**spec, "config": {**spec["config"], "aria": False}, "background": "white"}
    return str(vl_convert.vegalite_to_svg(plain)).replace("currentColor", "#222") + "\n"


def answers(name: str, swept: Swept) -> str:
    """What the guide says of a sweep: its sentences, where the verdict flips, and its pictures."""
    lines = [" ".join(text.split()) for text in sentences(swept.judged)]
    for row in flip_rows(swept.judged)[1 : 1 + SHOWN_FLIPS]:
        metric, along, where, before, after = row
        at = "" if where == "-" else f" ({where})"
        lines.append(f"- {metric}{at} flips along {along} from {before} to {after}.")
    paragraphs = [line for line in lines if not line.startswith("- ")]
    listed = [line for line in lines if line.startswith("- ")]
    pictures = [
        f"![{swept.name}: {chart.partition('-')[2]}, simulated](../pictures/{file}.svg)"
        for chart, file in PICTURES[name].items()
        if file not in ABOVE
    ]
    return "\n\n".join([*paragraphs, *(["\n".join(listed)] if listed else []), *pictures]) + "\n"


def with_answers(page: str, name: str, text: str) -> str:
    """The page with the answers of a sweep between its marks."""
    begin = BEGIN.format(name)
    if begin not in page:
        sys.exit(f"{GUIDE} has no place for the answers of {name}")
    return re.sub(re.escape(begin) + ".*?" + re.escape(END), lambda _: begin + text + END, page, flags=re.S)


if __name__ == "__main__":
    sys.exit(main())
