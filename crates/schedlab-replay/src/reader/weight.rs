//! Weights that no record announces: up to 6.7 the growth of the printed vruntime shows them, else the priority at the
//! next switch.

use schedlab_model::{Nanos, Pid};
use schedlab_policy::weight::{calc_delta_fair, LoadWeight};
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::task::{is_fair, nice};
use super::Reader;
use crate::operation::{Operation, Weight};
use crate::trace::{Entry, LookAhead, Window};

impl Reader {
    /// A weight that begins with this charge: the task's vruntime grows by it up to the task's next record. Where
    /// vruntime is not printed, a new priority at the next switch shows it, and the last record before is taken for the
    /// place of the change.
    pub(super) fn new_weight(&self, pid: Pid, printed: Option<u64>, ahead: &Window<'_>) -> Option<Weight> {
        let known = self.tasks.get(&pid)?.weight;
        let (mut next, mut later_prio) = (None, None);
        for entry in ahead.look(LookAhead::Weight) {
            match entry.kind() {
                Some(Kind::Runtime { pid: of, runtime, vruntime }) if of == pid && next.is_none() => {
                    next = Some((runtime, vruntime, entry.flag()));
                }
                Some(Kind::Switch { prev, prev_prio, .. }) if prev == pid => {
                    later_prio = Some(prev_prio);
                    break;
                }
                Some(Kind::Migrate { pid: of, .. }) if of == pid => break,
                _ => {}
            }
        }
        let by_prio = later_prio.filter(|prio| is_fair(*prio)).map(|prio| Weight::Nice(nice(prio)));
        match (printed, next) {
            (Some(from), Some((ran, Some(to), _))) => {
                // EEVDF places the task anew as well: no weight fits then.
                weight_of(to.wrapping_sub(from), ran, known).or(by_prio).filter(|weight| *weight != known)
            }
            (_, Some((_, None, false))) => None,
            _ => by_prio.filter(|weight| known != Weight::Idle && *weight != known),
        }
    }

    pub(super) fn reweight(&mut self, pid: Pid, weight: Weight) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.weight = weight;
        self.unannounced += 1;
        if let Weight::Nice(nice) = weight {
            task.prio = 120 + i32::from(nice);
        }
        self.push(Operation::Reweight { pid, weight });
    }
}

/// A task's weight at its first record. Where vruntime is printed, it is what vruntime grows by: SCHED_IDLE shows in
/// nothing else, and the first record with a priority may come after a change of it.
pub fn first_weight(pid: Pid, guess: Weight, now: Option<&Entry>, ahead: &Window<'_>) -> Weight {
    let mut before: Option<u64> = None;
    for entry in now.into_iter().chain(ahead.look(LookAhead::Weight)) {
        match entry.kind() {
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

/// The weight by which vruntime grows so much in a time; the guess if it fits.
fn weight_of(grown: u64, ran: Nanos, guess: Weight) -> Option<Weight> {
    let all = (-20..20).map(Weight::Nice).chain([Weight::Idle]);
    [guess].into_iter().chain(all).find(|weight| grown == calc_delta_fair(ran, &load(*weight)))
}

fn load(weight: Weight) -> LoadWeight {
    match weight {
        Weight::Nice(nice) => LoadWeight::of_task(nice, FairPolicy::Normal),
        Weight::Idle => LoadWeight::of_task(0, FairPolicy::Idle),
    }
}
