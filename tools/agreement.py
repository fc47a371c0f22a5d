"""Prints how often the version rows decide the corpus as its kernels did, as a Markdown table, worst first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from schedlab.engine import Engine, native_engine
from schedlab.errors import SchedlabError

CORPUS = Path(__file__).resolve().parents[1] / "crates/schedlab-replay/corpus"
PLACEMENTS = (
    "| trace | row | wakeups | wakeups that leave prev | forks and execs | not judged | baseline: previous CPU |"
)
BALANCES = (
    "| trace | row | same source and tasks | same source | newidle | idle | busy | quiet | not judged "
    "| baseline: one task from the busiest CPU |"
)
ROWS = (
    "| row | contested picks, one CPU | preemptions | state "
    "| contested picks, several CPUs | preemptions | state | recordings |"
)
HEAD = "| trace | row | contested picks | preemptions | unjudged | state equal to the ns |"


def main(arguments: list[str]) -> int:
    """`--placements` prints the CPUs selected and `--balances` the passes, as docs/models/placement.md shows them;
    `--rows` prints one line for each row over all of its traces."""
    engine = native_engine()
    paths = [word for word in arguments if not word.startswith("--")]
    traces = [Path(path) for path in paths] or sorted(CORPUS.glob("*.ftrace.gz"))
    if "--placements" in arguments:
        found = sorted(filter(None, (placements(path, engine) for path in traces)))
        print("\n".join([PLACEMENTS, "|---|---|---|---|---|---|---|", *(text for _, text in found)]))
        return 0
    if "--balances" in arguments:
        found = sorted(filter(None, (balances(path, engine) for path in traces)))
        print("\n".join([BALANCES, "|---" * 10 + "|", *(text for _, text in found)]))
        return 0
    if "--rows" in arguments:
        print("\n".join([ROWS, "|---" * 8 + "|", *by_row(traces, engine)]))
        return 0
    rows = sorted(row(path, engine) for path in traces)
    print("\n".join([HEAD, "|---|---|---|---|---|---|", *(text for _, text in rows)]))
    return 0


def by_row(traces: list[Path], engine: Engine) -> list[str]:
    """Each row over all traces of its kernels, the worst of its shares first; unexplained decisions do not agree."""
    sums: dict[str, dict[bool, list[list[int]]]] = {v["id"]: {} for v in engine.listing("kernels")}
    for path in traces:
        (r,) = engine.replay(str(path), first=0)
        several = r["trace"]["cpus"] > 1
        parts = sums[r["row"]].setdefault(several, [[0, 0], [0, 0], [0, 0], [0, 0]])
        steps, shown = r["vruntime"], r["state"]["events"]
        pairs = [
            (r[side]["agreed"], r[side]["decisions"] + r["unexplained"][side]) for side in ("picks", "preemptions")
        ]
        pairs += [(shown["agreed"] + steps["equal"], shown["decisions"] + steps["compared"]), (1, 1)]
        for total, (agreed, decisions) in zip(parts, pairs, strict=True):
            total[0] += agreed
            total[1] += decisions
    lines = []
    for name, kinds in sums.items():
        found = [kinds.get(several, [[0, 0]] * 4) for several in (False, True)]
        shares = [a / n for parts in found for a, n in parts[:2] if n]
        cells = [f"{a:,} of {n:,}" if n else "not recorded" for parts in found for a, n in parts[:3]]
        counts = " and ".join(str(parts[3][1]) for parts in found)
        lines.append((min(shares, default=0.0), f"| {name} | {' | '.join(cells)} | {counts} |"))
    return [text for _, text in sorted(lines, key=lambda line: line[0])]


def row(path: Path, engine: Engine) -> tuple[tuple[float, str], str]:
    """Sorted by the worse of picks and preemptions, then by name."""
    name = path.name.removesuffix(".ftrace.gz")
    try:
        (r,) = engine.replay(str(path), first=0)
    except SchedlabError as e:
        return (2.0, name), f"| {name} | {e.message} | | | | |"
    sides = ("picks", "preemptions")
    worst = min(r[side]["agreed"] / max(r[side]["decisions"] + r["unexplained"][side], 1) for side in sides)
    scores = [score(r[side]) + unexplained(r["unexplained"][side]) for side in sides]
    cells = [name, r["row"], *scores, f"{100 * r['unjudged_share']:.2f}%", state(r)]
    return (worst, name), f"| {' | '.join(cells)} |"


def placements(path: Path, engine: Engine) -> tuple[tuple[float, str], str] | None:
    """The CPUs selected, for a trace that shows selections, sorted by the share of all that agrees."""
    name = path.name.removesuffix(".ftrace.gz")
    try:
        (r,) = engine.replay(str(path), first=0)
    except SchedlabError:
        return None
    p = r["placements"]
    if not p["decisions"]:
        return None
    kinds = {part["name"]: part["score"] for part in p["kinds"]}
    slow = [kinds[kind] for kind in ("fork", "exec") if kind in kinds]
    agreed, decisions = (sum(part[key] for part in slow) for key in ("agreed", "decisions"))
    unjudged = sum(part["count"] for part in p["unjudged"])
    share = f"{unjudged:,} of {unjudged + p['decisions']:,}"
    cells = [name, r["row"], score(kinds["wakeup"]), score(p["moved"]), f"{agreed:,} of {decisions:,}", share]
    return (p["share"], name), f"| {' | '.join([*cells, score(p['baselines']['prev'])])} |"


def balances(path: Path, engine: Engine) -> tuple[tuple[float, str], str] | None:
    """What passes pulled, for a trace that shows them, sorted by the share that agrees."""
    name = path.name.removesuffix(".ftrace.gz")
    try:
        (r,) = engine.replay(str(path), first=0)
    except SchedlabError:
        return None
    b = r["balances"]
    if not b["decisions"]:
        return None
    kinds = {part["name"]: part["score"] for part in b["kinds"]}
    parts = [kinds.get(kind, {"agreed": 0, "decisions": 0}) for kind in ("newidle", "idle", "busy")]
    unjudged = sum(part["count"] for part in b["unjudged"])
    cells = [name, r["row"], score(b), score(b["source"]), *(f"{s['agreed']:,} of {s['decisions']:,}" for s in parts)]
    cells += [f"{b['quiet']:,}", f"{unjudged:,}", score(b["baselines"]["most_tasks"])]
    return (b["share"], name), f"| {' | '.join(cells)} |"


def unexplained(count: int) -> str:
    """Decisions that no lag explains are not judged, which must not look like agreement."""
    return f"; {count:,} unexplained" if count else ""


def score(s: dict[str, Any]) -> str:
    """Agreed of judged with the interval; a share is not rounded up to all."""
    if not s["decisions"]:
        return "none judged"
    share = "100%" if s["agreed"] == s["decisions"] else f"{min(100 * s['share'], 99.99):.2f}%"
    return f"{s['agreed']:,} of {s['decisions']:,}: {share} ({100 * s['low']:.2f} to {100 * s['high']:.2f})"


def state(r: dict[str, Any]) -> str:
    """Steps of the printed vruntime up to 6.1; from 6.12 on everything that probes show at an event."""
    steps, shown = r["vruntime"], r["state"]["events"]
    if steps["compared"]:
        return f"{steps['equal']:,} of {steps['compared']:,} steps"
    return f"{shown['agreed']:,} of {shown['decisions']:,} events" if shown["decisions"] else "not shown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
