"""The sentence that says whether CPUs were short, from the use of each CPU."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from schedlab.comparison import Column
from schedlab.outcome import Run
from schedlab.render.capacity import _threads, capacity
from schedlab.render.causes import MEANS, cause, causes, difference
from schedlab.render.overload import overload
from schedlab.tail import Band, Load, Parts, SeedTail, Tail

TIME = 1000

MACHINE = {"cpus": 8, "topology": {"cores": ["0,4", "1,5", "2,6", "3,7"]}, "sources": ["topology: two threads as one"]}


def tail(
    busy: list[int], waiting: list[int], *, over: int = 0, lost: int = 0, slow: tuple[int, ...] = (5,), ns: int = 100
) -> Tail:
    """One seed for each count of slow samples, all with the same load."""
    load = Load("", TIME, busy, waiting, sum(busy) + sum(waiting), over, 0, lost, 1)
    bands = [Band(n, Parts(n * ns, Counter(behind=n * ns)), tenths=Counter({0: n})) for n in slow]
    seeds = [SeedTail(i, band, Band(1, Parts(1, Counter(ran=1))), (), (), [load]) for i, band in enumerate(bands, 1)]
    return Tail("one", 10, 100, seeds)


def said(found: Tail, part: str = "behind") -> str:
    return overload(found, part, found.slow)


def test_a_quota_is_named_as_a_possible_cause_instead_of_overload() -> None:
    found = tail([1000, 1000], [900, 900], over=900)
    assert "overloaded" in cause(found, "m")
    limited = replace(found, seeds=[replace(one, quota=True) for one in found.seeds])
    text = cause(limited, "m")
    assert "overloaded" not in text
    assert "has a quota; time in which it was throttled counts as waiting here" in text


@pytest.mark.parametrize(("slow", "want"), [(145, "the slowest 41% of m (145 of"), (10, "the slowest 3% of m (10 of")])
def test_the_share_that_is_called_slow_is_the_true_one(slow: int, want: str) -> None:
    found = replace(tail([1000], [0], slow=(slow,)), samples=354)
    assert want in cause(found, "m")
    assert want.partition(" of m")[0] in causes([found], "m")


def test_cpus_that_are_used_are_named() -> None:
    found = tail([1000, 990, 995, 1000, 0, 0, 0, 0], [340, 440, 440, 300, 0, 0, 0, 0], lost=530)
    text = said(found, "stolen")
    assert text.startswith("CPUs 0-3 were 99 to 100% busy, CPUs 4-7 were idle; ")
    assert "on average 1.5 tasks waited for CPUs 0-3, which were overloaded" in text
    assert "unless they may run on CPUs 4-7" in text
    assert "50%" not in text


@pytest.mark.parametrize(("part", "waiting"), [("ran", 900), ("behind", 90)])
def test_busy_cpus_without_waiting_tasks_are_not_overloaded(part: str, waiting: int) -> None:
    text = said(tail([1000, 0], [waiting, 0]), part)
    assert text.startswith("CPU 0 was 100% busy, CPU 1 was idle; ")
    assert "overloaded" not in text


def test_cpus_between_busy_and_idle_are_a_group_of_their_own() -> None:
    text = said(tail([950, 400, 600, 20], [0, 0, 0, 0]))
    assert text.startswith("CPU 0 was 95% busy, CPUs 1-2 were 40 to 60% busy, CPU 3 was 2% busy")


@pytest.mark.parametrize(
    ("lost", "has", "lacks"),
    [
        (20, "overloaded, so some tasks must wait; the scheduler chooses which", "idle while"),
        (300, "For 30% of the time a CPU was idle while a task waited", "overloaded"),
    ],
)
def test_idle_cpus_speak_against_overload(lost: int, has: str, lacks: str) -> None:
    text = said(tail([820, 820], [900, 900], over=800, lost=lost))
    assert text.startswith(
        "The CPUs were 82% busy, and more tasks were runnable than there are CPUs for 80% of the time"
    )
    assert has in text
    assert lacks not in text


def test_a_difference_that_may_be_chance_says_so() -> None:
    a, b = tail([1000], [0], slow=(5, 5)), tail([1000], [0], slow=(8, 2), ns=200)
    assert difference(a, b).startswith("From one to one the slowest 10% become ")
    assert "chance" not in difference(a, b)
    text = difference(a, b, "web.latency.p99")
    assert "no change of web.latency.p99 is shown, so this may be chance" in text
    assert text.count(" alone has ") == 1
    assert "seed 1 alone has 80% of the slowest 10% of one" in text


def test_the_tasks_of_a_guest_are_not_counted_twice() -> None:
    """Half of the host's two CPUs is the vCPU's, which its tasks divide; the rest of a table would exceed 100%."""
    names = {"vm:probe": 600, "vm:hog": 400, "vm/0": 900, "load/1": 100, "load/2": 50}
    record = {
        "variant": "one",
        "seed": 1,
        "kernel": "6.12",
        "engine": "",
        "digest": "",
        "events": 0,
        "wall_s": 0.0,
        "ended": "duration",
        "metrics": {},
        "sim_s": 1.0,
        "measured_ns": TIME,
        "cpus": [{}, {}],
        "tasks": [{"pid": i, "name": name, "cpu_ns": ns} for i, (name, ns) in enumerate(names.items())],
    }
    column = Column("one", "6.12", {1: Run.from_record(record)})
    host, guest = (Load(name, TIME, [0] * n, [0] * n, 0, 0, 0, 0, 1) for name, n in (("", 2), ("vm", 1)))
    seed = SeedTail(1, Band(1, Parts(1)), Band(), [(1, 1.0)] * 10, (), [host, guest])
    found = capacity([Tail("one", 10, 100, [seed])], [column], "probe.latency", MACHINE)
    assert "vCPUs of vm (45%), load (8%)" in found
    assert "probe (60%), hog (40%)" in found
    assert "vm:" not in found


def test_the_mean_of_the_tail_is_set_apart_from_the_p99() -> None:
    assert causes([tail([1000], [0])], "web.latency").count(MEANS) == 1


def test_threads_of_a_core_are_not_worth_a_core_each() -> None:
    (text,) = _threads(MACHINE)
    assert text.startswith("The 8 CPUs are threads of 4 cores (two threads as one): ")
    assert _threads({**MACHINE, "cpus": 4}) == []
    assert _threads({**MACHINE, "topology": {}}) == []
