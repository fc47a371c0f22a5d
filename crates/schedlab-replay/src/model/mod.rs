//! One version row driven through the operations of a trace: what it would have decided, then put on what was decided.

mod compare;
mod follow;
mod judge;
mod levels;
mod members;
mod show;
mod signature;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_model::{CpuId, Nanos, Pid, TaskId, USEC};
use schedlab_policy::fair::{Fair, GroupId};
use schedlab_policy::{DelayedLag, KernelConfig, Policy};

use crate::homes::{Home, Homes};
use crate::hypotheses::Draw;
use crate::operation::{Operation, Within};
use crate::tally::Tally;
use crate::verdict::Verdict;
use levels::Levels;

/// Records of one operation come within this time; what takes longer was interrupted.
const CLOSE: Nanos = 50 * USEC;

/// A version row, its tasks and its score.
#[derive(Clone)]
pub struct Model {
    pub fair: Fair,
    /// What is counted beside decisions.
    pub tally: Tally,
    /// What the last operation decided.
    pub verdicts: Vec<Verdict>,
    /// What a task of unknown state that the operation brings is taken for.
    pub draw: Draw,
    eevdf: bool,
    members: BTreeMap<Pid, Member>,
    /// Where the header says tasks were, and those of the groups that were made.
    homes: Arc<Homes>,
    groups: BTreeMap<Home, GroupId>,
    levels: Levels,
    pids: Vec<Pid>,
    free: Vec<TaskId>,
    cpus: Vec<Cpu>,
    now: Nanos,
    /// The CPU of the record.
    at: CpuId,
    order: u64,
}

/// A task of the fair class.
#[derive(Clone, Debug)]
struct Member {
    id: TaskId,
    /// Its state follows from the trace, not from a guess.
    known: bool,
    /// When it joined its queue, for the FIFO baseline.
    joined: u64,
    /// vruntime at its last record: the kernel's, the model's.
    printed: Option<(u64, u64)>,
    /// It changed CPU while off the queue (`ENQUEUE_MIGRATED`).
    rehomed: bool,
    /// The balancer has it.
    moving: bool,
    /// It is in another scheduling class.
    away: bool,
    /// Bits of state that the kernel showed last, for people.
    shown: show::Shown,
}

#[derive(Clone, Default, Debug)]
struct Cpu {
    /// The rq clock as far as runtimes tell it.
    clock: Nanos,
    /// The same as probes read it.
    read: Option<Nanos>,
    /// When that was, by the trace's clock.
    read_at: Nanos,
    /// When they told it last, by the trace's clock.
    told: Nanos,
    /// Whose wakeup they told it for.
    told_for: Option<Pid>,
    /// From `sched_waking` to the kernel's look at the clock, and from another look to the record of its runtime.
    delay: i64,
    /// The queue's zero point was guessed from the first task seen on it.
    primed: bool,
    /// It follows from a task that arrived.
    settled: bool,
    /// The model preempted the running task in a series of decisions whose outcome shows only at its end.
    preempted: bool,
    /// The queue's zero point is the kernel's.
    zero_taken: bool,
    /// The state around the last accounting, until a probe shows the kernel's.
    charge: Option<(state::Snapshot, state::Snapshot)>,
}

impl Model {
    /// `shows`: probes show state in the trace.
    pub fn new(config: KernelConfig, tally: Tally, homes: Arc<Homes>, shows: bool) -> Self {
        let eevdf = config.version.rules.policy == Policy::Eevdf;
        let mut fair = Fair::new(config);
        fair.decisions = Some(Vec::new());
        let cpus = vec![Cpu::default(); fair.config.nr_cpus];
        let (members, pids, free) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (verdicts, draw, groups) = (Vec::new(), Draw::default(), BTreeMap::new());
        let levels = Levels::new(shows && homes.len() > 0, cpus.len());
        Model {
            fair,
            tally,
            verdicts,
            draw,
            eevdf,
            members,
            homes,
            groups,
            levels,
            pids,
            free,
            cpus,
            now: 0,
            at: CpuId(0),
            order: 0,
        }
    }

    /// Takes part in an operation at a time of the trace; the record is of CPU `at`.
    pub fn apply(&mut self, operation: &Operation, now: Nanos, at: CpuId) {
        (self.now, self.at) = (now, at);
        self.verdicts.clear();
        if let Some(decisions) = &mut self.fair.decisions {
            decisions.clear();
        }
        match *operation {
            Operation::Clock { cpu, clock } => self.read_clock(cpu, clock),
            Operation::Age { cpu, at } => self.fair.update_blocked_averages(cpu, at),
            Operation::AgeOne { cpu, at, state, tells, in_task } => self.age_one(cpu, at, &state, (tells, in_task)),
            Operation::Told { cpu, group, told } => self.be_told(group, cpu, told),
            Operation::Introduce { pid, weight, at, group, first } => self.introduce((pid, group), weight, at, first),
            Operation::Account { cpu, pid, ran, printed, within, asked } => {
                self.measure(cpu, ran, asked);
                self.account(cpu, pid, ran, printed, within);
            }
            Operation::Tick { cpu, flag, timer } => self.tick(cpu, flag, timer),
            Operation::Wake { cpu, pid, new, asked, left, first, flag } => {
                self.wake((cpu, pid, new), (asked, left), first, flag);
            }
            Operation::Rehome { pid, from, to, charged } => self.rehome(pid, from, to, charged),
            Operation::Detach { pid, from, to } => self.detach(pid, from, to),
            Operation::Attach { pid, cpu, flag } => self.attach(pid, cpu, flag),
            Operation::Fork { cpu, parent, child, sure } => self.fork(cpu, parent, child, sure),
            Operation::Block { cpu, special } => self.block(cpu, special),
            Operation::RunDry { cpu } => self.run_dry(cpu),
            Operation::Switch { cpu, prev, left, next, fair } => self.switch(cpu, prev, left, next, fair),
            Operation::Repick { cpu, sure } => self.repick(cpu, sure),
            Operation::Regroup { cpu, pid, to, flag } => self.regroup(cpu, pid, to, flag),
            Operation::Yield { cpu } => self.fair.yield_task(cpu, self.clock(cpu)),
            Operation::SetAffinity { pid } => self.set_affinity(pid),
            Operation::SetScheduler { pid, policy, nice, slice } => self.set_scheduler(pid, (policy, nice, slice)),
            Operation::SetPolicy { pid, policy } => self.set_policy(pid, policy),
            Operation::SetNice { pid, nice } => self.set_nice(pid, nice),
            Operation::Reweight { pid, weight } => self.reweight(pid, weight),
            Operation::Leave { pid } => self.leave_class(pid),
            Operation::Return { pid, at } => self.return_to_class(pid, at),
            Operation::Forget { pid } => self.forget(pid),
            Operation::Show { probe, charged } => self.show(&probe, charged),
            Operation::Lost => self.lose(),
        }
    }

    /// Whether the row has lags.
    pub fn is_eevdf(&self) -> bool {
        self.eevdf
    }

    /// The task of a pid, while it is in the fair class.
    pub fn task(&self, pid: Pid) -> Option<TaskId> {
        self.id(pid)
    }

    /// The pid of a task.
    pub fn pid_of(&self, id: TaskId) -> Pid {
        self.pid(id)
    }

    /// `update_curr`.
    fn account(&mut self, cpu: CpuId, pid: Pid, ran: Nanos, printed: Option<u64>, within: Within) {
        let Some(id) = self.id(pid) else { return };
        if self.fair.curr(cpu) != Some(id) {
            self.run_anyway(cpu, pid);
        }
        let heals = self.fair.config.version.rules.delayed_lag == DelayedLag::Heals;
        if let (Within::Wakeup(wakee), false) = (within, heals) {
            self.requeue_uncharged(cpu, wakee);
        }
        self.fair.clear_resched(cpu);
        if let Some(read) = self.cpus[cpu.index()].read {
            self.fair.charged_since(id, read.saturating_sub(ran));
        }
        let before = self.snapshot(cpu, id);
        // The groups above are charged by whoever looks at their queues next.
        self.fair.update_curr_leaf_by(cpu, ran);
        self.cpus[cpu.index()].charge = Some((before, self.snapshot(cpu, id)));
        self.cpus[cpu.index()].clock = self.fair.entity(id).exec_start;
        self.cpus[cpu.index()].told = self.now;
        self.cpus[cpu.index()].told_for = match within {
            Within::Wakeup(wakee) => Some(wakee),
            _ => None,
        };
        if let Some(printed) = printed {
            self.compare_vruntime(pid, printed);
        }
        if let Within::Other(flag) = within {
            self.judge_update(cpu, flag);
        }
    }

    /// `update_rq_clock`, as a probe shows it. Before the first time nothing was charged by it.
    fn read_clock(&mut self, cpu: CpuId, clock: Nanos) {
        let queue = &mut self.cpus[cpu.index()];
        queue.read_at = self.now;
        if let (None, Some(curr)) = (queue.read.replace(clock), self.fair.curr(cpu)) {
            self.fair.charged_since(curr, clock);
        }
    }

    /// The CPU's clock as it was read last; without probes of it, as the current task was last charged.
    fn clock(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu.index()].read.unwrap_or_else(|| self.charged(cpu))
    }

    /// Up to when the current task was charged: no record, no charge.
    fn charged(&self, cpu: CpuId) -> Nanos {
        let queue = &self.cpus[cpu.index()];
        match self.fair.curr(cpu) {
            Some(curr) => self.fair.entity(curr).exec_start,
            None => queue.read.unwrap_or(queue.clock.max(self.now)),
        }
    }

    /// The clock if it were looked at now: it has gone on as the trace's has.
    fn clock_now(&self, cpu: CpuId) -> Nanos {
        self.clock(cpu) + self.now.saturating_sub(self.cpus[cpu.index()].read_at)
    }

    /// The same at a wakeup that no runtime precedes, as where the wakee's group is not the running task's: only the
    /// levels above are charged then. The trace's clock tells up to when, with the delay of the last wakeup that was
    /// charged, and no further than the next runtime goes.
    fn clock_between(&self, cpu: CpuId, wakee: TaskId, (asked, left): (Nanos, Nanos)) -> Nanos {
        let apart = |curr| self.fair.group_of(curr) != self.fair.group_of(wakee);
        let queue = &self.cpus[cpu.index()];
        let told = queue.read.is_some() || queue.told_for == Some(self.pid(wakee));
        match !told && self.fair.curr(cpu).is_some_and(apart) {
            true => self.clock(cpu) + asked.saturating_sub(queue.told).saturating_add_signed(queue.delay).min(left),
            false => self.clock(cpu),
        }
    }

    /// A runtime within a wakeup: exact, where records only tell when they were made.
    fn measure(&mut self, cpu: CpuId, ran: Nanos, asked: Option<Nanos>) {
        let queue = &mut self.cpus[cpu.index()];
        if let Some(between) = asked.and_then(|asked| asked.checked_sub(queue.told)) {
            queue.delay = (ran as i64 - between as i64).clamp(0, CLOSE as i64);
        }
    }

    fn id(&self, pid: Pid) -> Option<TaskId> {
        self.members.get(&pid).filter(|member| !member.away).map(|member| member.id)
    }

    fn pid(&self, id: TaskId) -> Pid {
        self.pids[id.index()]
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn known(&self, id: TaskId) -> bool {
        self.members.get(&self.pid(id)).is_some_and(|member| member.known) && self.level_known(id)
    }

    /// Events are missing: start again with empty queues.
    fn lose(&mut self) {
        let config = self.fair.config.clone();
        let cpus = self.cpus.len();
        self.fair = Fair::new(config);
        self.fair.decisions = Some(Vec::new());
        self.members.clear();
        self.groups.clear();
        self.levels = Levels::default();
        self.pids.clear();
        self.free.clear();
        self.cpus = vec![Cpu::default(); cpus];
        self.tally.out_of_step += 1;
    }
}
