"""Commits that the repository names, against what they are: their subject and the release that has them first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COMMITS = {
    "0258bdfaff5b": ("5.13", "sched/fair: Fix unfairness caused by missing load decay"),
    "052c3d87c82e": ("6.17", "sched/fair: Limit run to parity to the min slice of enqueued entities"),
    "101f3498b4bd": ("7.1", 'sched/fair: Revert 6d71a9c61604 ("sched/fair: Fix EEVDF entity placement bug ...")'),
    "147f3efaa241": ("6.6", "sched/fair: Implement an EEVDF-like scheduling policy"),
    "152e11f6df29": ("6.12", "sched/fair: Implement delayed dequeue"),
    "1560d1f6eb6b": ("6.9", "sched/eevdf: Prevent vlag from going out of bounds in reweight_eevdf()"),
    "21c0e92d0681": ("7.0", "rseq: Lower default slice extension"),
    "2227a957e1d5": ("6.8", "sched/eevdf: Sort the rbtree by virtual deadline"),
    "23127296889f": ("5.1", "sched/fair: Update scale invariance of PELT"),
    "26cf52229efc": ("5.7", "sched: Avoid scale real weight down to zero"),
    "2a4b03ffc69f": ("5.6", "sched/fair: Prevent unlimited runtime on throttled group"),
    "2ae891b82695": ("6.15", "sched: Reduce the default slice to avoid tasks getting an extra tick"),
    "2cae3948edd4": ("5.16", "sched: adjust sleeper credit for SCHED_IDLE entities"),
    "304000390f88": ("5.15", "sched: Cgroup SCHED_IDLE support"),
    "2cffe9f6b96f": ("5.4", "cpuidle: add haltpoll governor"),
    "36c5bdc43870": ("5.8", "sched/topology: Kill SD_LOAD_BALANCE"),
    "3429dd57f0de": ("6.14", "sched/fair: Fix inaccurate h_nr_runnable accounting with delayed dequeue"),
    "493afbd187c4": ("6.13", "sched/fair: Fix NEXT_BUDDY"),
    "4823725d9d1d": ("7.1", "sched/fair: Increase weight bits for avg_vruntime"),
    "5068d84054b7": ("6.8", "sched/fair: Update min_vruntime for reweight_entity() correctly"),
    "51ce83ed523b": ("5.16", "sched: reduce sched slice for SCHED_IDLE entities"),
    "563bc2161b94": ("6.15", "sched/eevdf: Force propagating min_slice of cfs_rq when {en,de}queue tasks"),
    "61b82dfb6b7e": ("6.14", "sched/fair: Do not try to migrate delayed dequeue task"),
    "63304558ba5d": ("6.6", "sched/eevdf: Curb wakeup-preemption"),
    "650cad561cce": ("6.6", "sched/eevdf: Fix avg_vruntime()"),
    "66951e4860d3": ("6.13", "sched/fair: Fix update_cfs_group() vs DELAY_DEQUEUE"),
    "6d71a9c61604": ("6.13", "sched/fair: Fix EEVDF entity placement bug causing scheduling lag"),
    "6e3c0a4e1ad1": ("7.0", "sched/fair: Fix lag clamp"),
    "75b6499024a6": ("6.12", "sched/fair: Properly deactivate sched_delayed task upon class change"),
    "76f970ce51c8": ("6.14", 'Revert "sched/core: Reduce cost of sched_move_task when config autogroup"'),
    "79104becf42b": ("6.19", "sched/fair: Forfeit vruntime on yield"),
    "79462e8c879a": ("6.6", "sched: don't account throttle time for empty groups"),
    "79ba1e607d68": ("6.3", "sched/fair: Limit sched slice duration"),
    "79f3f9bedd14": ("6.19", "sched/eevdf: Fix min_vruntime vs avg_vruntime"),
    "829c1651e9c4": ("6.3", "sched/fair: sanitize vruntime of entity being placed"),
    "82e9d0456e06": ("6.12", "sched/fair: Avoid re-setting virtual deadline on 'migrations'"),
    "857b158dc5e8": ("6.12", "sched/eevdf: Use sched_attr::sched_runtime to set request/slice suggestion"),
    "85e511df3cec": ("6.12", "sched/eevdf: Allow shorter slices to wakeup-preempt"),
    "873199d27bb2": ("6.14", "sched/core: Prioritize migrating eligible tasks in sched_balance_rq()"),
    "9b5ce1a37e90": ("6.12", "sched: Fix sched_delayed vs cfs_bandwidth"),
    "9c0b4bb7f630": ("6.8", "sched/cpufreq: Rework schedutil governor performance estimation"),
    "aa48e47e3906": ("5.15", "memcg: infrastructure to flush memcg stats"),
    "ac8e69e69363": ("7.1", "sched/fair: Fix wakeup_preempt_fair() vs delayed dequeue"),
    "aef6987d8954": ("6.12", "sched/eevdf: Propagate min_slice up the cgroup hierarchy"),
    "afae8002b4fd": ("6.9", "sched/eevdf: Fix miscalculation in reweight_entity() when se is not curr"),
    "b01db23d5923": ("6.6", "sched/eevdf: Fix pick_eevdf()"),
    "b7ca5743a260": ("6.16", "sched/core: Tweak wait_task_inactive() to force dequeue sched_delayed tasks"),
    "bbce3de72be5": ("6.15", "sched/eevdf: Fix se->slice being set to U64_MAX and resulting crash"),
    "bcd74b2ffdd0": ("7.0", "sched/fair: Only set slice protection at pick time"),
    "c095741713d1": ("7.2", "sched/fair: Fix newidle vs core-sched"),
    "c70fc32f4443": ("6.16", "sched/fair: Adhere to place_entity() constraints"),
    "d2d6422f8bd1": ("6.12", "x86: Allow to enable PREEMPT_RT."),
    "d4ac164bde7a": ("6.12", "sched/eevdf: Fix wakeup-preempt by checking cfs_rq->nr_running"),
    "de53fd7aedb1": (
        "5.4",
        "sched/fair: Fix low cpu usage with high throttling by removing expiration of cpu-local slices",
    ),
    "eab03c23c2a1": ("6.7", "sched/eevdf: Fix vruntime adjustment on reweight"),
    "eff6c8ce8d4d": ("6.4", "sched/core: Reduce cost of sched_move_task when config autogroup"),
    "f4183717b370": ("5.14", "sched/fair: Introduce the burstable CFS controller"),
    "f553741ac8c0": ("6.15", "sched: Cancel the slice protection of the idle entity"),
    "fa2c3254d7cf": ("5.18", "sched/tracing: Don't re-read p->state when emitting sched_switch event"),
    "facdaa917c4d": ("5.9", "mm: proactive compaction"),
}
"""Looked up one by one: the lists of merged commits, the threads that merged them and the sources at hand."""

TABLES = [
    *(ROOT / "crates/schedlab-policy/src/version").glob("*.rs"),
    *(
        ROOT / "crates/schedlab-policy/src" / f"{name}.rs"
        for name in ("features", "knobs", "pelt/signals", "preempt_model")
    ),
]
"""Where rules, features, knobs, names and preemption models name the commit of every change."""

NAMED = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12}\b")
CHANGE = re.compile(r'\b(from|seen) "([0-9.]+)" by "([0-9a-f]+)"')


def changes() -> list[tuple[str, str, str]]:
    return [found for path in TABLES for found in CHANGE.findall(path.read_text())]


def test_every_commit_named_is_a_known_one() -> None:
    places = [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("scenarios/bugs/*.toml")]
    named = {(commit, path.name) for path in places for commit in NAMED.findall(path.read_text())}
    known = COMMITS.keys() | {commit for _, _, commit in changes()}
    assert len(named) > 40
    assert [pair for pair in named if pair[0] not in known] == []


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios/bugs").glob("*.toml")), ids=lambda path: path.stem)
def test_a_bug_names_its_fix(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    found = re.fullmatch(r'# Fixed by ([0-9a-f]{12}) \("(.*)"\)', first)
    assert found, first
    assert COMMITS[found[1]][1] == found[2]


def test_a_change_names_the_release_of_its_commit() -> None:
    releases = {commit: release for kind, release, commit in changes() if kind == "from" and is_mainline(release)}
    assert len(releases) > 100
    both = releases.keys() & COMMITS.keys()
    assert {commit: releases[commit] for commit in both} == {commit: COMMITS[commit][0] for commit in both}


def test_a_commit_is_in_one_release_of_mainline_and_of_each_stable_series() -> None:
    said = {(commit, release) for kind, release, commit in changes() if kind == "from"}
    series = {(commit, is_mainline(release) or release.rsplit(".", 1)[0]) for commit, release in said}
    assert len(said) == len(series)


def is_mainline(release: str) -> bool:
    return release.count(".") == 1
