//! State that a selection reads and no record shows, and the row's answers for each value that it may have had.

use std::collections::BTreeSet;

use schedlab_model::{CpuId, CpuMask, Pid, TaskId};
use schedlab_policy::{Sched, Situation, WakeHistory, LEAST_OF_SIS_PROP};

use super::Placements;
use crate::model::Model;
use crate::operation::Select;

/// Flips by which `wake_wide` is true whatever the other task's are, if those are not below the size of the cache.
const MANY: u32 = 1 << 20;

/// More CPUs than these do not change at once; the others are as the records have them.
const MOST_CHANGING: usize = 4;

/// A task and its pid.
type Waker = Option<(TaskId, Pid)>;

/// `wakee_flips`, where they are not the followed ones.
#[derive(Clone, Copy)]
struct Flips {
    waker: Option<u32>,
    wakee: Option<u32>,
}

/// One set of values.
#[derive(Clone, Copy)]
struct Unknown {
    idle: CpuMask,
    nr_idle_scan: u32,
    flips: Flips,
    recent: Option<CpuId>,
}

impl Placements {
    /// The row's answers for every value of what is unknown.
    pub(super) fn answers(&self, select: &Select, base: &Situation, model: &Model) -> BTreeSet<CpuId> {
        self.answers_within(&self.limits(select), select, base, model)
    }

    fn answers_within(&self, limits: &[u32], select: &Select, base: &Situation, model: &Model) -> BTreeSet<CpuId> {
        let waker = self.waker(select, model);
        let mut sched = model.sched.clone();
        let mut answers = BTreeSet::new();
        for idle in self.idle_sets(select) {
            for &nr_idle_scan in limits {
                for flips in self.flips(select, waker) {
                    for recent in self.recents(select) {
                        answers.insert(self.answer(
                            base,
                            Unknown { idle, nr_idle_scan, flips, recent },
                            waker,
                            &mut sched,
                            &model.pids,
                        ));
                    }
                }
            }
        }
        answers
    }

    fn answer(&self, base: &Situation, unknown: Unknown, waker: Waker, sched: &mut Sched, pids: &[Pid]) -> CpuId {
        let Unknown { idle, nr_idle_scan, flips, recent } = unknown;
        let mut kernel = self.kernel.clone();
        let followed = kernel.history(base.task, base.pid);
        let followed = followed.unwrap_or(WakeHistory { flips: 0, recent_used_cpu: base.prev });
        let history = WakeHistory {
            flips: flips.wakee.unwrap_or(followed.flips),
            recent_used_cpu: recent.unwrap_or(followed.recent_used_cpu),
        };
        kernel.set_history(base.task, base.pid, history, base.now);
        if let Some(flips) = flips.waker {
            kernel.set_waker_flips(base.this, waker, flips, base.now);
        }
        let asked = Situation { idle, nr_idle_scan, ..*base };
        kernel.select_task_rq_fair(sched, &asked, pids).cpu
    }

    /// The waker, if it is of the fair class; else the idle task stands for it.
    fn waker(&self, select: &Select, model: &Model) -> Waker {
        let curr = model.sched.curr(select.this).filter(|_| !select.idle.has(select.this));
        curr.filter(|_| !select.others.has(select.this)).map(|curr| (curr, model.pid(curr)))
    }

    /// With each changing CPU idle or not.
    fn idle_sets(&self, select: &Select) -> Vec<CpuMask> {
        let changing: Vec<CpuId> = select.changing.iter().take(MOST_CHANGING).collect();
        let with = |bits: u32| {
            let mut idle = select.idle;
            for (nth, cpu) in changing.iter().enumerate() {
                match bits >> nth & 1 {
                    0 => idle.clear(*cpu),
                    _ => idle.set(*cpu),
                }
            }
            idle
        };
        (0..1 << changing.len()).map(with).collect()
    }

    /// Under SIS_PROP the limit follows from the idle times of the waker's CPU and the time that searches took, which
    /// no record shows.
    fn limits(&self, select: &Select) -> Vec<u32> {
        let size = self.kernel.topology().llc(select.prev).count() as u32;
        match select.state {
            _ if self.has_budget => (LEAST_OF_SIS_PROP..=size.max(LEAST_OF_SIS_PROP)).collect(),
            Some(state) => vec![state.nr_idle_scan],
            None if self.has_limit => (0..=size).collect(),
            None => vec![size],
        }
    }

    /// Flips of waker and wakee. Where they are not known: so that `wake_wide` is false, and so that it is true if it
    /// can be. A waker whose flips are known may have halved them once more or once less, unless it is recorded when it
    /// did so last.
    fn flips(&self, select: &Select, waker: Waker) -> Vec<Flips> {
        let size = self.kernel.topology().llc(select.this).count() as u32;
        let of_waker = waker.filter(|(_, pid)| self.flips.contains(pid));
        let decays = of_waker.is_some_and(|(_, pid)| self.decays.contains(&pid));
        let of_waker = of_waker.and_then(|(task, pid)| self.kernel.history(task, pid)).map(|history| history.flips);
        let flips = |waker, wakee| Flips { waker, wakee };
        match (of_waker, self.flips.contains(&select.pid)) {
            (Some(_), true) if decays => vec![flips(None, None)],
            (Some(now), true) => vec![flips(None, None), flips(Some(now / 2), None), flips(Some(2 * now), None)],
            (None, true) => vec![flips(Some(0), None), flips(Some(MANY), None)],
            (Some(_), false) => vec![flips(None, Some(0)), flips(None, Some(MANY))],
            (None, false) => vec![flips(Some(0), Some(0)), flips(Some(MANY), Some(size))],
        }
    }

    fn recents(&self, select: &Select) -> Vec<Option<CpuId>> {
        match self.recent.contains(&select.pid) {
            true => vec![None],
            false => self.kernel.topology().all().iter().map(Some).collect(),
        }
    }

    /// Which unknown makes the answers differ.
    pub(super) fn doubt(&self, select: &Select, base: &Situation, model: &Model) -> &'static str {
        let still = Select { changing: CpuMask::default(), ..*select };
        match self.answers(&still, base, model).len() {
            1 => "a CPU became idle or busy at the same time",
            _ if self.has_budget && self.answers_within(&[base.nr_idle_scan], &still, base, model).len() == 1 => {
                "how many CPUs the search may test depends on times that no record shows"
            }
            _ => "it depends on state from before the recording",
        }
    }
}
