"""Timelines: what the reduction of a trace leaves, what a page holds of it, and how a browser shows it."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fake_engine
from browser import CLIPPED, OVERFLOW, OVERLAPPING, WIDTHS, Browser
from schedlab.closer import Closer, Slow
from schedlab.render.closer import closer_look
from schedlab.render.page import document as whole_page
from schedlab.render.timeline import hue, script, still, timelines
from schedlab.scenario import Scenario
from schedlab.tail import Parts, Sample
from schedlab.timeline import Timeline, Waited, common_windows, of_traces
from schedlab.timeline.document import BINS, document, packed
from schedlab.timeline.reduce import SLOWEST, WAKEUP_LATENCY
from schedlab.timeline.vcpus import VcpuSpans, pieces, vcpu_spans

EVIL = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'


def line(cpu: int, ns: int, event: str, fields: str, pid: int = 0) -> str:
    return f"          some-{pid}       [{cpu:03d}] d..2.     {ns // 10**9}.{ns % 10**9:09d}: {event}: {fields}\n"


def switch(cpu: int, ns: int, prev: int, state: str, entering: int, name: str = "task") -> str:
    words = f"prev_comm={name} prev_pid={prev} prev_prio=120 prev_state={state} ==> "
    return line(cpu, ns, "sched_switch", words + f"next_comm={name} next_pid={entering} next_prio=120", prev)


def preempted(cpu: int, ns: int, prev: int, name: str, entering: int) -> str:
    words = f"prev_comm={name} prev_pid={prev} prev_prio=120 prev_state=R ==> next_comm=other next_pid={entering}"
    return line(cpu, ns, "sched_switch", f"{words} next_prio=120", prev)


def wake(cpu: int, ns: int, pid: int, to: int, by: int = 0, event: str = "sched_wakeup", name: str = "task") -> str:
    return line(cpu, ns, event, f"comm={name} pid={pid} prio=120 target_cpu={to:03d}", by)


HEAD = "# tracer: nop\n# kernel 6.12.0 cpus 2\n# metric 0 probe.latency ns\n# metric 1 load.count count\n"
SMALL = [
    HEAD,
    switch(0, 1_000, 0, "R", 7),
    wake(0, 2_000, 8, 0, by=7, event="sched_waking"),
    wake(0, 2_100, 8, 0),
    switch(0, 5_000, 7, "R+", 8),
    line(0, 6_000, "schedlab_sample", "pid=8 metric=0 value=3500", 8),
    line(0, 6_000, "schedlab_sample", "pid=8 metric=1 value=9999", 8),
    switch(0, 7_000, 8, "S", 7),
    line(0, 8_000, "sched_migrate_task", "comm=task pid=8 prio=120 orig_cpu=0 dest_cpu=1"),
    switch(0, 9_000, 7, "S", 0),
]


@pytest.fixture
def small(tmp_path: Path) -> Timeline:
    (tmp_path / "t.ftrace").write_text("".join(SMALL))
    return of_traces({"": tmp_path / "t.ftrace"})


def test_a_small_trace(small: Timeline) -> None:
    first, second = small.lanes
    names = [(small.tasks[s.task][0], s.start, s.end, s.preempted) for s in first.slices]
    assert names == [(7, 1_000, 5_000, True), (8, 5_000, 7_000, False), (7, 7_000, 9_000, False)]
    assert first.depth == [(2_100, 1), (5_000, 1), (7_000, 0)] or first.depth == [(2_100, 1), (7_000, 0)]
    assert second.gaps == [(2_100, 7_000)], "CPU 1 idles while a task waits on CPU 0"
    assert first.gaps == second.slices == []
    (woken,) = small.wakes
    assert (woken.at, woken.lane, woken.ran_lane, woken.ran_at) == (2_000, 0, 0, 5_000)
    assert small.slowest == {
        WAKEUP_LATENCY: [Waited(3_000, 5_000, 8, 0)],
        "probe.latency": [Waited(3_500, 6_000, 8, 0)],
    }
    assert (small.start, small.end) == (1_000, 9_000)


def test_a_lane_on_which_nothing_ever_waits_is_drawn(small: Timeline) -> None:
    assert small.lanes[1].depth == []
    picture = still({"a": small}, small.start, small.end)
    assert picture.count('class="queue"') == 1
    assert picture.count('class="gap"') == 1
    assert "CPU 1" in picture


def test_lanes_of_a_guest_follow_those_of_its_host(tmp_path: Path) -> None:
    (tmp_path / "t.ftrace").write_text("".join(SMALL))
    (tmp_path / "t-vm.ftrace").write_text("# kernel 6.1 cpus 1\n" + switch(0, 3_000, 0, "R", 7, "inner"))
    found = of_traces({"": tmp_path / "t.ftrace", "vm": tmp_path / "t-vm.ftrace"})
    assert [lane.name for lane in found.lanes] == ["CPU 0", "CPU 1", "vm CPU 0"]
    assert [found.tasks[s.task] for s in found.lanes[2].slices] == [(7, "inner")]
    assert found.lanes[2].slices[0].end == found.end


def test_what_is_no_trace_is_no_timeline(tmp_path: Path) -> None:
    (tmp_path / "x.ftrace").write_text(
        "nothing\n: sched_switch: of a trace\n\x00\xff" + line(0, 5, "sched_switch", "?")
    )
    assert of_traces({"": tmp_path / "x.ftrace"}).slices == 0


WOKEN = [HEAD, switch(0, 1_000, 7, "S", 0), wake(0, 2_000, 8, 0, event="sched_waking"), wake(0, 2_100, 8, 0)]
LATE = [switch(0, 508_000, 9, "S", 8), switch(0, 509_000, 8, "S", 0)]
ELSEWHERE = [switch(1, 1_500, 0, "R", 5), switch(1, 2_500, 6, "S", 0), switch(0, 3_000, 0, "R", 8)]
BROKEN: list[tuple[str, list[str], int, list[int], list[tuple[int, int]]]] = [
    # the records after a wakeup, gaps, latencies of wakeups, slices that begin after it
    ("complete", [switch(0, 3_000, 0, "R", 8), switch(0, 4_000, 8, "S", 0)], 0, [1_000], [(3_000, 4_000)]),
    ("task 8 has run, and no record shows that", LATE, 1, [], [(508_000, 509_000)]),
    ("on another CPU", ELSEWHERE, 1, [], [(3_000, 3_000)]),
]


@pytest.mark.parametrize(("what", "after", "breaks", "latencies", "slices"), BROKEN, ids=[row[0] for row in BROKEN])
def test_nothing_is_measured_across_missing_records(
    what: str, after: list[str], breaks: int, latencies: list[int], slices: list[tuple[int, int]], tmp_path: Path
) -> None:
    (tmp_path / "t.ftrace").write_text("".join([*WOKEN, *after]))
    found = of_traces({"": tmp_path / "t.ftrace"})
    assert found.breaks == breaks
    assert [waited.ns for waited in found.slowest.get("sched.wakeup_latency", [])] == latencies
    assert [(s.start, s.end) for lane in found.lanes for s in lane.slices if s.start > 1_500] == slices


EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from("RSw"), st.integers(1, 50)), max_size=60
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(EVENTS)
def test_gaps_are_when_a_cpu_idles_and_a_task_waits(steps: list[tuple[int, int, str, int]]) -> None:
    """Against the definition, looked at between every two events."""
    timeline = Timeline()
    lanes = timeline.kernel("")
    lanes.lane(3)
    running, waiting, now = [0] * 4, [set[int]() for _ in range(4)], 0
    lost = [0] * 4
    for cpu, pid, what, wait in steps:
        queued = any(pid in w for w in waiting)
        if (pid in running and pid) or (what == "w" and (queued or not pid)):
            continue  # no kernel emits that
        stuck = sum(len(w) for w in waiting) - sum(not r and bool(w) for r, w in zip(running, waiting, strict=True))
        for i in range(4):
            lost[i] += wait if stuck > 0 and not running[i] and not waiting[i] else 0
        now += wait
        if what == "w":
            waiting[cpu].add(pid)
            lanes.wakeup(now, pid, cpu)
            continue
        prev = running[cpu]
        lanes.switch(now, cpu, prev, what, pid)
        for w in waiting:
            w.discard(pid)
        if prev and what == "R":
            waiting[cpu].add(prev)
        running[cpu] = pid
    timeline.finish()
    assert [sum(b - a for a, b in lane.gaps) for lane in timeline.lanes] == lost


def busy(slices: int, lanes: int = 3, name: str = "hackbench") -> Timeline:
    """A machine on which every slice takes 10 us, and tasks wake each other."""
    timeline = Timeline()
    kernel = timeline.kernel("")
    running = [0] * lanes
    for i in range(slices):
        now, cpu, pid = 1_000_000 + 10_000 * (i // lanes), i % lanes, 1 + i % 40
        kernel.waking(now - 500 * (i % 7), (cpu + 1) % lanes, 0, pid)
        kernel.wakeup(now - 100, pid, cpu)
        kernel.switch(now, cpu, running[cpu], "RS"[i % 2], pid)
        kernel.name(pid, name)
        running[cpu] = pid
    timeline.finish()
    return timeline


def test_windows_are_where_no_timeline_misses_anything() -> None:
    a, b = busy(40), busy(30)
    assert common_windows([a, b]) == [(min(a.start, b.start), max(a.end, b.end))]
    a.windows, b.windows = [(10, 50), (60, 90), (200, 210)], [(20, 70), (65, 80), (211, 220)]
    assert common_windows([a, b]) == [(20, 50), (65, 80)]


def test_the_overview_is_the_same_from_bins_and_from_slices() -> None:
    whole = busy(3_000)
    part = busy(3_000)
    for lane in part.lanes:
        lane.bin_ns = 1_000
        lane.busy = [0] * (part.end // 1_000 + 1)
        for s in lane.slices:
            for at in range(s.start, s.end, 500):
                lane.busy[at // 1_000] += 500
        lane.slices = []
    for x, y in zip(document("a", whole, [])["lanes"], document("a", part, [])["lanes"], strict=True):
        assert len(x["busy"]) == len(y["busy"]) == BINS
        assert all(abs(int(i) - int(j)) <= 1 for i, j in zip(x["busy"], y["busy"], strict=True))


def test_a_packed_document_says_what_the_timeline_does(small: Timeline) -> None:
    found = json.loads(gzip.decompress(base64.b64decode(packed(document("x", small, [(small.start, small.end)])))))
    lane, start, rebuilt = found["lanes"][0]["slices"], 0, []
    for i in range(0, len(lane), 3):
        start += lane[i]
        rebuilt.append((start, start + lane[i + 1], found["tasks"][lane[i + 2] >> 1][0], bool(lane[i + 2] & 1)))
    assert rebuilt == [(s.start, s.end, small.tasks[s.task][0], s.preempted) for s in small.lanes[0].slices]


def test_only_the_slowest_are_kept() -> None:
    found = busy(900).slowest[WAKEUP_LATENCY]
    assert len(found) == SLOWEST
    assert found == sorted(found, reverse=True)


def one_sample(of: Waited, name: str) -> Sample:
    return Sample(of.at_ns, 3, name, "CPU 0", Parts(of.ns, Counter(behind=of.ns)))


def look(slices: int = 3_000, name: str = "hackbench") -> str:
    """A page with timelines and nothing else."""
    timelines = {"cfs": busy(slices, name=name), "eevdf": busy(slices - 500, name=name)}
    slowest = [
        Slow(variant, one_sample(t.slowest[WAKEUP_LATENCY][0], name), None, f"no answer about {name}")
        for variant, t in timelines.items()
    ]
    scenario = Scenario.from_description(fake_engine.describe())
    found = Closer(scenario, 1, "the first", ("cfs", "eevdf"), timelines, None, WAKEUP_LATENCY, (), slowest)
    return whole_page(
        "timelines",
        ["<h1>Timelines</h1>", *closer_look(found), still(timelines, 1_000_000, 1_200_000)],
        extra=[script()],
    )


def ready(browser: Browser) -> Any:
    """The element of the timeline once it is drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    found = browser.driver.find_element("css selector", "[data-timeline]")
    WebDriverWait(browser.driver, 30).until(lambda _: found.get_attribute("data-ready"))
    return found


def span(element: Any) -> tuple[int, int]:
    return int(element.get_attribute("data-from")), int(element.get_attribute("data-to"))


def settled(browser: Browser) -> None:
    """Two frames later."""
    browser.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_a_browser_draws_the_timeline(width: int, browser: Browser) -> None:
    browser.open(look(), width, dark=width == 1280)
    ready(browser)
    inked = browser.run(
        "const canvas = document.querySelector('canvas'), data = canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data;"
        "const seen = new Set(); for (let i = 0; i < data.length; i += 4) "
        "seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]); return seen.size;"
    )
    assert inked > 20, "the canvas shows more than a ground"
    assert browser.run(OVERFLOW) == 0
    assert browser.run(CLIPPED) == browser.run(OVERLAPPING) == []
    assert browser.complaints() == []
    assert browser.audit() == []


def test_keys_and_buttons_move_both_timelines(browser: Browser) -> None:
    browser.open(look(), 1280)
    found = ready(browser)
    canvas = found.find_element("css selector", "canvas")
    labels = [b.text for b in found.find_elements("css selector", "button")]
    assert labels == ["Go to: slowest in cfs", "Go to: slowest in eevdf", "Zoom in", "Zoom out", "Whole run"]
    for key, check in (
        ("-", lambda old, new: new[1] - new[0] > old[1] - old[0]),
        ("w", lambda old, new: new[1] - new[0] < old[1] - old[0]),
        ("d", lambda old, new: new[0] > old[0] and new[1] > old[1]),
        ("a", lambda old, new: new[0] < old[0] and new[1] < old[1]),
    ):
        old = span(found)
        canvas.send_keys(key)
        settled(browser)
        assert check(old, span(found)), key
    for button in found.find_elements("css selector", "button"):
        old = span(found)
        button.click()
        settled(browser)
        assert span(found) != old, button.text
    assert span(found)[0] == 990_000 or span(found)[0] <= 1_000_000, "the whole run"
    found.find_element("css selector", "details.visible summary").click()
    browser.driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert found.find_element("css selector", "details.visible table caption").text
    assert browser.complaints() == []


def test_names_of_tasks_run_no_script(browser: Browser) -> None:
    browser.open(look(name=EVIL), 1280)
    found = ready(browser)
    found.find_element("css selector", "details.visible summary").click()
    browser.driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert EVIL in found.find_element("css selector", "details.visible table").get_attribute("textContent")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.complaints() == []  # an alert would have raised


def test_colours_are_the_same_in_both_pictures(browser: Browser) -> None:
    names = ["hackbench", "load/hackbench", "ä ö", "", "cyclictest"]
    browser.open(look(), 400)
    script_ = script().split(">", 1)[1].split("const decode")[0].split("const hue")[0]
    source = (Path(whole_page.__code__.co_filename).parent / "canvas" / "data.js").read_text()
    body = "const hue" + source.split("const hue")[1].split("// The first index")[0]
    assert script_
    assert browser.run(f"{body} return arguments[0].map(hue);", names) == [hue(name) for name in names]


def test_a_lane_of_a_guest_shows_when_its_vcpu_has_no_cpu(tmp_path: Path) -> None:
    """The thread vm/0 runs, is preempted by 8, and runs again; the guest's task is drawn only while the thread runs."""
    host = [
        "# kernel 6.1 cpus 1\n",
        switch(0, 1_000, 0, "R", 7, "vm/0"),
        switch(0, 3_000, 7, "R", 8, "other"),
        switch(0, 6_000, 8, "S", 7, "vm/0"),
        switch(0, 9_000, 7, "S", 0, "vm/0"),
        switch(0, 9_500, 0, "R", 8, "other"),
    ]
    (tmp_path / "t.ftrace").write_text("".join(host))
    (tmp_path / "t-vm.ftrace").write_text("# kernel 6.1 cpus 1\n" + switch(0, 2_000, 0, "R", 7, "inner"))
    found = of_traces({"": tmp_path / "t.ftrace", "vm": tmp_path / "t-vm.ftrace"})
    first, guest = found.lanes
    assert vcpu_spans(found, first) is None
    spans = vcpu_spans(found, guest)
    assert spans == VcpuSpans(on=((1_000, 3_000), (6_000, 9_000)), stolen=((3_000, 6_000),))
    assert [(s.start, s.end) for s in pieces(guest.slices, spans)] == [(2_000, 3_000), (6_000, 9_000)]
    assert still({"a": found}, 1_000, 9_500).count('class="stolen"') == 1


def test_a_lane_of_an_inner_guest_shows_when_both_vcpus_run(tmp_path: Path) -> None:
    """The host takes the CPU of outer/0, which runs inner/0, from 3 to 6 us; outer/0 runs another task until 8 us."""
    host = [
        "# kernel 6.1 cpus 1\n",
        switch(0, 1_000, 0, "R", 7, "outer/0"),
        switch(0, 3_000, 7, "R", 8, "other"),
        switch(0, 6_000, 8, "S", 7, "outer/0"),
        switch(0, 9_000, 7, "S", 0, "outer/0"),
        switch(0, 9_500, 0, "R", 8, "other"),
    ]
    outer = [
        "# kernel 6.1 cpus 1\n",
        switch(0, 2_000, 0, "R", 5, "inner/0"),
        switch(0, 7_000, 5, "R", 4, "another"),
        switch(0, 8_000, 4, "S", 5, "inner/0"),
        switch(0, 8_500, 5, "S", 0, "inner/0"),
        switch(0, 8_600, 0, "R", 4, "another"),
    ]
    (tmp_path / "t.ftrace").write_text("".join(host))
    (tmp_path / "t-outer.ftrace").write_text("".join(outer))
    (tmp_path / "t-inner.ftrace").write_text("# kernel 6.1 cpus 1\n" + switch(0, 2_500, 0, "R", 3, "task"))
    names = ("", "outer", "inner")
    found = of_traces({name: tmp_path / f"t{'-' * bool(name)}{name}.ftrace" for name in names})
    spans = vcpu_spans(found, found.lanes[2])
    assert spans == VcpuSpans(on=((2_000, 3_000), (6_000, 7_000), (8_000, 8_500)), stolen=((7_000, 8_000),))


def test_a_vcpu_that_never_gets_a_cpu_again_is_marked_to_the_end(tmp_path: Path) -> None:
    host = ["# kernel 6.1 cpus 1\n", switch(0, 1_000, 0, "R", 7, "vm/0"), preempted(0, 3_000, 7, "vm/0", 8)]
    (tmp_path / "t.ftrace").write_text("".join([*host, wake(0, 9_000, 9, 0)]))
    (tmp_path / "t-vm.ftrace").write_text("# kernel 6.1 cpus 1\n" + switch(0, 2_000, 0, "R", 7, "inner"))
    found = of_traces({"": tmp_path / "t.ftrace", "vm": tmp_path / "t-vm.ftrace"})
    spans = vcpu_spans(found, found.lanes[1])
    assert spans is not None
    assert spans.stolen == ((3_000, found.end),) == ((3_000, 9_000),)
    assert document("a", found, [(0, 9_000)])["lanes"][1]["stolen"] == [3_000, 6_000]
    assert document("a", found, [(0, 2_000)])["lanes"][1]["stolen"] == []


def test_a_browser_draws_stolen_time(tmp_path: Path, browser: Browser) -> None:
    """The lane of the guest is red where its vCPU has no CPU, as in the still picture."""
    host = ["# kernel 6.1 cpus 1\n", switch(0, 1_000_000, 0, "R", 7, "vm/0"), preempted(0, 5_000_000, 7, "vm/0", 8)]
    (tmp_path / "t.ftrace").write_text("".join([*host, wake(0, 9_000_000, 9, 0)]))
    (tmp_path / "t-vm.ftrace").write_text("# kernel 6.1 cpus 1\n" + switch(0, 9_000_000, 0, "R", 0, "inner"))
    found = of_traces({"": tmp_path / "t.ftrace", "vm": tmp_path / "t-vm.ftrace"})
    drawn = timelines([document("one", found, [(0, found.end)])], [])
    browser.open(whole_page("stolen", ["<h1>Stolen</h1>", drawn], extra=[script()]), 1280)
    ready(browser)
    settled(browser)
    # Along the middle of the last lane, above the strip of the queue; the label of the lane is 78 pixels wide.
    shades = browser.run(
        "const canvas = document.querySelector('canvas'), width = canvas.width - 78;"
        "const row = canvas.getContext('2d').getImageData(78, canvas.height - 21, width, 1).data;"
        "return [0.2, 0.8].map((share) => [...row.slice(4 * Math.round(share * width)).slice(0, 3)]);"
    )
    calm, stolen = shades
    assert stolen[0] > stolen[1] + 30, shades
    assert abs(calm[0] - calm[1]) < 10, shades
    assert browser.complaints() == []
