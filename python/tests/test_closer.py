"""The closer look with the real engine: the runs it repeats are those that were judged, and the page stays small."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import schedlab
from accounts import account, task_of
from schedlab import render
from schedlab.closer import EXPLAINED, Closer, closer, middle, typical_seed
from schedlab.comparison import Comparison
from schedlab.engine import native_engine
from schedlab.errors import ScenarioError
from schedlab.outcome import Series
from schedlab.render.amounts import share
from schedlab.render.causes import cause, causes, difference, dominant
from schedlab.render.closer import closer_look, where_it_went
from schedlab.render.timeline import timelines
from schedlab.tail import FEWEST, LONGEST_NS, PARTS, Parts, Sample, bands, tail_of
from schedlab.timeline import Timeline, Waited, common_windows, of_columns, of_traces
from schedlab.timeline.document import document
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
        run = column.runs[look.seed]
        timeline = of_columns(native_engine().timeline(look.scenario, column.name, look.seed))
        busy = sum(s.end - s.start for lane in timeline.lanes for s in lane.slices)
        assert len(timeline.lanes) == 8
        assert 0.5 * run.switches < timeline.slices <= run.switches
        assert 0 < busy <= 8 * timeline.end
        for lane in timeline.lanes:
            assert all(a.end <= b.start for a, b in zip(lane.slices, lane.slices[1:], strict=False))


@pytest.mark.parametrize("most", [20, 300])
def test_what_is_kept_around_points_is_all_there_was(most: int, look: Closer) -> None:
    """Within the windows nothing differs from the whole timeline, and there are not more records than the bound."""
    engine, points = native_engine(), [15_000_000, 30_000_000, 59_000_000]
    full = of_columns(engine.timeline(look.scenario, "eevdf", look.seed))
    part = of_columns(engine.timeline(look.scenario, "eevdf", look.seed, around=(points, most)))
    records = len(part.wakes) + sum(len(lane.slices) + len(lane.gaps) for lane in part.lanes)
    assert records <= len(points) * (2 * most + 3 * len(full.lanes) + 80), "80 tasks may be woken across a point"
    windows = common_windows([part])
    assert all(any(low <= p <= high for low, high in windows) for p in points)
    for x, y in zip(document("a", full, windows)["lanes"], document("a", part, windows)["lanes"], strict=True):
        for key in ("slices", "gaps"):
            assert len(x[key]) == len(y[key]), key
        assert x["slices"][::3] == y["slices"][::3]
        assert all(abs(int(i) - int(j)) <= 2 for i, j in zip(x["busy"], y["busy"], strict=True))
    for low, high in windows:
        at = (low + high) // 2
        assert [_depth(lane, at) for lane in full.lanes] == [_depth(lane, at) for lane in part.lanes]


def _depth(lane: Lane, at: int) -> int:
    return next((waiting for time, waiting in reversed(lane.depth) if time <= at), 0)


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
    assert again.divergence == look.divergence


def test_another_digest_is_not_shown(comparison: Comparison) -> None:
    columns = []
    for column in comparison.columns:
        runs = {seed: replace(run, digest="0" * 32) for seed, run in column.runs.items()}
        columns.append(replace(column, runs=runs))
    found = closer(native_engine(), replace(comparison, columns=tuple(columns)))
    assert isinstance(found, str)
    assert "a different digest" in found


def test_the_page_is_small_and_says_it_without_scripts(comparison: Comparison, look: Closer) -> None:
    page = render.html(comparison, look)
    assert len(page.encode()) < 2_000_000
    still = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    for part in (
        "The first difference",
        "The slowest samples",
        "What makes the slowest 1% slow",
        "Was the machine overloaded?",
        "What explain says of each",
        '<svg class="timeline"',
        '<figure><div id="causes"',
        f"--metric probe.latency --seed {look.seed}</code>",
    ):
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


def test_the_parts_of_every_sample_are_its_length(look: Closer) -> None:
    for tail in look.tails:
        for band in (tail.slow, tail.middle, *(one.slow for one in tail.seeds)):
            assert band.count > 0 or band.parts.ns == 0
            assert sum(band.parts.parts[part] for part in PARTS) == band.parts.ns
            assert band.parts.elsewhere <= band.parts.parts["behind"]
            assert band.parts.before.total() == band.parts.parts["behind"]
            assert band.tasks.total() == band.lanes.total() == band.tenths.total() == band.count


def test_the_slowest_are_one_percent_of_all_seeds(comparison: Comparison, look: Closer) -> None:
    for tail, column in zip(look.tails, comparison.columns, strict=True):
        series = [run.series["probe.latency"] for run in column.runs.values()]
        assert tail.samples == sum(one.count for one in series)
        wanted = max(FEWEST, round(tail.samples / 100))
        assert wanted <= tail.slow.count <= wanted + 5, "a bucket may hold a few more"
        assert 0.2 <= tail.middle.count / tail.samples < 0.3
        longest = max(one.max or 0 for one in series)
        assert max(s.ns for one in tail.seeds for s in one.slowest) == pytest.approx(longest * 1e3)
        for one in tail.seeds:
            run = column.runs[one.seed]
            assert sum(n for n, _ in one.tenths) == run.series["probe.latency"].count


def test_use_of_the_cpus_is_that_of_the_run(comparison: Comparison, look: Closer) -> None:
    for tail, column in zip(look.tails, comparison.columns, strict=True):
        for one in tail.seeds:
            (load,) = one.loads
            busy = 100 * sum(load.busy) / (load.time * len(load.busy))
            assert busy == pytest.approx(column.runs[one.seed].metrics["sched.cpu_busy"], rel=1e-3)
            assert 0 <= load.over <= load.full <= load.time or load.over <= load.time
            assert load.runnable == sum(load.busy) + sum(load.waiting)


def test_threads_do_not_change_what_is_found(comparison: Comparison, look: Closer) -> None:
    column = comparison.columns[0]
    again = tail_of(native_engine(), look.scenario, column, look.metric, threads=3)
    assert again == look.tails[0]


def test_the_engine_divides_a_sample_as_the_slices_say(look: Closer) -> None:
    """Against what the full timeline of the run holds."""
    engine = native_engine()
    for tail in look.tails:
        full = of_columns(engine.timeline(look.scenario, tail.variant, look.seed))
        own = next(one for one in tail.seeds if one.seed == look.seed)
        for sample, waited in zip(own.slowest, full.slowest[look.metric], strict=True):
            want = account(full, waited)
            parts = sample.parts.parts
            assert (sample.ns, sample.at_ns, sample.pid) == (waited.ns, waited.at_ns, waited.pid)
            assert (parts["ran"], parts["slept"], parts["queued"]) == (want.ran, want.slept, want.queued)
            assert parts["behind"] + parts["waking"] == want.waited
            assert parts["behind"] == want.behind.total()


def test_the_seed_is_the_one_nearest_to_the_medians(comparison: Comparison) -> None:
    found, rule = typical_seed(comparison, "cfs", "eevdf")
    assert found is not None
    assert "probe.latency.p99 is nearest to the median of cfs and of eevdf" in rule
    values = {c.name: [c.runs[s].metrics["probe.latency.p99"] for s in comparison.seeds] for c in comparison.columns}
    middles = {name: statistics.median(own) for name, own in values.items()}

    def far(i: int) -> float:
        return sum(abs(math.log(own[i] / middles[name])) for name, own in values.items())

    assert found == comparison.seeds[min(range(len(comparison.seeds)), key=far)]


def test_bands_are_cut_at_buckets() -> None:
    one = Series("us", 1000, None, None, (), tuple((float(i), 10) for i in range(1, 101)))
    assert bands([one]) == ((99_001, LONGEST_NS), (40_001, 60_000))
    assert bands([one, one]) == bands([one])
    few = Series("ms", 3, None, None, (), ((1.0, 1), (2.0, 1), (5.0, 1)))
    assert bands([few])[0] == (0, LONGEST_NS), "fewer samples than FEWEST are all slow"


def test_a_page_says_the_cause(look: Closer) -> None:
    for tail in look.tails:
        part, of_it = dominant(tail.slow, tail.middle)
        assert part == "behind"
        assert of_it > 0.5
        text = cause(tail, look.metric)
        assert text.startswith(f"{tail.variant}: the slowest 1% of probe.latency (")
        assert "waiting for a CPU behind other tasks: hackbench (" in text
        seeds = re.search(r"It is the largest part in (\d) of the (\d) seeds", text)
        assert seeds is not None
        assert 2 * int(seeds[1]) > int(seeds[2])
    assert difference(*look.tails).startswith("From cfs to eevdf the slowest 1% become ")
    assert EVIL not in causes(look.tails, EVIL)


def test_a_first_difference_in_the_warm_up_says_so(look: Closer) -> None:
    assert look.divergence is not None
    for at, inside in ((9_999_999, True), (10_000_000, False)):
        found = replace(look, divergence={**look.divergence, "time_ns": at})
        text = " ".join(closer_look(found))
        assert ("in the warm-up of 10 ms, which is not measured" in text) is inside


def test_the_legend_has_vcpus_only_with_guests(look: Closer) -> None:
    assert "the vCPU waits" not in " ".join(closer_look(look))
    assert "the vCPU waits" in timelines([], [], guests=True)


EVIL = "<script>alert(1)</script>"


def test_the_time_in_a_queue_is_not_the_tasks() -> None:
    """A request arrives at 100, its thread takes it at 400, after another request, and is preempted once."""
    lane = Lane("CPU 0", [Slice(0, 450, 0, True), Slice(450, 500, 1, False), Slice(500, 600, 0, False)])
    timeline = Timeline([lane], [(5, "web"), (6, "hog")], [])
    found = account(timeline, Waited(500, 600, 5, 0, 300))
    assert (found.queued, found.ran, found.waited, found.slept) == (300, 150, 50, 0)


def test_the_parts_of_one_sample_are_listed_longest_first() -> None:
    parts = Parts(500, Counter(queued=300, ran=150, behind=50, slept=0), before=Counter(hog=50), in_queue=300)
    text = where_it_went(parts)
    first, *rest = text.split("; ")
    assert first == "in a queue while its thread ran 0.000300 ms"
    assert rest == ["running 0.000150 ms", "behind other tasks 0.000050 ms (hog (100%))"]
    sample = Sample(600, 5, "web", "CPU 0", parts)
    assert middle(sample) == 500


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


POOL = """
machine = "laptop-8"
duration = "200ms"
workload = [{ name = "web", task = [
    { name = "arrivals", program = [{ loop = "forever", do = [
        { timer = "next", period = "1ms", mode = "absolute" },
        { begin = "wait", at = "next" },
        { send = "requests", sample = "wait" },
    ] }] },
    { name = "worker", program = [{ loop = "forever", do = [
        { receive = "requests", sample = "wait" },
        { end = "wait" },
        { run = "1200us" },
    ] }] },
] }]
variant = [{ name = "one", kernel = "6.12" }]
metric = [{ of = "web.wait", stat = "p99"QUEUEING }]
"""


@pytest.mark.parametrize("declared", [False, True])
def test_time_in_a_queue_is_a_property_of_the_metric(declared: bool) -> None:
    """One worker is too slow for its requests, so that they wait longer and longer while it runs."""
    engine = native_engine()
    text = POOL.replace("QUEUEING", ", queueing = true" if declared else "")
    found = engine.tail(engine.loads(text, "pool.toml", {}), "one", 1, "web.wait", [(0, LONGEST_NS)])
    band = found["bands"][0]
    assert (band["parts"]["ran"] == 0) is declared
    if declared:
        assert band["in_queue"] == band["ns"]
        assert band["parts"]["queued"] > 0.99 * band["ns"]
        running, runnable, asleep, throttled = band["threads"]
        assert running > 0.9 * (running + runnable + asleep)
        assert throttled == 0
        first, last = (found["tenths"][i][1] / found["tenths"][i][0] for i in (0, 9))
        assert last > 5 * first


TIER = """
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "400ms"
noise = false
workload = [
    { name = "web", task = [
        { name = "client", program = [{ loop = "forever", do = [
            { timer = "next", period = "20ms" },
            { begin = "latency" },
            { post = "request" },
            { wait = "answer" },
            { end = "latency" },
        ] }] },
        { name = "worker", nice = 19, program = [{ loop = "forever", do = [
            { wait = "request" },
            { run = "100us" },
            { post = "answer" },
        ] }] },
    ] },
    { use = "hog" },
]
variant = [{ name = "one", kernel = "6.1" }]
"""


def test_the_wait_of_the_worker_is_that_of_the_request() -> None:
    """The client sleeps while its worker, of nice 19, waits behind the hog."""
    engine = native_engine()
    found = engine.tail(engine.loads(TIER, "tier.toml", {}), "one", 1, "web.latency", [(0, LONGEST_NS)])
    band = found["bands"][0]
    assert band["count"] > 5
    assert sum(band["parts"].values()) == band["ns"]
    assert band["parts"]["behind"] > 0.8 * band["ns"]
    assert band["before"].get("hog", 0) > 0.8 * band["parts"]["behind"]
    assert band["servers"]["worker"] == band["parts"]["served"] >= band["count"] * 100_000
    assert band["parts"]["slept"] == 0


QUOTA = """
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "1s"
noise = false
cgroup = [{ name = "web", quota = "20ms", period = "100ms" }]
workload = [
    { use = "cyclictest", name = "probe", cgroup = "web", interval = "1ms" },
    { use = "hog", name = "limited", cgroup = "web" },
    { use = "hog", name = "free" },
]
variant = [{ name = "one", kernel = "KERNEL" }]
"""


@pytest.mark.parametrize("kernel", ["5.2", "6.1", "6.12.107", "6.18.2", "7.2"])
def test_throttled_time_is_named_by_its_group(kernel: str) -> None:
    """The group may run for 20 ms of every 100 ms, and its hog uses all of that."""
    engine = native_engine()
    text = QUOTA.replace("KERNEL", kernel)
    found = engine.tail(engine.loads(text, "quota.toml", {}), "one", 1, "probe.latency", [(20_000_000, LONGEST_NS)])
    band = found["bands"][0]
    assert band["count"] >= 5
    assert band["pools"] == {"/web": band["parts"]["throttled"]}
    assert band["parts"]["throttled"] > 0.9 * band["ns"]
    assert found["quota"] is False


REAL_TIME = """
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "3s"
noise = false
workload = [
    { use = "cyclictest", name = "probe", interval = "1ms", priority = 20 },
    { use = "hog", policy = "fifo:10" },
]
variant = [{ name = "one", kernel = "6.1" }]
"""


def test_real_time_throttling_is_named() -> None:
    """The class may run for 950 ms of every second; nothing else is runnable in the rest."""
    engine = native_engine()
    found = engine.tail(engine.loads(REAL_TIME, "rt.toml", {}), "one", 1, "probe.latency", [(10_000_000, LONGEST_NS)])
    band = found["bands"][0]
    assert band["count"] >= 2
    assert band["pools"] == {"the real-time class": band["parts"]["throttled"]}
    assert band["parts"]["throttled"] > 0.9 * band["ns"]
    assert band["parts"]["waking"] < 0.01 * band["ns"]


@pytest.mark.parametrize("of", ['"load.time"', '"sched.wakeup_latency", stat = "p99"'])
def test_what_has_no_samples_of_time_is_no_queue(of: str) -> None:
    text = SCENARIO.replace('"probe.latency", stat = "p99"', f"{of}, queueing = true")
    with pytest.raises(ScenarioError, match=r"no samples of time|only a metric of a workload"):
        native_engine().loads(text, "small.toml", {})


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
    assert found.metric == "probe.latency"
    for slow in found.slowest:
        assert slow.sample.lane.startswith("vm ")
        assert slow.answer is not None, slow.trouble
    for tail in found.tails:
        assert dominant(tail.slow, tail.middle)[0] == "stolen"
        assert set(tail.slow.parts.thieves) <= {"hog", "vm"}
        assert [load.kernel for load in tail.seeds[0].loads] == ["", "vm"]


def test_every_variant_has_its_cause_and_the_pair_its_detail(tmp_path: Path) -> None:
    third = '{ name = "third", kernel = "6.1", knobs = { wakeup_granularity = "2ms" } }'
    text = PROBE_IN_A_GUEST.replace('kernel = "6.12.0" }]', f'kernel = "6.12.0" }}, {third}]')
    (tmp_path / "three.toml").write_text(text)
    found = closer(native_engine(), schedlab.compare(tmp_path / "three.toml", out=tmp_path / "r"))
    assert isinstance(found, Closer), found
    assert [tail.variant for tail in found.tails][: len(found.pair)] == list(found.pair)
    assert {tail.variant for tail in found.tails} > {*found.pair}
    assert {slow.variant for slow in found.slowest} == {*found.pair} == {*found.timelines}


def test_a_share_has_no_exponent() -> None:
    shown = [share(part, 1e8) for part in (0, 80, 1_200, 3_000_000, 9_600_000, 1e8)]
    assert shown == ["0%", "<0.001%", "0.001%", "3%", "10%", "100%"]
