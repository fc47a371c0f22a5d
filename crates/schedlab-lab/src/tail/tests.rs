//! Hand-made runs whose samples have known parts.

use schedlab_metrics::{MetricEntry, Plan};
use schedlab_model::{CpuId, KernelId, Nanos, Pid};
use schedlab_trace::{Event, Flags, Kind, Sink, TaskState};
use schedlab_workload::{Better, MetricDecl, MetricKind, Unit};
use serde_json::{json, Value};

use super::reduce::Reduction;
use super::samples::{By, Samples};
use super::Question;

const WEB: Pid = 5;
const HOG: Pid = 6;

fn plan() -> Plan {
    let entry = |name: &str, queueing| {
        let decl = MetricDecl {
            name: name.into(),
            help: String::new(),
            unit: Unit::Microseconds,
            better: Better::Lower,
            kind: MetricKind::Samples,
            default_stats: vec![],
            divide: 1,
            queueing,
        };
        MetricEntry { workload: "web".into(), decl }
    };
    Plan { metrics: vec![entry("latency", false), entry("until_taken", true)], ..Plan::default() }
}

fn asked(question: &Question) -> Reduction {
    Reduction::new(vec![Samples::new(&question.metric, By::Bands(question.bands.clone()), 0, 1_000)], 0)
}

fn answer(reduction: Reduction) -> Value {
    let kept = reduction.finish(1_000);
    let question = Question { metric: kept.metrics[0].metric.clone(), bands: vec![(0, 10_000)] };
    kept.answer(&question).unwrap()
}

fn reduction(metric: &str, cpus: usize) -> Reduction {
    let question = Question { metric: metric.into(), bands: vec![(0, 10_000)] };
    let mut reduction = asked(&question);
    reduction.kernel("", 0, cpus, &plan());
    for (pid, name) in [(WEB, "web"), (HOG, "hog")] {
        reduction.name(KernelId::FIRST, pid, name);
    }
    reduction
}

fn at(time: Nanos, kernel: u16, cpu: u32, kind: Kind) -> Event {
    Event { time, kernel: KernelId(kernel), cpu: CpuId(cpu), kind }
}

fn switch(time: Nanos, cpu: u32, prev: Pid, prev_state: TaskState, next: Pid) -> Event {
    at(time, 0, cpu, Kind::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
}

fn woken(time: Nanos, cpu: u32, pid: Pid) -> [Event; 2] {
    let target_cpu = CpuId(0);
    [
        at(time, 0, cpu, Kind::Waking { pid, prio: 120, target_cpu }),
        at(time, 0, 0, Kind::Wakeup { pid, prio: 120, target_cpu }),
    ]
}

fn sample(time: Nanos, metric: u16, value: Nanos) -> Event {
    at(time, 0, 0, Kind::Sample { pid: WEB, metric, value })
}

use TaskState::{Running, Sleeping};

/// The request is due at 100 and taken at 300. The thread runs to 350, is preempted until 420, runs to 450, sleeps, is
/// woken at 470 by a task on CPU 1, waits until 500 behind the hog, which ran from 460 to 490, and is done at 560.
fn request() -> Vec<Event> {
    let mut events = vec![switch(10, 0, 0, Running, WEB), switch(440, 1, 0, Running, HOG)];
    events.push(sample(300, 1, 200));
    events.push(switch(350, 0, WEB, Running, HOG));
    events.push(switch(420, 0, HOG, Sleeping, WEB));
    events.push(switch(450, 0, WEB, Sleeping, 0));
    events.push(switch(460, 0, 0, Running, 7));
    events.extend(woken(470, 1, WEB));
    events.push(switch(490, 0, 7, Sleeping, 0));
    events.push(switch(500, 0, 0, Running, WEB));
    events.push(sample(560, 0, 460));
    events.sort_by_key(|event| event.time);
    events
}

/// All parts; those that are not given are 0.
fn parts(some: &[(&str, Nanos)]) -> Value {
    let all = ["queued", "throttled", "behind", "waking", "stolen", "ran", "served", "slept", "unknown"];
    let zero = all.iter().map(|part| ((*part).to_owned(), json!(0)));
    zero.chain(some.iter().map(|(part, ns)| ((*part).to_owned(), json!(ns)))).collect::<serde_json::Map<_, _>>().into()
}

fn found(metric: &str, cpus: usize) -> Value {
    let mut reduction = reduction(metric, cpus);
    reduction.name(KernelId::FIRST, 7, "cc1");
    request().iter().for_each(|event| reduction.event(event));
    answer(reduction)
}

#[test]
fn the_parts_of_a_request_add_up() {
    let found = found("web.latency", 2);
    let band = &found["bands"][0];
    let want = parts(&[("queued", 200), ("behind", 90), ("waking", 10), ("ran", 140), ("served", 20)]);
    assert_eq!(band["parts"], want);
    assert_eq!((&band["count"], &band["ns"]), (&json!(1), &json!(460)));
    assert_eq!(band["before"], json!({ "hog": 70, "cc1": 20 }));
    assert_eq!((&band["servers"], &band["wakers"]), (&json!({ "hog": 20 }), &json!([])));
    assert_eq!((&band["in_queue"], &band["waiters"]), (&json!(200), &json!({ "web": 100 })));
    assert_eq!((&band["tasks"], &band["lanes"]), (&json!({ "web": 1 }), &json!({ "CPU 0": 1 })));
    assert_eq!(band["tenths"], json!([0, 0, 0, 0, 0, 1, 0, 0, 0, 0]));
    // CPU 1 was idle until 440, so while the hog ran until 420, and busy while cc1 did.
    assert_eq!(band["elsewhere"], 70);
    assert_eq!(found["slowest"][0]["parts"], want);
    assert_eq!(found["slowest"][0]["task"], "web");
}

#[test]
fn a_sample_of_time_in_a_queue_is_that_altogether() {
    let found = found("web.until_taken", 2);
    assert_eq!(found["bands"][0]["parts"]["queued"], 200);
    assert_eq!(found["bands"][0]["parts"]["ran"], 0);
}

/// The thread takes a second request that arrived at 320, so that its own past is known by then.
#[test]
fn what_the_threads_did_meanwhile_is_counted() {
    let mut reduction = reduction("web.until_taken", 2);
    request().iter().for_each(|event| reduction.event(event));
    reduction.event(&sample(570, 1, 250));
    let found = answer(reduction);
    // From 320 to 570: ran 30 + 30 + 70, waited 70 + 30, slept 20.
    assert_eq!(found["slowest"][0]["threads"], json!([130, 100, 20, 0]));
}

#[test]
fn wakeups_are_samples_without_a_queue() {
    let found = found("sched.wakeup_latency", 2);
    assert_eq!(found["bands"][0]["parts"]["behind"], 20);
    assert_eq!(found["bands"][0]["parts"]["waking"], 10);
}

#[test]
fn an_interrupt_that_wakes_is_not_the_task_it_interrupts() {
    let mut reduction = reduction("web.latency", 2);
    for event in request() {
        if matches!(event.kind, Kind::Waking { .. }) {
            reduction.flags(Flags::parse("d.h2.").unwrap());
        }
        reduction.event(&event);
    }
    assert_eq!(answer(reduction)["bands"][0]["wakers"], json!([["interrupt", "", 20]]));
}

/// The vCPU runs on the host from 100 to 200 and from 300 to 400; in between the hog has its CPU. In the guest the task
/// runs all the time.
#[test]
fn a_vcpu_without_a_cpu_is_time_stolen() {
    let question = Question { metric: "web.latency".into(), bands: vec![(0, 10_000)] };
    let mut reduction = asked(&question);
    reduction.kernel("", 0, 1, &Plan::default());
    reduction.kernel("vm", 0, 1, &plan());
    reduction.name(KernelId(0), 9, "vm/0");
    reduction.name(KernelId(0), HOG, "hog");
    let in_guest = |event: Event| Event { kernel: KernelId(1), ..event };
    for event in [
        switch(100, 0, 0, Running, 9),
        in_guest(switch(110, 0, 0, Running, WEB)),
        switch(200, 0, 9, Running, HOG),
        switch(300, 0, HOG, Running, 9),
        in_guest(sample(390, 0, 270)),
    ] {
        reduction.event(&event);
    }
    let found = answer(reduction);
    let band = &found["bands"][0];
    let want = parts(&[("stolen", 100), ("ran", 170)]);
    assert_eq!(band["parts"], want);
    assert_eq!(band["thieves"], json!({ "hog": 100 }));
    assert_eq!(band["lanes"], json!({ "vm CPU 0": 1 }));
}

/// The timer of the task is due at 150, but its vCPU has no CPU from 140 to 300: it wakes the task at 305.
#[test]
fn a_timer_that_a_vcpu_handles_late_is_time_stolen() {
    let question = Question { metric: "web.latency".into(), bands: vec![(0, 10_000)] };
    let mut reduction = asked(&question);
    reduction.kernel("", 0, 1, &Plan::default());
    reduction.kernel("vm", 0, 1, &plan());
    reduction.name(KernelId(0), 9, "vm/0");
    reduction.name(KernelId(0), HOG, "hog");
    let in_guest = |event: Event| Event { kernel: KernelId(1), ..event };
    let [waking, wakeup] = woken(305, 0, WEB).map(in_guest);
    for event in [
        switch(100, 0, 0, Running, 9),
        in_guest(switch(110, 0, 0, Running, WEB)),
        in_guest(switch(120, 0, WEB, Sleeping, 0)),
        switch(140, 0, 9, Running, HOG),
        switch(300, 0, HOG, Running, 9),
        waking,
        wakeup,
        in_guest(switch(310, 0, 0, Running, WEB)),
        in_guest(sample(320, 0, 170)),
    ] {
        reduction.event(&event);
    }
    let found = answer(reduction);
    let want = parts(&[("waking", 5), ("stolen", 150), ("ran", 10), ("slept", 5)]);
    assert_eq!(found["bands"][0]["parts"], want);
}

/// A sample that is longer than what is remembered keeps its length.
#[test]
fn what_is_forgotten_is_unknown() {
    let stays = 4 * super::history::STAYS as Nanos;
    let mut reduction = reduction("web.latency", 1);
    for turn in 0..stays {
        reduction.event(&switch(10 * turn, 0, 0, Running, WEB));
        reduction.event(&switch(10 * turn + 5, 0, WEB, Sleeping, 0));
    }
    reduction.event(&switch(10 * stays, 0, 0, Running, WEB));
    reduction.event(&sample(10 * stays, 0, 10 * stays));
    let slow = &answer(reduction)["slowest"][0];
    let parts = slow["parts"].as_object().unwrap();
    let sum: u64 = parts.values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 10 * stays);
    assert!(parts["unknown"].as_u64().unwrap() > 5 * stays);
}

/// It waits behind the hog on CPU 0 from 100 on, and is pulled to the idle CPU 1 at 180, where it runs from 190 on.
#[test]
fn a_wait_is_behind_what_ran_where_the_task_was_queued() {
    let mut reduction = reduction("web.latency", 2);
    reduction.event(&switch(0, 0, 0, TaskState::Running, WEB));
    reduction.event(&switch(50, 0, WEB, TaskState::Sleeping, HOG));
    woken(100, 1, WEB).iter().for_each(|event| reduction.event(event));
    let moved = Kind::Migrate { pid: WEB, prio: 120, orig_cpu: CpuId(0), dest_cpu: CpuId(1) };
    reduction.event(&at(180, 0, 1, moved));
    reduction.event(&switch(190, 1, 0, TaskState::Running, WEB));
    reduction.event(&switch(200, 0, HOG, TaskState::Sleeping, 0));
    reduction.event(&sample(240, 0, 140));
    let band = &answer(reduction)["bands"][0];
    let want = parts(&[("behind", 80), ("waking", 10), ("ran", 50)]);
    assert_eq!((&band["parts"], &band["before"]), (&want, &json!({ "hog": 80 })));
}

/// The client (WEB) sends at 100 and sleeps until 400; the worker is woken on CPU 0 at 100, waits behind the hog until
/// 250, runs to 300, sleeps until its timer at 350, runs from 360 on and wakes the client at 400, which runs at 410.
fn exchange(reduction: &mut Reduction) {
    const WORKER: Pid = 7;
    reduction.name(KernelId::FIRST, WORKER, "worker");
    let mut events = vec![switch(0, 1, 0, Running, WEB), switch(0, 0, 0, Running, WORKER)];
    events.push(switch(10, 0, WORKER, Sleeping, HOG));
    events.extend(woken(100, 1, WORKER));
    events.push(switch(100, 1, WEB, Sleeping, 0));
    events.push(switch(250, 0, HOG, Running, WORKER));
    events.push(switch(300, 0, WORKER, Sleeping, 0));
    // CPU 0 is idle: an interrupt.
    events.extend(woken(350, 0, WORKER));
    events.push(switch(360, 0, 0, Running, WORKER));
    events.extend(woken(400, 0, WEB));
    events.push(switch(410, 1, 0, Running, WEB));
    events.push(sample(450, 0, 360));
    events.iter().for_each(|event| reduction.event(event));
}

/// What its worker waits for is what the request waits for.
#[test]
fn the_path_of_a_request_follows_the_task_that_serves_it() {
    let mut reduction = reduction("web.latency", 2);
    exchange(&mut reduction);
    let band = &answer(reduction)["bands"][0];
    // From 90: runs to 100; the worker waits 150 behind the hog, runs 50, sleeps 50, leaves idle in 10, runs 40; 10 to
    // wake the client, which runs 40.
    let want = parts(&[("ran", 10 + 40), ("behind", 150), ("served", 50 + 40), ("slept", 50), ("waking", 10 + 10)]);
    assert_eq!(band["parts"], want);
    assert_eq!(band["before"], json!({ "hog": 150 }));
    assert_eq!(band["waiters"], json!({ "worker": 160, "web": 10 }));
    assert_eq!((&band["servers"], &band["wakers"]), (&json!({ "worker": 90 }), &json!([["interrupt", "", 50]])));
}

/// The worker is throttled from 120 to 200: that is neither a wait behind the hog nor a task that lacks a CPU.
#[test]
fn throttled_time_is_a_part_with_the_name_of_its_group() {
    let mut reduction = reduction("web.latency", 1);
    for event in [switch(0, 0, 0, Running, WEB), switch(100, 0, WEB, Running, HOG)] {
        reduction.event(&event);
    }
    for (at, group) in [(120, Some("/web")), (200, None)] {
        let (kernel, names) = reduction.kernel_and_names(0);
        let by = group.map(|group| names.number(group));
        kernel.throttle(at, WEB, by);
    }
    reduction.event(&switch(250, 0, HOG, Running, WEB));
    reduction.event(&sample(300, 0, 300));
    let found = answer(reduction);
    let band = &found["bands"][0];
    assert_eq!(band["parts"], parts(&[("ran", 150), ("behind", 20 + 50), ("throttled", 80)]));
    assert_eq!((&band["pools"], &band["before"]), (&json!({ "/web": 80 }), &json!({ "hog": 70 })));
    // After 250 the hog waits.
    assert_eq!(found["load"][0]["cpus"][0][1], 20 + 50 + 750);
}

/// The thread that takes the request waits for a CPU in the meantime: the request waits as it does.
#[test]
fn a_request_in_a_queue_waits_for_the_cpu_of_its_thread() {
    let mut reduction = reduction("web.until_taken", 1);
    for event in [
        switch(0, 0, 0, Running, WEB),
        switch(100, 0, WEB, Running, HOG),
        switch(250, 0, HOG, Running, WEB),
        sample(300, 1, 280),
    ] {
        reduction.event(&event);
    }
    let band = &answer(reduction)["bands"][0];
    assert_eq!(band["parts"], parts(&[("queued", 80 + 50), ("behind", 150)]));
    assert_eq!((&band["in_queue"], &band["before"]), (&json!(280), &json!({ "hog": 150 })));
}
