//! The ends of wakeups in recordings that have only their beginnings: `perf sched record` records `sched_waking` and
//! leaves `sched_wakeup` out wherever the kernel has both.
//!
//! `try_to_wake_up` emits, on the waker's CPU and in this order (5.2 to 7.3): `sched_waking`; `sched_migrate_task` if
//! another CPU was selected (`set_task_cpu`); `sched_stat_runtime` of the task that runs on the selected CPU, when
//! `enqueue_entity` or the preemption check calls `update_curr`; `sched_wakeup`. A task that runs, or is queued, stays
//! where it is. With a wakelist (`ttwu_queue_wakelist`), the selected CPU emits the last two in its interrupt. The
//! wakeup therefore ends behind that charge, or behind the migration where nothing was left to charge. An idle CPU
//! charges nothing: it finds the task on its wakelist before its next record.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schedlab_model::{CpuId, Pid};
use schedlab_policy::Release;
use schedlab_trace::{Flags, Header, Kind, TaskState};

use super::entry::{Entry, What};
use super::release::release;

/// The flags of a record in an interrupt of an idle CPU.
const IDLE_INTERRUPT: Flags = Flags(*b"d.h2.");

/// So many records are read before a recording counts as one without `sched_wakeup`.
const PROOF: usize = 1 << 15;

/// A wakeup whose end is not found among so many later records ends behind its beginning.
const FARTHEST: usize = 1 << 10;

/// From this release on an idle CPU gets the tasks that wake on it by its wakelist, whichever CPU woke them
/// (f3dd3f674555).
const IDLE_LISTED: Option<Release> = Release::parse("6.0");

/// Adds the ends of wakeups, where a recording has none.
#[derive(Default)]
pub struct Wakeups {
    /// What the recording was found to be.
    adds: Option<bool>,
    held: VecDeque<Entry>,
    /// The wakeups among the entries held that have not ended.
    open: Vec<Open>,
    current: BTreeMap<CpuId, Pid>,
    /// Tasks that wait on a queue.
    queued: BTreeSet<Pid>,
    caches: Caches,
    /// The tasks of `sched_waking`, until it is known what the recording is.
    waking: BTreeSet<Pid>,
    /// A `sched_wakeup` is missing.
    lacks: bool,
    /// The kernel puts tasks that wake on an idle CPU on its wakelist.
    idle_listed: bool,
    added: u64,
}

/// Which CPUs share a last-level cache, as far as the recording shows: a CPU that charges the task of another one for
/// a wakeup has taken that CPU's lock, and does so for a CPU with queued tasks only where they share one
/// (`ttwu_queue_cond`).
#[derive(Default)]
struct Caches {
    /// One CPU that shares each CPU's cache; that of the first one is itself.
    with: BTreeMap<CpuId, CpuId>,
}

/// A wakeup that has begun.
struct Open {
    pid: Pid,
    prio: i32,
    waker: CpuId,
    /// The context of `sched_waking`: in an interrupt or not, and its preempt count.
    context: u8,
    depth: Option<u8>,
    target: CpuId,
    /// The index in `held` of its last record so far.
    last: usize,
    /// The waker's CPU went on to something else.
    left: bool,
    /// It has the CPU. If it is on its way to sleep, the waker waits until it is switched out (`p->on_cpu`).
    runs: bool,
    /// The index behind which it ends if its CPU found it on its wakelist.
    listed: Option<usize>,
    /// The index behind which it ends if its CPU was idle until then.
    idle_until: Option<usize>,
}

impl Open {
    /// Whether an event is the charge of the task that runs on the target, by the enqueue of a fair task. Other classes
    /// do not charge it.
    fn is_charge(&self, kind: Kind, current: Option<Pid>) -> bool {
        matches!(kind, Kind::Runtime { pid, .. } if pid != 0 && Some(pid) == current) && (100..140).contains(&self.prio)
    }

    /// Whether a charge was made by the waker within the wakeup: in the same context as `sched_waking`, and with the
    /// lock of a runqueue held besides.
    fn wakes(&self, charge: &Entry) -> bool {
        let context = charge.flags.0[2] == self.context;
        let deeper = charge.depth().zip(self.depth).is_none_or(|(now, then)| now > then);
        charge.cpu == self.waker && !self.left && context && deeper
    }

    /// Whether an entry shows that a running task was woken where it runs, or goes on as if.
    fn runs_on(&mut self, entry: &Entry, kind: Kind) -> bool {
        self.left |= entry.cpu == self.waker;
        match kind {
            Kind::Switch { prev, prev_state, .. } if prev == self.pid => prev_state == TaskState::Running,
            Kind::Runtime { .. } => false,
            _ => entry.cpu == self.target && entry.in_task(),
        }
    }

    /// Whether an entry shows that the wakeup ended before it. `may_be_listed`: on the wakelist of the target, which
    /// runs the task `current`.
    fn has_ended(&mut self, entry: &Entry, kind: Kind, current: Option<Pid>, may_be_listed: bool) -> bool {
        match kind {
            Kind::Migrate { pid, .. } if pid == self.pid => false,
            Kind::Switch { next, .. } if next == self.pid => true,
            _ if self.is_charge(kind, current) && self.wakes(entry) => false,
            _ if entry.cpu == self.waker => {
                self.left = true;
                self.last = self.listed.filter(|_| may_be_listed).unwrap_or(self.last);
                self.target == self.waker || !may_be_listed || self.listed.is_some()
            }
            _ if entry.cpu == self.target && current == Some(0) => true,
            _ if entry.cpu == self.target && self.left => !(self.is_charge(kind, current) && entry.in_irq()),
            _ => false,
        }
    }
}

impl Wakeups {
    pub fn new(header: &Header) -> Self {
        let idle_listed = release(header).zip(IDLE_LISTED).is_none_or(|(release, since)| release >= since);
        Wakeups { idle_listed, ..Wakeups::default() }
    }

    /// Reads the next entry. Those that are complete can be popped then.
    pub fn push(&mut self, entry: Entry) {
        match (self.adds, entry.kind()) {
            (None, _) => self.look_for_proof(&entry),
            // The event was enabled later than the others.
            (Some(true), Some(Kind::Wakeup { .. })) => {
                self.end();
                self.adds = Some(false);
            }
            _ => {}
        }
        match self.adds {
            Some(true) => self.read(entry),
            _ => self.held.push_back(entry),
        }
        if self.adds.is_none() && self.held.len() >= PROOF {
            self.decide();
        }
    }

    /// How many ends of wakeups were added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The trace has ended: all entries are complete.
    pub fn end(&mut self) {
        if self.adds.is_none() {
            self.decide();
        }
        while let Some(open) = self.open.pop() {
            self.close(open);
        }
    }

    /// The next complete entry: behind it no wakeup that is still open can end.
    pub fn pop(&mut self) -> Option<Entry> {
        let waits = self.adds.is_none() || self.indices().any(|index| *index == 0);
        let entry = if waits { None } else { self.held.pop_front() };
        if entry.is_some() {
            self.indices().for_each(|index| *index -= 1);
        }
        entry
    }

    /// The indices in `held` that open wakeups have kept.
    fn indices(&mut self) -> impl Iterator<Item = &mut usize> {
        self.open.iter_mut().flat_map(|open| [Some(&mut open.last), open.listed.as_mut()]).flatten()
    }

    /// A task that runs after its `sched_waking` has had its `sched_wakeup` before.
    fn look_for_proof(&mut self, entry: &Entry) {
        match entry.kind() {
            Some(Kind::Wakeup { .. }) => self.adds = Some(false),
            Some(Kind::Waking { pid, .. }) => drop(self.waking.insert(pid)),
            Some(Kind::Switch { next, .. }) => self.lacks |= self.waking.contains(&next),
            _ => {}
        }
    }

    /// No `sched_wakeup` was seen: reads what was held, if one is missing.
    fn decide(&mut self) {
        self.adds = Some(self.lacks);
        if self.lacks {
            self.caches.learn(&self.held);
            std::mem::take(&mut self.held).into_iter().for_each(|entry| self.read(entry));
        }
    }

    fn read(&mut self, entry: Entry) {
        self.current.entry(entry.cpu).or_insert(entry.pid);
        self.close_before(&entry);
        self.held.push_back(entry);
        self.extend(&entry);
        self.follow(&entry);
        let end = self.held.len();
        for index in (0..self.open.len()).rev() {
            if end - self.open[index].last > FARTHEST {
                let open = self.open.remove(index);
                self.close(open);
            }
        }
    }

    /// Closes the wakeups that the entry shows to have ended before it.
    fn close_before(&mut self, entry: &Entry) {
        let before = self.held.len().checked_sub(1);
        for index in (0..self.open.len()).rev() {
            let current = self.current.get(&self.open[index].target).copied();
            let open = &mut self.open[index];
            let ends = match entry.what {
                What::Lost => true,
                What::Event(kind) => match open.runs {
                    true => open.runs_on(entry, kind),
                    false => {
                        let listed = match current {
                            _ if self.queued.contains(&open.pid) => false,
                            Some(0) => self.idle_listed,
                            _ => !self.caches.shared(open.waker, open.target),
                        };
                        open.has_ended(entry, kind, current, listed)
                    }
                },
                _ => false,
            };
            if ends {
                let mut open = self.open.remove(index);
                if current == Some(0) && entry.cpu == open.target && open.target != open.waker && self.idle_listed {
                    open.idle_until = before;
                }
                self.close(open);
            }
        }
    }

    /// The entry, the last one held, continues, ends or begins wakeups.
    fn extend(&mut self, entry: &Entry) {
        let Some(kind) = entry.kind() else { return };
        let last = self.held.len() - 1;
        for index in (0..self.open.len()).rev() {
            let current = self.current.get(&self.open[index].target).copied();
            let open = &mut self.open[index];
            let charges = open.is_charge(kind, current) && !open.runs;
            match kind {
                Kind::Switch { prev, .. } if open.runs && prev == open.pid => (open.runs, open.last) = (false, last),
                Kind::Migrate { pid, dest_cpu, .. } if pid == open.pid => (open.target, open.last) = (dest_cpu, last),
                _ if charges && open.wakes(entry) => {
                    self.caches.share(open.waker, open.target);
                    self.close_behind(index, last);
                }
                _ if charges && entry.cpu == open.target && entry.in_irq() && open.left => {
                    self.close_behind(index, last)
                }
                _ if charges && entry.cpu == open.target && entry.in_irq() => drop(open.listed.get_or_insert(last)),
                _ if entry.cpu == open.target && !open.runs => drop(open.listed.get_or_insert(open.last)),
                _ => {}
            }
        }
        if let Kind::Waking { pid, prio, target_cpu: target } = kind {
            let runs = self.current.get(&target) == Some(&pid);
            let open = Open {
                pid,
                prio,
                waker: entry.cpu,
                context: entry.flags.0[2],
                depth: entry.depth(),
                target,
                last,
                left: false,
                runs,
                listed: None,
                idle_until: None,
            };
            match runs && target == entry.cpu {
                true => self.close(open),
                false => self.open.push(open),
            }
        }
    }

    fn close_behind(&mut self, index: usize, last: usize) {
        let open = self.open.remove(index);
        self.close(Open { last, ..open });
    }

    /// Follows which tasks run and wait.
    fn follow(&mut self, entry: &Entry) {
        if let What::Event(Kind::Switch { prev, prev_state, next, .. }) = entry.what {
            self.current.insert(entry.cpu, next);
            self.queued.remove(&next);
            if prev_state == TaskState::Running {
                self.queued.insert(prev);
            }
        }
    }

    /// Adds the end of a wakeup behind its last record.
    fn close(&mut self, open: Open) {
        let behind = open.idle_until.unwrap_or(open.last);
        let Some(last) = self.held.get(behind).copied() else { return };
        let Open { pid, prio, target, .. } = open;
        let what = What::Event(Kind::Wakeup { pid, prio, target_cpu: target });
        let end = Entry { what, inferred: true, ..last };
        let end = match open.idle_until {
            Some(_) => Entry { cpu: target, pid: 0, flags: IDLE_INTERRUPT, ..end },
            None => end,
        };
        self.held.insert(behind + 1, end);
        self.added += 1;
        self.queued.insert(pid);
        self.indices().filter(|index| **index > behind).for_each(|index| *index += 1);
    }
}

impl Caches {
    /// Learns from entries: a `sched_waking` whose next record on the CPU is the charge of another CPU's task.
    fn learn<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) {
        let (mut running, mut waking) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries {
            match entry.kind() {
                None | Some(Kind::Migrate { .. }) => {}
                Some(Kind::Waking { .. }) => drop(waking.insert(entry.cpu)),
                Some(Kind::Runtime { pid, .. }) if waking.remove(&entry.cpu) => {
                    if let Some(of) = running.get(&pid) {
                        self.share(entry.cpu, *of);
                    }
                }
                Some(Kind::Switch { prev, next, .. }) => {
                    waking.remove(&entry.cpu);
                    running.remove(&prev);
                    running.insert(next, entry.cpu);
                    running.remove(&0);
                }
                Some(_) => drop(waking.remove(&entry.cpu)),
            }
        }
    }

    fn share(&mut self, one: CpuId, other: CpuId) {
        let (one, other) = (self.first(one), self.first(other));
        self.with.insert(one.max(other), one.min(other));
    }

    fn shared(&self, one: CpuId, other: CpuId) -> bool {
        self.first(one) == self.first(other)
    }

    /// The first of the CPUs that are known to share this one's cache.
    fn first(&self, cpu: CpuId) -> CpuId {
        match self.with.get(&cpu) {
            Some(with) if *with != cpu => self.first(*with),
            _ => cpu,
        }
    }
}
