//! A task's first record: its state, weight and group are what the next records show of them.

use std::collections::BTreeSet;

use schedlab_model::{CpuId, Pid};
use schedlab_trace::Kind;

use super::task::{is_fair, nice, Place, Task};
use super::weight::first_weight;
use super::Reader;
use crate::operation::{First, Location, NewTask, Operation, Weight};
use crate::trace::{Address, Entry, LookAhead, Point, What, Window};

impl Reader {
    /// Adds a task. `prio`: that of the record, else that of a later one.
    pub(super) fn add_task(
        &mut self,
        pid: Pid,
        prio: Option<i32>,
        at: Location,
        now: Option<&Entry>,
        ahead: &Window<'_>,
    ) {
        let prio = prio.or_else(|| prio_ahead(pid, now, ahead)).unwrap_or(120);
        let (place, queued) = match at {
            Location::Running(cpu) => (Place::Running(cpu), true),
            Location::Queued(cpu) => (Place::Queued(cpu), true),
            Location::Asleep(cpu) => (Place::Off(cpu), false),
        };
        let first = if queued { first_state(pid, now, ahead) } else { None };
        let weight = first_weight(pid, Weight::Nice(nice(prio)), now, ahead);
        let task = Task { taken: first.is_some(), ..Task::new(prio, weight, place) };
        self.tasks.insert(pid, task);
        if is_fair(prio) {
            let group = group_ahead(pid, ahead);
            self.push(Operation::AddTask(NewTask { pid, weight, at, group, first }));
        }
    }
}

/// The tasks that were queued before the first record, and their CPUs: those that a switch puts on the CPU, that the
/// balancer moves, or that a wakeup finds on its queue, before any other record names them. However long they waited,
/// the CPU was not idle until then; a task that is put on a CPU which was idle before has been woken without a record,
/// as the code that records does.
pub fn initial_tasks(now: &Entry, ahead: &Window<'_>) -> Vec<(Pid, CpuId)> {
    let (mut named, mut found, mut idled) = (BTreeSet::from([0]), Vec::new(), BTreeSet::new());
    let mut waking = None;
    for entry in [now].into_iter().chain(ahead.look(LookAhead::InitialTasks)) {
        named.insert(entry.pid);
        if entry.pid == 0 {
            idled.insert(entry.cpu);
        }
        match entry.what {
            What::Event(Kind::Switch { prev, next, .. }) => {
                named.insert(prev);
                if named.insert(next) && !idled.contains(&entry.cpu) {
                    found.push((next, entry.cpu));
                }
                if next == 0 {
                    idled.insert(entry.cpu);
                }
            }
            What::Event(Kind::Migrate { pid, orig_cpu, .. }) => {
                let queued = named.insert(pid) && !idled.contains(&orig_cpu);
                found.extend(queued.then_some((pid, orig_cpu)));
            }
            What::Event(Kind::Waking { pid, target_cpu, .. }) => {
                waking = named.insert(pid).then_some((pid, target_cpu));
            }
            What::Probe(probe) if probe.point == Point::Waking && probe.queued => {
                found.extend(waking.take().filter(|(pid, _)| *pid == probe.pid));
            }
            What::Event(Kind::Runtime { pid, .. } | Kind::Fork { child: pid, .. })
            | What::Event(Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }) => drop(named.insert(pid)),
            _ => {}
        }
    }
    found
}

/// A task's state by the next record that shows it, unless the task moves before.
pub fn first_state(pid: Pid, now: Option<&Entry>, ahead: &Window<'_>) -> Option<First> {
    if !ahead.shows_state() {
        return Some(First::Unknown);
    }
    let mut charged = 0;
    for entry in now.into_iter().chain(ahead.look(LookAhead::FirstState)) {
        match entry.what {
            What::Event(Kind::Runtime { pid: of, runtime, vruntime }) if of == pid => match vruntime {
                Some(vruntime) => return Some(First::Printed { vruntime, ran: runtime }),
                None => charged = runtime,
            },
            What::Event(Kind::Migrate { pid: of, .. }) if of == pid => return None,
            What::Event(Kind::Wakeup { pid: of, .. }) if of == pid && now.is_none() => return None,
            What::Probe(probe) if probe.pid == pid => match probe.point {
                Point::Waking if !probe.queued => {}
                Point::Runtime => {
                    let ran = if probes_follow_charges(ahead) { charged } else { 0 };
                    return Some(First::Probed { probe, ran });
                }
                Point::Waking | Point::Woken | Point::Next | Point::Prev | Point::Other => {
                    return Some(First::Probed { probe, ran: 0 })
                }
            },
            _ => {}
        }
    }
    None
}

/// A task's group by the next probe that shows it.
pub fn group_ahead(pid: Pid, ahead: &Window<'_>) -> Option<Address> {
    ahead.look(LookAhead::Group).find_map(|entry| match entry.what {
        What::Probe(probe) if probe.pid == pid => probe.address,
        _ => None,
    })
}

/// Whether the probe at `sched_stat_runtime` reads vruntime after the charge: two such probes of a task in one run
/// differ by the later run time then, else by the earlier one.
pub fn probes_follow_charges(ahead: &Window<'_>) -> bool {
    let mut last: Option<(Pid, u64, u64)> = None;
    let mut charged = None;
    for entry in ahead.look(LookAhead::ProbeOrder) {
        match entry.what {
            What::Event(Kind::Runtime { pid, runtime, .. }) => charged = Some((pid, runtime)),
            What::Event(Kind::Switch { .. }) => last = None,
            What::Probe(probe) if probe.point == Point::Runtime => {
                let Some((_, runtime)) = charged.filter(|(pid, _)| *pid == probe.pid) else { continue };
                if let Some((_, v, earlier)) = last.filter(|(pid, ..)| *pid == probe.pid) {
                    let grown = probe.vruntime.wrapping_sub(v);
                    if grown == runtime || grown == earlier {
                        return grown == runtime;
                    }
                }
                last = Some((probe.pid, probe.vruntime, runtime));
            }
            _ => {}
        }
    }
    true
}

/// A task's priority by the next record that shows it.
pub fn prio_ahead(pid: Pid, now: Option<&Entry>, ahead: &Window<'_>) -> Option<i32> {
    now.into_iter().chain(ahead.look(LookAhead::Weight)).find_map(|entry| match entry.kind()? {
        Kind::Switch { prev, prev_prio, .. } if prev == pid => Some(prev_prio),
        Kind::Switch { next, next_prio, .. } if next == pid => Some(next_prio),
        Kind::Waking { pid: of, prio, .. }
        | Kind::Wakeup { pid: of, prio, .. }
        | Kind::WakeupNew { pid: of, prio, .. }
        | Kind::Migrate { pid: of, prio, .. }
        | Kind::Exit { pid: of, prio }
            if of == pid =>
        {
            Some(prio)
        }
        _ => None,
    })
}
