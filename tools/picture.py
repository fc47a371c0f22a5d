"""Draws the pictures of README.md and of the guide to the report, and checks that they show what comes out.

    picture.py check      exit 1 if a picture is not what comes out
    picture.py update     draw them anew; the picture of the page needs chromium

The percentile curve and the page carry a digest of what they show, which is compared instead of pixels: fonts differ
from machine to machine. The timelines are drawn by schedlab itself, so their files are compared, and what
the guide says of them is computed from the same runs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import vl_convert

import schedlab
from picture_of_guests import guest_picture
from schedlab import api, regrouped, render, robust
from schedlab.closer import Closer, closer
from schedlab.compare_variants import compare_variants
from schedlab.comparison import Comparison
from schedlab.engine import native_engine
from schedlab.reasons_of_headline import with_cause
from schedlab.render.answer import sentences
from schedlab.render.charts import Spec, percentile_curve
from schedlab.render.closer import around, first_difference_picture

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs/guides/read-the-report.md"
SCENARIO = "scenarios/eevdf-vs-cfs.toml"
SERIES = "probe.latency"
FOLDER = ROOT / "docs/pictures"
CURVE, TIMELINE, PAGE = FOLDER / "eevdf-vs-cfs.svg", FOLDER / "first-difference.svg", FOLDER / "page.png"
GUESTS = FOLDER / "host-and-guests.svg"
SHOWN = (1280, 720)
"""Width and height of the part of the page that is shown."""
PNG_END = b"\x00\x00\x00\x00IEND"


def main(mode: str) -> int:
    os.chdir(ROOT)  # the page names the file as it was given
    comparison = with_groups_checked(schedlab.compare(SCENARIO))
    look = closer(native_engine(), comparison)
    comparison = with_cause(native_engine(), comparison, look)
    spec = percentile_curve(comparison, SERIES)
    assert spec is not None, f"{SCENARIO} has samples of {SERIES}"
    assert isinstance(look, Closer), look
    timeline, guests = first_difference_picture(look), guest_picture(ROOT)
    says = [crossing(spec), *captions(look), guests.caption]
    if mode == "update":
        CURVE.write_text(drawn(spec), encoding="utf-8")
        TIMELINE.write_text(timeline, encoding="utf-8")
        GUESTS.write_text(guests.svg, encoding="utf-8")
        PAGE.write_bytes(photographed(render.html(comparison, look), digest_of_page(comparison)))
        print("the guide has to say: " + "; ".join(says))
        return 0
    good = {
        CURVE: mark(spec) in _text(CURVE),
        TIMELINE: _text(TIMELINE) == timeline,
        GUESTS: _text(GUESTS) == guests.svg,
        PAGE: PAGE.is_file() and digest_of_page(comparison).encode() in PAGE.read_bytes(),
        GUIDE: all(words in " ".join(_text(GUIDE).split()) for words in says),
    }
    if not good[GUIDE]:
        print("docs/guides/read-the-report.md must say of the pictures: " + "; ".join(says))
    for file in (file for file, same in good.items() if not same and file != GUIDE):
        print(f"{file.relative_to(ROOT)} is not what comes out; run tools/picture.py update")
    print(f"{sum(good.values())} passed, {len(good) - sum(good.values())} failed")
    return 0 if all(good.values()) else 1


def with_groups_checked(comparison: Comparison) -> Comparison:
    """With a few seeds in the other grouping, as `schedlab compare` checks it."""
    scenario = comparison.scenario
    grouping = regrouped.other(scenario)
    seeds = list(comparison.seeds[: regrouped.seeds(scenario, always=False)])
    assert grouping, f"the tasks of {SCENARIO} can be grouped in another way"
    assert seeds, f"{SCENARIO} checks it"
    other = regrouped.regroup(native_engine(), scenario, grouping, {"seeds": seeds})
    found, _ = api.run_all(native_engine(), other)
    checked = robust.robustness(scenario, [], regrouped.regrouped(grouping, compare_variants(found)))
    return dataclasses.replace(comparison, robustness=checked)


def crossing(spec: Spec) -> str:
    """Between which two percentiles of the curve the order of the variants changes for the last time."""
    points: dict[float, list[float]] = {}
    for point in spec["data"]["values"]:
        points.setdefault(point["percentile"], []).append(point["value"])
    ahead = [(at, values[1] < values[0]) for at, values in sorted(points.items()) if len(values) == 2]
    crossings = [pair for pair in pairwise(ahead) if pair[0][1] != pair[1][1]]
    if not crossings:
        return "the curves do not cross"
    below, above = crossings[-1]
    return f"the curves cross between p{below[0]:.3g} and p{above[0]:.3g}"


ACTIONS = {"preempt": "preempts", "keep": "waits"}


def captions(look: Closer) -> list[str]:
    """What the text beside the timeline says, as the timeline and the first difference have it."""
    assert look.divergence is not None
    waiting = dict[str, int]()
    low, high, _ = around(look)
    for timeline in look.timelines.values():
        for lane in timeline.lanes:
            spans = pairwise([(low, 0), *((max(low, at), n) for at, n in lane.depth if at < high), (high, 0)])
            waiting[lane.name] = waiting.get(lane.name, 0) + sum(n * (b - a) for (a, n), (b, _) in spans)
    return [
        f"here with seed {look.seed} where they first differ",
        what_differs(look, look.divergence),
        f"(here on {max(waiting, key=waiting.__getitem__)})",
    ]


def what_differs(look: Closer, divergence: Mapping[str, Any]) -> str:
    """The first difference: of a preemption check what each side decided, else where the task runs next."""
    pid, since = int(divergence["pid"]), int(divergence["time_ns"])
    program = divergence["tasks"][str(pid)].split("/")[-1]
    names = [name.upper() for name in look.timelines]
    if divergence["question"] == "preempt_check" and all(side["decision"] for side in divergence["sides"]):
        answers = [ACTIONS[side["decision"]["action"]] for side in divergence["sides"]]
        both = " and ".join(f"{answer} under {name}" for answer, name in zip(answers, names, strict=True))
        return f"a {program} task that wakes on CPU {divergence['cpu']} {both}"
    if divergence["question"] == "pick" and all(side["decision"] for side in divergence["sides"]):
        picks = [
            divergence["tasks"][str(side["decision"]["pid"])].split("/")[-1] + f" ({side['decision']['pid']})"
            for side in divergence["sides"]
        ]
        both = " and ".join(f"{pick} under {name}" for pick, name in zip(picks, names, strict=True))
        return f"CPU {divergence['cpu']} picks {both}"
    where, new = [], True
    for name, timeline in zip(names, look.timelines.values(), strict=True):
        own = [(s.start, lane.name) for lane in timeline.lanes for s in lane.slices if timeline.tasks[s.task][0] == pid]
        new = new and min(own)[0] >= since
        where.append(f"on {min(one for one in own if one[0] >= since)[1]} under {name}")
    return f"a {'new ' * new}{program} task is placed {' and '.join(where)}"


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def drawn(spec: Spec) -> str:
    """An SVG on a white ground, for pages whose own colours a picture cannot take."""
    config = {**spec["config"], "aria": False, "background": "white"}
    svg = str(vl_convert.vegalite_to_svg({**spec, "config": config})).replace("currentColor", "#222")
    return svg.replace("</svg>", f"{mark(spec)}</svg>") + "\n"


def mark(spec: Spec) -> str:
    """A digest of the numbers that the picture shows, as an element of it."""
    numbers = json.dumps(spec["data"]["values"], sort_keys=True)
    return f"<desc>{hashlib.sha256(numbers.encode()).hexdigest()}</desc>"


def digest_of_page(comparison: Comparison) -> str:
    """Of the sentence and the numbers of the table."""
    text = json.dumps([sentences(comparison), comparison.table()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def photographed(page: str, digest: str) -> bytes:
    """The top of the page as a PNG with the digest in it."""
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit("the picture of the page needs chromium (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        source, shot = Path(folder) / "page.html", Path(folder) / "page.png"
        source.write_text(page, encoding="utf-8")
        size = f"--window-size={SHOWN[0]},{SHOWN[1]}"
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
        place = [f"--user-data-dir={folder}/profile", f"--screenshot={shot}", source.as_uri()]
        subprocess.run([chromium, *words, size, *place], check=True, capture_output=True, timeout=300)
        data = shot.read_bytes()
    chunk = b"tEXtshown\x00" + digest.encode()
    length, check = struct.pack(">I", len(chunk) - 4), struct.pack(">I", zlib.crc32(chunk))
    end = data.rindex(PNG_END)
    return data[:end] + length + chunk + check + data[end:]


if __name__ == "__main__":
    if sys.argv[1:] not in (["check"], ["update"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
