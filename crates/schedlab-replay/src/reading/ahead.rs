//! What only later records show: the outcome of a decision, a task's state and weight when it is first seen.

use schedlab_model::{Nanos, Pid};
use schedlab_policy::weight::{calc_delta_fair, LoadWeight};
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::{is_fair, nice, Place, Reading, Task};
use crate::operation::{First, Operation, Weight, Whereabouts};
use crate::step::{Point, Step, What};
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
            self.push(Operation::Introduce { pid, weight, at, first });
        }
    }
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
                Point::Waking => {}
                Point::Runtime => {
                    let ran = if charged_before_probe(ahead) { charged } else { 0 };
                    return Some(First::Probed { probe, ran });
                }
                Point::Woken | Point::Next | Point::Prev | Point::Other => {
                    return Some(First::Probed { probe, ran: 0 })
                }
            },
            _ => {}
        }
    }
    None
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
