"""What an upgrade of the kernel changes: the differences of two rows, with what each does to a workload.

The sentences are in `effects.toml`, by the name of the rule, feature or knob.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from schedlab.engine import Engine
from schedlab.native.changed import Change, Changelog, Effect, KernelChange, KernelChanges, Shown

COMMIT = re.compile(r"\b[0-9a-f]{12}\b")
PREEMPTION = "preemption models"


@dataclass(frozen=True, slots=True)
class Step:
    """An upgrade of a distribution: the page's name, its title, and the rows of both kernels."""

    name: str
    title: str
    before: str
    after: str
    about: str


STEPS = (
    Step("debian-11-to-12", "Debian 11 to 12", "5.10", "6.1", "Debian 11 has Linux 5.10, Debian 12 has Linux 6.1."),
    Step(
        "debian-12-to-13",
        "Debian 12 to 13",
        "6.1",
        "6.12.107",
        "Debian 12 has Linux 6.1, Debian 13 (and the backports for Debian 12) has Linux 6.12.",
    ),
    Step(
        "debian-13-to-backports",
        "Debian 13 to its backports",
        "6.12.107",
        "7.3",
        "Debian 13 has Linux 6.12, its backports have Linux 7.3.",
    ),
    Step(
        "ubuntu-22.04-to-24.04",
        "Ubuntu 22.04 to 24.04",
        "5.15",
        "6.8",
        "Ubuntu 22.04 has Linux 5.15, Ubuntu 24.04 has Linux 6.8.",
    ),
    Step(
        "ubuntu-24.04-to-26.04",
        "Ubuntu 24.04 to 26.04",
        "6.8",
        "7.0",
        "Ubuntu 24.04 has Linux 6.8, Ubuntu 26.04 has Linux 7.0.",
    ),
)


@dataclass(frozen=True, slots=True)
class Effects:
    """What changes do to a workload, by name: a sentence, and the scenario that shows it best."""

    first: tuple[str, ...]
    """The changes that affect most workloads, in this order."""
    does: Mapping[str, str]
    shown: Mapping[str, str]
    """Files in the folder of scenarios."""
    preemption: Mapping[str, str]
    """The commits that changed the preemption models, by release."""

    @classmethod
    def read(cls) -> Effects:
        table = tomllib.loads(Path(__file__).with_name("effects.toml").read_text())
        return cls(tuple(table["first"]), table["does"], table["shown"], table["preemption"])


def changes(engine: Engine, before: str, after: str, folder: Path) -> Changelog:
    """The document of `schedlab changelog`: differences in the order in which to read them.

    A difference has `does` (a sentence), `first` (whether most workloads meet it) and `scenarios` in `folder` that show
    it. `without_counterpart` names what only one of the two
    kernels has and what says nothing by itself: rules of the one algorithm, switches that are off. `backwards`: the
    second row is the earlier one, while `does` describes the step forward.
    """
    found = engine.changes(before, after)
    effects, shown = Effects.read(), _scenarios(folder)
    differences = [*_preemption(engine, found, effects.preemption), *found["differences"]]
    listed = [_effect(d, effects, shown, folder) for d in differences if d["changes"] and not _nothing(d)]
    rank = {name: place for place, name in enumerate(effects.first)}
    listed.sort(key=lambda d: (rank.get(d["name"], len(rank)), _release(d), d["name"]))
    order = [row["id"] for row in engine.listing("kernels")]
    backwards = order.index(found["a"]["id"]) > order.index(found["b"]["id"])
    return {
        **found,
        "backwards": backwards,
        "differences": listed,
        "without_counterpart": [d["name"] for d in differences if not d["changes"] or _nothing(d)],
    }


def _effect(d: KernelChange, effects: Effects, shown: Mapping[str, Shown], folder: Path) -> Effect:
    """A difference with what it does and which scenarios show it: the best one, else those that name its commits."""
    best = [folder / effects.shown[d["name"]]] if d["name"] in effects.shown else []
    scenarios = [_summary(path) for path in best if path.is_file()]
    scenarios = scenarios or [shown[commit] for c in d["changes"] if (commit := c["commit"]) and commit in shown]
    name = d["name"]
    return {**d, "does": effects.does.get(name), "first": name in effects.first, "scenarios": scenarios}


def _nothing(d: KernelChange) -> bool:
    """What one kernel does not have, and the other has but does not use."""
    return {d["was"], d["is"]} in ({None, "no"}, {None, "off"})


def _preemption(engine: Engine, found: KernelChanges, commits: Mapping[str, str]) -> list[KernelChange]:
    """Which preemption models there are, the default first."""
    rows = {row["id"]: row for row in engine.listing("kernels")}
    was, now = (rows[side["id"]] for side in (found["a"], found["b"]))
    models = [", ".join(dict.fromkeys([row["preempt_default"], *row["preempt"]])) for row in (was, now)]
    if models[0] == models[1]:
        return []
    low, high = sorted(_series(row["release"]) for row in (was, now))
    between = {release: commit for release, commit in commits.items() if low < _series(release) <= high}
    changed: list[Change] = [
        {"release": release, "first": True, "commit": commit} for release, commit in between.items()
    ]
    effect = "the models of `preempt=`, the default first"
    return [
        {"kind": "setting", "name": PREEMPTION, "effect": effect, "changes": changed, "was": models[0], "is": models[1]}
    ]


def _series(release: str) -> tuple[int, ...]:
    return tuple(int(n) for n in release.split(".")[:2])


def _release(d: KernelChange) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", d["changes"][-1]["release"])]


def _scenarios(folder: Path) -> dict[str, Shown]:
    """By commit, the scenario whose comments name it."""
    found: dict[str, Shown] = {}
    for path in sorted(folder.rglob("*.toml")):
        comments = "\n".join(line for line in path.read_text().splitlines() if line.startswith("#"))
        for commit in COMMIT.findall(comments):
            found.setdefault(commit, _summary(path))
    return found


def _summary(path: Path) -> Shown:
    return {"file": str(path), "summary": str(tomllib.loads(path.read_text()).get("summary", ""))}
