//! Random events for the property tests of this crate.

use proptest::prelude::*;
use schedlab_model::{CpuId, Pid};

use crate::{Call, Event, Extension, Kind, Lock, ScanTimes, Section, TaskState};

/// Any event a kernel or program could emit.
pub fn any_event() -> impl Strategy<Value = Event> {
    (0..1u64 << 50, any_cpu(), any_kind()).prop_map(|(time, cpu, kind)| Event::new(time, cpu, kind))
}

/// A trace: events in time order.
pub fn any_trace() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_event(), 0..60).prop_map(|mut events| {
        events.sort_by_key(|event| event.time);
        events
    })
}

fn any_functions() -> impl Strategy<Value = ScanTimes> {
    (any::<bool>(), any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(sibling, core, cpu, smt)| ScanTimes {
        sibling,
        core,
        cpu,
        smt,
    })
}

fn any_cpu() -> impl Strategy<Value = CpuId> {
    prop_oneof![0..4u32, 0..1024u32].prop_map(CpuId)
}

fn any_pid() -> impl Strategy<Value = Pid> {
    prop_oneof![1..10, 1..=1 << 22]
}

fn any_prio() -> impl Strategy<Value = i32> {
    0..140
}

fn any_state() -> impl Strategy<Value = TaskState> {
    use TaskState::*;
    prop::sample::select(vec![Running, Sleeping, Blocked, Dead, Stopped, Parked])
}

fn any_kind() -> impl Strategy<Value = Kind> {
    let task = || (any_pid(), any_prio(), any_cpu());
    prop_oneof![
        (prop_oneof![Just(0), any_pid()], any_prio(), any_state(), prop_oneof![Just(0), any_pid()], any_prio())
            .prop_map(|(prev, prev_prio, prev_state, next, next_prio)| Kind::Switch {
                prev,
                prev_prio,
                prev_state,
                next,
                next_prio
            }),
        task().prop_map(|(pid, prio, target_cpu)| Kind::Waking { pid, prio, target_cpu }),
        task().prop_map(|(pid, prio, target_cpu)| Kind::Wakeup { pid, prio, target_cpu }),
        task().prop_map(|(pid, prio, target_cpu)| Kind::WakeupNew { pid, prio, target_cpu }),
        (task(), any_cpu()).prop_map(|((pid, prio, orig_cpu), dest_cpu)| Kind::Migrate {
            pid,
            prio,
            orig_cpu,
            dest_cpu
        }),
        (any_pid(), any_pid()).prop_map(|(parent, child)| Kind::Fork { parent, child }),
        (any_pid(), any_prio()).prop_map(|(pid, prio)| Kind::Exit { pid, prio }),
        (any_pid(), 0..=u64::MAX / 2, any::<Option<u64>>()).prop_map(|(pid, runtime, vruntime)| Kind::Runtime {
            pid,
            runtime,
            vruntime
        }),
        (any_pid(), any::<u16>(), any::<u64>()).prop_map(|(pid, metric, value)| Kind::Sample { pid, metric, value }),
        (any_pid(), any::<u16>(), any::<u64>()).prop_map(|(pid, metric, count)| Kind::Count { pid, metric, count }),
        (any_pid(), any::<u32>(), any::<u64>(), any_functions())
            .prop_map(|(pid, tested, cost, functions)| Kind::Scan { pid, tested, cost, functions }),
        (any_pid(), any::<u32>(), any::<bool>()).prop_map(|(pid, kib, major)| Kind::Fault { pid, kib, major }),
        (any_pid(), any::<u64>(), prop::sample::select(Section::ALL.to_vec()))
            .prop_map(|(pid, waited, section)| Kind::Resched { pid, waited, section }),
        (
            any_pid(),
            any::<u64>(),
            prop::sample::select(Section::ALL.to_vec()),
            prop::option::of(prop::sample::select(Call::ALL.to_vec()))
        )
            .prop_map(|(pid, time, section, call)| Kind::NonPreemptible { pid, time, section, call }),
        (any_pid(), prop::sample::select(Extension::ALL.to_vec()))
            .prop_map(|(pid, what)| Kind::Extension { pid, what }),
        (any_pid(), any::<u32>(), any::<u64>()).prop_map(|(pid, kib, time)| Kind::Refill { pid, kib, time }),
        (any_pid(), any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>())
            .prop_map(|(pid, faults, local, migrated, time)| Kind::Numa { pid, faults, local, migrated, time }),
        (any_pid(), prop::sample::select(Lock::ALL.to_vec()), any::<u64>())
            .prop_map(|(pid, lock, wait)| Kind::LockWait { pid, lock, wait }),
    ]
}
