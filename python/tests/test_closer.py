"""The closer look with the real engine: the runs it repeats are those that were judged, and the page stays small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import schedlab
from schedlab import render
from schedlab.closer import EXPLAINED, Closer, closer, middle
from schedlab.comparison import Comparison
from schedlab.engine import native_engine
from schedlab.render.closer import shares, where_it_went
from schedlab.timeline import Timeline, Waited, account, of_columns, of_traces, task_of
from schedlab.timeline.reduce import Lane, Slice, Wake

SCENARIO = """
machine = "laptop-8"
duration = "60ms"
warmup = "10ms"
seeds = 6
workload = [
    { use = "hackbench", name = "load", groups = 1, repeat = true },
    { use = "cyclictest", name = "probe", smp = true, interval = "500us" },
]
variant = [{ name = "cfs", kernel = "6.1" }, { name = "eevdf", kernel = "6.12.0" }]
metric = [{ of = "probe.latency", stat = "p99" }]
"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("closer")
    (folder / "small.toml").write_text(SCENARIO)
    return schedlab.compare(folder / "small.toml", out=folder / "result")


@pytest.fixture(scope="module")
def look(comparison: Comparison) -> Closer:
    found = closer(native_engine(), comparison)
    assert isinstance(found, Closer), found
    return found


def test_the_timelines_have_every_switch_of_the_run(comparison: Comparison, look: Closer) -> None:
    for column in comparison.columns:
        run, timeline = column.runs[look.seed], look.timelines[column.name]
        busy = sum(s.end - s.start for lane in timeline.lanes for s in lane.slices)
        assert len(timeline.lanes) == 8
        assert 0.5 * run.switches < timeline.slices <= run.switches
        assert 0 < busy <= 8 * timeline.end
        for lane in timeline.lanes:
            assert all(a.end <= b.start for a, b in zip(lane.slices, lane.slices[1:], strict=False))


def test_the_slowest_samples_are_those_of_the_run(comparison: Comparison, look: Closer) -> None:
    assert look.metric == "probe.latency"
    for column in comparison.columns:
        found = [slow for slow in look.slowest if slow.variant == column.name]
        assert len(found) == EXPLAINED
        longest = column.runs[look.seed].metrics["probe.latency.max"]
        assert found[0].sample.ns / 1e3 == pytest.approx(longest, rel=1e-6)
        for slow in found:
            assert slow.answer is not None, slow.trouble
            assert slow.answer["at_ns"] == middle(slow.sample)


def test_a_stored_result_gives_the_same_look(comparison: Comparison, look: Closer) -> None:
    again = closer(native_engine(), schedlab.report(comparison.path or Path()))
    assert isinstance(again, Closer), again
    assert again.timelines == look.timelines
    assert again.parting == look.parting


def test_another_digest_is_not_shown(comparison: Comparison) -> None:
    from dataclasses import replace

    columns = []
    for column in comparison.columns:
        runs = {seed: replace(run, digest="0" * 32) for seed, run in column.runs.items()}
        columns.append(replace(column, runs=runs))
    found = closer(native_engine(), replace(comparison, columns=tuple(columns)))
    assert isinstance(found, str)
    assert "another digest" in found


def test_the_page_is_small_and_says_it_without_scripts(comparison: Comparison, look: Closer) -> None:
    page = render.html(comparison, look)
    assert len(page.encode()) < 2_000_000
    still = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    for part in ("The first difference", "The slowest samples", "What explain says of each", '<svg class="timeline"'):
        assert part in still


def test_the_engine_reduces_a_run_as_its_trace_does(tmp_path: Path) -> None:
    """The same run, reduced while it goes on and from the file it leaves."""
    (tmp_path / "small.toml").write_text(SCENARIO)
    engine, scenario = native_engine(), schedlab.load(tmp_path / "small.toml")
    run = engine.run(scenario, "eevdf", 2, trace=str(tmp_path / "t.ftrace"))
    found = engine.timeline(scenario, "eevdf", 2)
    assert (found["digest"], found["events"]) == (run.digest, run.events)
    ours, theirs = of_columns(found), of_traces({"": tmp_path / "t.ftrace"}, from_ns=scenario.warmup_ns)
    assert (ours.start, ours.end, ours.slowest) == (theirs.start, theirs.end, theirs.slowest)
    for a, b in zip(ours.lanes, theirs.lanes, strict=True):
        assert (a.name, a.depth, a.gaps) == (b.name, b.depth, b.gaps)
        assert [_named(ours, s) for s in a.slices] == [_named(theirs, s) for s in b.slices]
    assert [_woken(ours, w) for w in ours.wakes] == [_woken(theirs, w) for w in theirs.wakes]


def _named(timeline: Timeline, s: Slice) -> tuple[object, ...]:
    return s.start, s.end, timeline.tasks[s.task], s.preempted


def _woken(timeline: Timeline, w: Wake) -> tuple[object, ...]:
    by = None if w.by < 0 else timeline.tasks[w.by]
    return w.at, w.lane, by, timeline.tasks[w.task], w.ran_lane, w.ran_at


GUESTS = """
machine = "laptop-8"
duration = "60ms"
guest = [
    { name = "vm", vcpus = 2, platform = "x86-kvm", cpus = "0-1" },
    { name = "neighbour", vcpus = 2, platform = "x86-kvm", cpus = "0-1" },
]
workload = [
    { use = "hog", guest = "vm", threads = 3 },
    { use = "hog", name = "other", guest = "neighbour", threads = 2 },
]
variant = [{ name = "one", kernel = "6.12" }]
"""


def test_slices_of_guests_lie_where_their_vcpus_run(tmp_path: Path) -> None:
    (tmp_path / "guests.toml").write_text(GUESTS)
    found = of_columns(native_engine().timeline(schedlab.load(tmp_path / "guests.toml"), "one", 1))
    on_host: dict[str, list[tuple[int, int]]] = {}
    for lane in found.lanes[:8]:
        for s in lane.slices:
            on_host.setdefault(found.tasks[s.task][1], []).append((s.start, s.end))
    shown = 0
    for lane in found.lanes[8:]:
        guest, cpu = lane.name.split(" CPU ")
        for s in lane.slices:
            assert any(low <= s.start and s.end <= high for low, high in on_host[f"{guest}/{cpu}"]), (lane.name, s)
            shown += 1
    assert shown > 20, "vCPUs that share CPUs take turns"


def test_the_time_of_a_sample_is_accounted_for(look: Closer) -> None:
    for slow in look.slowest:
        where = slow.where
        assert where.queued + where.ran + where.waited + where.slept == slow.sample.ns
        assert 0 <= sum(where.behind.values()) <= where.waited


def test_the_time_in_a_queue_is_not_the_tasks() -> None:
    """A request arrives at 100, its thread takes it at 400, after another request, and is preempted once."""
    lane = Lane("CPU 0", [Slice(0, 450, 0, True), Slice(450, 500, 1, False), Slice(500, 600, 0, False)])
    timeline = Timeline([lane], [(5, "web"), (6, "hog")], [])
    found = account(timeline, Waited(500, 600, 5, 0, 300))
    assert (found.queued, found.ran, found.waited, found.slept) == (300, 150, 50, 0)
    text = where_it_went(timeline, found)
    assert text.startswith("in a queue 0.000300 ms, before the task took it; waited for a CPU 0.000050 ms, while hog 6")
    assert middle(Waited(500, 600, 5, 0, 300)) == 500


def test_the_shares_of_the_slowest_samples_add_up(look: Closer) -> None:
    for name in look.pair:
        text = shares(name, look.slowest)
        assert text.startswith(f"The {EXPLAINED} longest of {name}: ")
        assert abs(sum(int(part) for part in re.findall(r"(\d+)%", text)) - 100) <= 2
    assert shares("nobody", look.slowest) == ""


WEB = """
machine = "laptop-8"
duration = "300ms"
seeds = 6
workload = [{ use = "hhvm", load = 60 }]
variant = [{ name = "cfs", kernel = "6.1" }, { name = "eevdf", kernel = "6.12.0" }]
metric = [{ of = "hhvm.latency", stat = "p99" }]
"""


def test_requests_that_wait_for_a_thread_are_queued() -> None:
    engine = native_engine()
    found = engine.timeline(engine.loads(WEB, "web.toml", {}), "eevdf", 1)
    rows = {metric: [Waited(*row) for row in rows] for metric, rows in found["slowest"].items()}
    assert all(one.queued == 0 for one in rows["hhvm.queueing"])
    assert any(one.queued > 0 for one in rows["hhvm.latency"])
    assert all(one.queued <= one.ns for one in rows["hhvm.latency"])


def test_a_vcpu_that_waits_is_named_with_what_ran_instead() -> None:
    # Pid 1 is a vCPU's thread on the host and a task in the guest.
    tasks = [(1, "vm/0"), (2, "hog"), (1, "probe")]
    host = Lane("CPU 0", [Slice(0, 100, 0, False), Slice(150, 950, 1, True), Slice(950, 1100, 0, False)])
    guest = Lane("vm CPU 0", [Slice(0, 90, 2, False), Slice(960, 1000, 2, False)])
    wakes = [Wake(190, 0, 1, 0, 0, 950), Wake(200, 1, -1, 2, 1, 960)]
    timeline = Timeline([host, guest], tasks, wakes)
    sample = Waited(800, 1000, 1, 1)
    found = account(timeline, sample)
    assert task_of(timeline, sample) == "probe"
    assert (found.ran, found.waited, found.slept) == (40, 760, 0)
    assert found.vcpu is not None
    assert (found.vcpu.ran, found.vcpu.waited, found.vcpu.slept) == (50, 750, 0)
    text = where_it_went(timeline, found)
    assert text.startswith("waited for a CPU 0.000760 ms; ran 0.000040 ms. Its vCPU on the host: waited for a CPU")
    assert "while hog 2 ran 0.000750 ms" in text


PROBE_IN_A_GUEST = """
machine = "laptop-8"
duration = "60ms"
seeds = 6
guest = [{ name = "vm", vcpus = 2, platform = "x86-kvm", cpus = "0-1" }]
workload = [
    { use = "cyclictest", name = "probe", guest = "vm", smp = true, interval = "500us" },
    { use = "hog", name = "hog", threads = 2, cpus = "0-1" },
]
variant = [{ name = "cfs", kernel = "6.1" }, { name = "eevdf", kernel = "6.12.0" }]
metric = [{ of = "probe.latency", stat = "p99" }]
"""


def test_samples_of_a_guest_are_those_that_explain_sees(tmp_path: Path) -> None:
    (tmp_path / "guest.toml").write_text(PROBE_IN_A_GUEST)
    found = closer(native_engine(), schedlab.compare(tmp_path / "guest.toml", out=tmp_path / "r"))
    assert isinstance(found, Closer), found
    assert found.metric.startswith("vm.")
    for slow in found.slowest:
        assert found.timelines[slow.variant].lanes[slow.sample.lane].name.startswith("vm ")
        assert slow.answer is not None, slow.trouble
        assert slow.where.vcpu is not None
        assert slow.where.vcpu.ran + slow.where.vcpu.waited + slow.where.vcpu.slept == slow.sample.ns
