//! Explain looks into the first guest: what a halted vCPU reads as is why a wakee goes elsewhere.

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::{explain, why, Question, TaskSelector, TaskState};
use schedlab_model::{KernelId, Nanos, Pid, MSEC, USEC};
use schedlab_scenario::Scenario;
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind, Sink};

const PAIR: &str = r#"
machine = "rpi4"
duration = "100ms"
guest = [{ name = "vm", vcpus = 4, platform = "arm64-kvm-pvsched" }]
workload = [{ use = "perf-pipe", guest = "vm" }]

[[variant]]
name = "blind"
kernel = "5.7"
guests.vm.features = { VCPU_IS_PREEMPTED = false }

[[variant]]
name = "informed"
kernel = "5.7"
"#;

#[test]
fn the_first_difference_of_a_blind_and_an_informed_guest_is_available_idle_cpu() {
    let scenario = Scenario::parse(PAIR, "pair.toml", None).unwrap();
    let [blind, informed] = ["blind", "informed"].map(|variant| scenario.run_spec(variant, 1).unwrap());
    let cancel = AtomicBool::new(false);
    assert_eq!(explain([&informed, &informed], &cancel).unwrap(), None);
    let found = explain([&blind, &informed], &cancel).unwrap().unwrap();
    assert_eq!(found.question, Question::Placement);
    let json = serde_json::to_string(&found).unwrap();
    assert!(json.contains("available_idle_cpu"), "{json}");
}

/// Three vCPUs on one CPU of the host: a wakee is often put on the wakelist of a vCPU that waits for that CPU.
const SHARED: &str = r#"
machine = "rpi4"
duration = "100ms"
guest = [{ name = "vm", vcpus = 3, platform = "arm64-kvm", cpus = "0" }]
workload = [{ use = "perf-pipe", guest = "vm" }, { use = "hog", guest = "vm" }]
variant = [{ name = "x", kernel = "6.1" }]
"#;

/// The events of the guest.
#[derive(Default)]
struct OfGuest(Vec<Event>);

impl Sink for OfGuest {
    fn event(&mut self, event: &Event) {
        if event.kernel == KernelId(1) {
            self.0.push(*event);
        }
    }
}

/// When a task was last woken, started, switched in or switched out; and whether it was on a wakelist, which has no
/// `sched_wakeup` yet.
fn last_change(events: &[Event], task: Pid, at: Nanos) -> (Option<Nanos>, bool) {
    let changes = |event: &&Event| match event.kind {
        Kind::Waking { pid, .. } | Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. } => pid == task,
        Kind::Switch { prev, next, .. } => prev == task || next == task,
        _ => false,
    };
    let past = &events[..events.partition_point(|event| event.time <= at)];
    let mut last = past.iter().rev().filter(changes).peekable();
    let listed = last.peek().is_some_and(|event| matches!(event.kind, Kind::Waking { .. }));
    (last.find(|event| !matches!(event.kind, Kind::Wakeup { .. })).map(|event| event.time), listed)
}

fn events_of_guest(spec: &RunSpec) -> Vec<Event> {
    let mut sink = OfGuest::default();
    schedlab_sim::run_virtual(spec, &mut sink, &AtomicBool::new(false)).unwrap();
    sink.0
}

#[test]
fn a_task_on_the_wakelist_of_a_vcpu_that_does_not_run_waits_since_it_was_woken() {
    let scenario = Scenario::parse(SHARED, "shared.toml", None).unwrap();
    let spec = scenario.run_spec("x", 1).unwrap();
    let (events, cancel) = (events_of_guest(&spec), AtomicBool::new(false));
    let mut on_wakelists = 0;
    for (at, pid) in (0..24).flat_map(|i| [1, 2].map(|pid| (20 * MSEC + i * 3_333 * USEC, pid))) {
        let (since, listed) = last_change(&events, pid, at);
        let answer = why(&spec, &TaskSelector::Pid(pid), at, &cancel).unwrap();
        assert_eq!(answer.since_ns, since, "{at}: {answer:#?}");
        if listed {
            on_wakelists += 1;
            assert_eq!((answer.state, answer.woken_ns), (TaskState::Waiting, since), "{at}: {answer:#?}");
        }
        if answer.state == TaskState::Sleeping {
            let woken = events
                .iter()
                .find(|event| event.time > at && matches!(event.kind, Kind::Waking { pid: woken, .. } if woken == pid));
            assert_eq!(answer.ended_ns, woken.map(|event| event.time), "{at}: {answer:#?}");
        }
    }
    assert!(on_wakelists > 3, "{on_wakelists} moments at which a task was on a wakelist");
}
