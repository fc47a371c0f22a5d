"""Native rows as text: what was built, which checks passed, and where a kernel decides otherwise than a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedlab.compiled.check import Checked
    from schedlab.compiled.rows import Row
    from schedlab.compiled.verifying import Order, Result


def listing(rows: Sequence[Row]) -> str:
    """One line per row."""
    if not rows:
        return "no native rows; `schedlab kernel build TREE` makes one"
    width = max(len(row.name) for row in rows)
    return "\n".join(f"{row.name:{width}}  {row.release:9}  HZ={row.hz}  {row.origin}" for row in rows)


def built(row: Row, checked: Checked) -> str:
    """The outcome of a build."""
    head = f"{row.name}: the scheduler of {row.release}, HZ={row.hz}, from {row.origin}"
    if not checked.passed:
        head += "\nIt fails its checks and is not used."
    return f"{head}\n\n{_checks(checked)}"


def checks(row: Row, checked: Checked) -> str:
    """The outcome of the checks."""
    return f"{row.name}: the scheduler of {row.release}\n\n{_checks(checked)}"


def _checks(checked: Checked) -> str:
    width = max(len(check.name) for check in checked.checks)
    lines = [
        f"{'passed' if check.passed else 'FAILED'}  {check.name:{width}}  {check.found}" for check in checked.checks
    ]
    return "\n".join([*lines, "", _stubs(checked.stubs)])


def _stubs(called: dict[str, int]) -> str:
    if not called:
        return "No function without a meaning in user space was called."
    listed = ", ".join(f"{name} ({calls})" for name, calls in sorted(called.items()))
    return f"Functions that were called and do nothing in user space: {listed}."


def document(checked: Checked) -> dict[str, Any]:
    """The checks as JSON."""
    found = [{"name": check.name, "passed": check.passed, "found": check.found} for check in checked.checks]
    return {"checks": found, "stubs": checked.stubs}


def verified(row: Row, order: Order, result: Result) -> str:
    """What was compared, then the first difference."""
    lines = [f"{row.name} ({row.release}) against the row {order.against}: {result.loads} loads", ""]
    lines.append(f"{'CPUs':>5}  {'switches':>10}  {'wakeups':>10}  {'migrations':>10}")
    for cpus, counts in sorted(result.compared.items()):
        lines.append(f"{cpus:5}  {counts['switches']:10,}  {counts['wakeups']:10,}  {counts['migrations']:10,}")
    lines.append("")
    lines += [f"warning: {warning}" for warning in result.warnings[:5]]
    if result.failure:
        lines.append(f"The native scheduler stopped (seed {result.seed}): {result.failure}")
    elif result.difference is None:
        lines.append("Every decision is the same.")
    else:
        lines += _difference(row, order, result)
    return "\n".join(lines)


def _difference(row: Row, order: Order, result: Result) -> list[str]:
    assert result.difference is not None
    difference, smallest = result.difference, result.smallest
    lines = [
        f"The first difference, of seed {result.seed}, in the smallest load that was found:",
        f"  at {difference.time_ns / 1e6:.6f} ms, {difference.kind}",
        f"  {row.name:{max(len(row.name), len(order.against))}}  {difference.native}",
        f"  {order.against:{max(len(row.name), len(order.against))}}  {difference.row}",
    ]
    if smallest is not None:
        lines.append(
            f"{len(smallest.tasks)} tasks on {smallest.topology.cpus} CPUs for {smallest.duration_ns / 1e6:.3f} ms; "
            "`--out FILE` writes the scenario"
        )
    return lines
