"""Prints how often the version rows decide the corpus as its kernels did, as a Markdown table, worst first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from schedlab.engine import Engine, native_engine
from schedlab.errors import SchedlabError

CORPUS = Path(__file__).resolve().parents[1] / "crates/schedlab-replay/corpus"
HEAD = "| trace | row | contested picks | preemptions | unjudged | state equal to the ns |"


def main(paths: list[str]) -> int:
    engine = native_engine()
    traces = [Path(path) for path in paths] or sorted(CORPUS.glob("*.ftrace.gz"))
    rows = sorted(row(path, engine) for path in traces)
    print("\n".join([HEAD, "|---|---|---|---|---|---|", *(text for _, text in rows)]))
    return 0


def row(path: Path, engine: Engine) -> tuple[tuple[float, str], str]:
    """Sorted by the worse of picks and preemptions, then by name."""
    name = path.name.removesuffix(".ftrace.gz")
    try:
        (r,) = engine.replay(str(path), first=0)
    except SchedlabError as e:
        return (2.0, name), f"| {name} | {e.message} | | | | |"
    worst = min(r["picks"]["share"], r["preemptions"]["share"])
    cells = [name, r["row"], score(r["picks"]), score(r["preemptions"]), f"{100 * r['unjudged_share']:.2f}%", state(r)]
    return (worst, name), f"| {' | '.join(cells)} |"


def score(s: dict[str, Any]) -> str:
    """Agreed of judged with the interval; a share is not rounded up to all."""
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
