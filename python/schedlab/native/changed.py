"""What differs between two kernels, and between two variants."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Change(TypedDict):
    """A release that changed a rule; `first`: it is the first one, otherwise an earlier one may have the change."""

    release: str
    first: bool
    commit: str | None


KernelChange = TypedDict(
    "KernelChange",
    {
        "kind": str,
        "name": str,
        "function": NotRequired[str | None],
        "effect": str,
        "since": NotRequired[str | None],
        "changes": list[Change],
        "was": str | None,
        "is": str | None,
    },
)
"""A rule, feature or knob with its values in both kernels; None: the kernel does not have it."""


class Kernel(TypedDict):
    """A kernel row."""

    id: str
    summary: str
    config: NotRequired[str | None]
    """The distribution whose configuration it has."""


Setting = TypedDict("Setting", {"name": str, "was": str, "is": str})
"""In what the configurations of two kernels differ, which is no change of the kernel."""


class KernelChanges(TypedDict):
    """Everything that differs from kernel `a` to kernel `b`."""

    a: Kernel
    b: Kernel
    settings: list[Setting]
    """Only where a kernel is named by its distribution."""
    differences: list[KernelChange]


class Shown(TypedDict):
    """A scenario that shows a change."""

    file: str
    summary: str


class Effect(KernelChange):
    """A change with what it does to a workload; the type of the document of `changelog`."""

    does: str | None
    first: bool
    scenarios: list[Shown]


class Changelog(TypedDict):
    """The document of `changelog`."""

    a: Kernel
    b: Kernel
    settings: list[Setting]
    backwards: bool
    differences: list[Effect]
    without_counterpart: list[str]


class Difference(TypedDict):
    """Something that two variants do differently and that can be exchanged between them."""

    name: str
    kind: str
    function: str | None
    since: str | None
    a: str
    b: str
    within: str | None
