"""A replay's requests to reschedule as text: the check points that honour them, and the delays until then."""

from __future__ import annotations

from schedlab.native.replayed import Delays, ReschedReport
from schedlab.render.grid import columns

DELAYS = "delays from the request: p50, p99, longest; predicted to the check point, recorded to the switch"


def resched(report: ReschedReport | None) -> list[str]:
    """A block of lines; nothing where no request can be judged."""
    if not report or not report["decisions"]:
        return []
    rows = [["honoured at", "judged", "agreed", "predicted us", "recorded us"]]
    for place in sorted(report["places"], key=lambda place: place["score"]["share"]):
        score = place["score"]
        delays = [_delays(place[key]) for key in ("predicted", "recorded")]
        rows.append([place["name"], f"{score['decisions']:,}", f"{score['agreed']:,}", *delays])
    lines = [f"requests to reschedule, preempt={report['model']}", *columns(rows, "<>>>>"), DELAYS]
    lines += [f"not judged: {part['count']:,} {part['kind']}s, {part['reason']}" for part in report["unjudged"]]
    for miss in report["disagreements"]:
        kind = "lazy" if miss["lazy"] else "full"
        asked = f"{kind} request of {miss['requested_ns'] / 1e9:.6f} s on CPU {miss['cpu']}"
        lines.append(f"{miss['time_ns'] / 1e9:.6f} s, {asked}: kernel {miss['kernel']}, model {miss['model']}")
    return ["\n".join(lines)]


def _delays(delays: Delays | None) -> str:
    if delays is None:
        return "-"
    return ", ".join(f"{delays[key] / 1e3:,.1f}" for key in ("p50_ns", "p99_ns", "max_ns"))
