"""What a trace does not contain although it was recorded, in words: every command that reads a trace says the same."""

from __future__ import annotations


def losses(lost: int, gaps: int) -> list[str]:
    """A sentence for records that the recorder counts as lost, and one for those that only the switches show."""
    said = []
    if lost:
        said.append(f"the recorder lost {lost:,} event{'s' if lost > 1 else ''}")
    if gaps == 1:
        said.append("1 switch is from a task to which its CPU had not switched: records before it are missing")
    elif gaps:
        said.append(
            f"{gaps:,} switches are from a task to which their CPU had not switched: records before them are missing"
        )
    return said
