"""Draws the picture of README.md from a comparison, and checks that it still shows what comes out.

    picture.py check      exit 1 if the picture is not what comes out
    picture.py update     draw it anew

The picture is a percentile curve per variant: the median over seeds, the range over seeds behind it. Its numbers are
compared, not its bytes: fonts differ from machine to machine.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import vl_convert

import schedlab
from schedlab.render.charts import Spec, percentile_curve

ROOT = Path(__file__).parents[1]
SCENARIO = "scenarios/eevdf-vs-cfs.toml"
SERIES = "probe.latency"
PICTURE = ROOT / "docs/pictures/eevdf-vs-cfs.svg"


def main(mode: str) -> int:
    spec = percentile_curve(schedlab.compare(ROOT / SCENARIO), SERIES)
    assert spec is not None, f"{SCENARIO} has samples of {SERIES}"
    if mode == "update":
        PICTURE.write_text(drawn(spec), encoding="utf-8")
        return 0
    good = PICTURE.is_file() and mark(spec) in PICTURE.read_text(encoding="utf-8")
    if not good:
        print(f"{PICTURE.relative_to(ROOT)} is not what comes out; run tools/picture.py update")
    print(f"{good:d} passed, {not good:d} failed")
    return 0 if good else 1


def drawn(spec: Spec) -> str:
    """An SVG on a white ground, for pages whose own colours a picture cannot take."""
    config = {**spec["config"], "aria": False, "background": "white"}
    svg = str(vl_convert.vegalite_to_svg({**spec, "config": config})).replace("currentColor", "#222")
    return svg.replace("</svg>", f"{mark(spec)}</svg>") + "\n"


def mark(spec: Spec) -> str:
    """A digest of the numbers that the picture shows, as an element of it."""
    numbers = json.dumps(spec["data"]["values"], sort_keys=True)
    return f"<desc>{hashlib.sha256(numbers.encode()).hexdigest()}</desc>"


if __name__ == "__main__":
    if sys.argv[1:] not in (["check"], ["update"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
