//! What only later records show: the outcome of a decision, a task's state and weight when it is first seen.

use std::collections::BTreeSet;

use schedlab_model::{CpuId, Nanos, Pid, MSEC};
use schedlab_policy::weight::{calc_delta_fair, LoadWeight};
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::{is_fair, nice, Place, Reading, Task};
use crate::operation::{First, Operation, Weight, Whereabouts};
use crate::step::{Address, Point, Step, What};
use crate::window::Window;

impl Reading {
    /// Makes a task known. `prio`: as the record says, else as a later one does.
    pub(super) fn introduce(
        &mut self,
        pid: Pid,
        prio: Option<i32>,
        at: Whereabouts,
        now: Option<&Step>,
        ahead: &Window<'_>,
    ) {
        let prio = prio.or_else(|| prio_ahead(pid, now, ahead)).unwrap_or(120);
        let (place, queued) = match at {
            Whereabouts::Running(cpu) => (Place::Running(cpu), true),
            Whereabouts::Queued(cpu) => (Place::Queued(cpu), true),
            Whereabouts::Asleep(cpu) => (Place::Off(cpu), false),
        };
        let first = if queued { first_state(pid, now, ahead) } else { None };
        let weight = first_weight(pid, Weight::Nice(nice(prio)), now, ahead);
        let task = Task { taken: first.is_some(), ..Task::new(prio, weight, place) };
        self.tasks.insert(pid, task);
        if is_fair(prio) {
            let group = group_ahead(pid, ahead);
            self.push(Operation::Introduce { pid, weight, at, group, first });
        }
    }
}

/// Who has waited longer was rather woken without a record, as within the code that records.
const LONG_WAIT: Nanos = 100 * MSEC;

/// Who waits on which CPU from before the first record: whom a switch puts on the CPU, or a wakeup finds on its queue, before
/// any other record names him.
pub(super) fn waiting(now: &Step, ahead: &Window<'_>) -> Vec<(Pid, CpuId)> {
    let (mut named, mut found) = (BTreeSet::from([0]), Vec::new());
    let mut waking = None;
    let near = |step: &&Step| step.time < now.time + LONG_WAIT;
    for step in [now].into_iter().chain(ahead.ahead().take_while(near)) {
        named.insert(step.pid);
        match step.what {
            What::Event(Kind::Switch { prev, next, .. }) => {
                named.insert(prev);
                if named.insert(next) {
                    found.push((next, step.cpu));
                }
            }
            What::Event(Kind::Waking { pid, target_cpu, .. }) => {
                waking = named.insert(pid).then_some((pid, target_cpu));
            }
            What::Probe(probe) if probe.point == Point::Waking && probe.queued => {
                found.extend(waking.take().filter(|(pid, _)| *pid == probe.pid));
            }
            What::Event(Kind::Runtime { pid, .. } | Kind::Fork { child: pid, .. } | Kind::Migrate { pid, .. })
            | What::Event(Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }) => drop(named.insert(pid)),
            _ => {}
        }
    }
    found
}

/// Where vruntime is printed, the weight is what it grows by: SCHED_IDLE shows in nothing else, and the first record with
/// a priority may come after a change of it.
pub(super) fn first_weight(pid: Pid, guess: Weight, now: Option<&Step>, ahead: &Window<'_>) -> Weight {
    let mut before: Option<u64> = None;
    for step in now.into_iter().chain(ahead.ahead()) {
        match step.kind() {
            Some(Kind::Runtime { pid: of, runtime, vruntime }) if of == pid => {
                let Some(v) = vruntime else { return guess };
                if let Some(from) = before.replace(v) {
                    return weight_of(v.wrapping_sub(from), runtime, guess).unwrap_or(guess);
                }
            }
            Some(Kind::Switch { prev, .. }) if prev == pid => before = None,
            _ => {}
        }
    }
    guess
}

/// A task's state by the next record that shows it, unless the task moves before.
pub(super) fn first_state(pid: Pid, now: Option<&Step>, ahead: &Window<'_>) -> Option<First> {
    if !ahead.shows_state() {
        return Some(First::Guessed);
    }
    let mut charged = 0;
    for step in now.into_iter().chain(ahead.ahead()) {
        match step.what {
            What::Event(Kind::Runtime { pid: of, runtime, vruntime }) if of == pid => match vruntime {
                Some(vruntime) => return Some(First::Printed { vruntime, ran: runtime }),
                None => charged = runtime,
            },
            What::Event(Kind::Migrate { pid: of, .. }) if of == pid => return None,
            What::Event(Kind::Wakeup { pid: of, .. }) if of == pid && now.is_none() => return None,
            What::Probe(probe) if probe.pid == pid => match probe.point {
                Point::Waking if !probe.queued => {}
                Point::Runtime => {
                    let ran = if charged_before_probe(ahead) { charged } else { 0 };
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

/// The group a task is in, by the next probe that tells.
pub(super) fn group_ahead(pid: Pid, ahead: &Window<'_>) -> Option<Address> {
    ahead.ahead().find_map(|step| match step.what {
        What::Probe(probe) if probe.pid == pid => probe.address,
        _ => None,
    })
}

/// Whether vruntime has grown by the runtime when the probe at `sched_stat_runtime` reads it: two such probes of a
/// task in one run differ by the later runtime, or else by the earlier one.
pub(super) fn charged_before_probe(ahead: &Window<'_>) -> bool {
    let mut last: Option<(Pid, u64, u64)> = None;
    let mut charged = None;
    for step in ahead.ahead() {
        match step.what {
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

fn prio_ahead(pid: Pid, now: Option<&Step>, ahead: &Window<'_>) -> Option<i32> {
    now.into_iter().chain(ahead.ahead()).find_map(|step| match step.kind()? {
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

/// The weight by which vruntime grows so much in a time; the first guess if it fits.
pub(super) fn weight_of(grown: u64, ran: Nanos, guess: Weight) -> Option<Weight> {
    let all = (-20..20).map(Weight::Nice).chain([Weight::Idle]);
    [guess].into_iter().chain(all).find(|weight| grown == calc_delta_fair(ran, load(*weight)))
}

/// The load weight of a named one.
fn load(weight: Weight) -> LoadWeight {
    match weight {
        Weight::Nice(nice) => LoadWeight::of_task(nice, FairPolicy::Normal),
        Weight::Idle => LoadWeight::of_task(0, FairPolicy::Idle),
    }
}
