//! One version row driven through the operations of a trace: it decides, is compared, and is then put on what the
//! kernel decided.
//!
//! A model is given [`Input`]s and nothing else of the trace.

mod clock;
mod compare;
mod desync;
mod driver;
mod group_state;
mod judge;
mod migrate;
mod preempt;
mod process;
mod schedule;
mod show;
mod signature;
mod state;
mod table;
mod taken;
mod tasks;
#[cfg(test)]
mod tests;
mod tg_load;
mod wakeup;

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, Pid, TaskId, Topology};
use schedlab_policy::fair::{CpuAverages, Fair, GroupId, SchedParams};
use schedlab_policy::{Algorithm, KernelConfig, Resched, Sched};

use crate::decision::Decision;
use crate::groups::{GroupName, InitialGroups};
use crate::guess::Guess;
use crate::operation::{Caller, Charge, Input, Operation};
use crate::tally::Tally;
use group_state::Coverage;
use table::Tasks;
use tg_load::TgSums;

/// A version row with its tasks and its score.
#[derive(Clone)]
pub struct Model {
    /// The scheduler, called as the simulator calls it; what the trace shows is adopted by [`Sched::follow`].
    pub sched: Sched,
    /// Everything that is counted, except decisions.
    pub tally: Tally,
    /// The decisions of the last input.
    pub decisions: Vec<Decision>,
    /// What a task of unknown state in the next input is assumed to have.
    pub guess: Guess,
    /// Its decisions may be counted, so that they are compared with simple rules and described.
    pub counts: bool,
    eevdf: bool,
    tasks: Tasks,
    /// The groups of the header, and those of them that exist in the model.
    initial: Arc<InitialGroups>,
    groups: BTreeMap<GroupName, GroupId>,
    coverage: Coverage,
    /// Which of the groups' sums operations read.
    sums: TgSums,
    /// The highest pid of the tasks whose slice shows that they were forked while one CPU was online.
    booted: Option<Pid>,
    pub pids: Vec<Pid>,
    cpus: Vec<Cpu>,
    /// The CPUs that are in a scheduling domain.
    active: CpuMask,
    now: Nanos,
    /// The CPU of the record.
    at: CpuId,
    order: u64,
    /// The last charge of each task whose process is not yet shown.
    charges: BTreeMap<TaskId, (CpuId, Nanos)>,
}

/// A task of the fair class.
#[derive(Clone, Debug)]
struct Task {
    id: TaskId,
    /// Its state follows from the trace.
    known: bool,
    /// It has been known before.
    was_known: bool,
    /// When it was queued last, for the baselines.
    queued_at: u64,
    /// vruntime at its last record: the kernel's and the model's.
    printed: Option<(u64, u64)>,
    /// It changed CPU while it was on no queue (`ENQUEUE_MIGRATED`).
    migrated: bool,
    /// Between `detach_task` and `attach_task`.
    moving: migrate::Moving,
    /// It is in another scheduling class.
    left_class: bool,
    waking: wakeup::Waking,
    /// State that the trace showed last, for reports.
    shown: show::Shown,
}

#[derive(Clone, Default, Debug)]
struct Cpu {
    /// The runqueue's clock as far as run times give it.
    clock: Nanos,
    /// The same as probes read it.
    read: Option<Nanos>,
    /// When they read it, by the trace's clock.
    read_at: Nanos,
    /// It was read since the last charge.
    read_anew: bool,
    /// The current task was charged up to this clock by the check of a new task, whose record comes before that of the
    /// charge.
    checked: Option<(TaskId, Nanos)>,
    /// When a run time was recorded last, by the trace's clock.
    charged_at: Nanos,
    /// The wakee for whose wakeup that was.
    charged_for: Option<Pid>,
    /// From `sched_waking` to the update of the clock, less the time from another update to the record of its run time.
    delay: i64,
    /// `__schedule` is in newidle balancing.
    in_newidle: bool,
    /// The queue's zero point was set from the first task seen on it.
    primed: bool,
    /// It follows from a task that arrived with a relative vruntime.
    settled: bool,
    /// The model preempted the running task in a series of decisions whose outcome shows only at its end.
    preempted: Resched,
    /// The last decision of such a series, if the model kept the running task in all of them so far: no decision of it
    /// may follow that accounts for the flag.
    pending: Option<Decision>,
    /// The queue's zero point is the kernel's.
    zero_taken: bool,
    /// It was taken from the trace before.
    zero_was_taken: bool,
    /// The averages of its own queue as a probe showed them, and up to when they are accounted.
    averages: Option<(CpuAverages, Nanos)>,
    /// State before and after the last charge, until a probe shows the kernel's.
    charge: Option<(state::Snapshot, state::Snapshot)>,
}

impl Model {
    /// `shows_state`: the trace shows tasks' state.
    pub fn new(
        config: KernelConfig,
        topology: Arc<Topology>,
        tally: Tally,
        initial: Arc<InitialGroups>,
        shows_state: bool,
    ) -> Self {
        let eevdf = config.version.rules.algorithm == Algorithm::Eevdf;
        let sched = recording(config, topology);
        let cpus = vec![Cpu::default(); sched.topology().nr_cpus()];
        let active = CpuMask::first(cpus.len());
        let coverage = Coverage::new(shows_state && !initial.is_empty(), cpus.len());
        Model {
            sched,
            tally,
            decisions: Vec::new(),
            guess: Guess::default(),
            counts: true,
            eevdf,
            tasks: Tasks::default(),
            initial,
            groups: BTreeMap::new(),
            coverage,
            sums: TgSums::default(),
            booted: None,
            pids: Vec::new(),
            cpus,
            active,
            now: 0,
            at: CpuId(0),
            order: 0,
            charges: BTreeMap::new(),
        }
    }

    /// Follows one operation of the kernel.
    pub fn apply(&mut self, input: &Input) {
        (self.now, self.at) = (input.time, input.cpu);
        self.decisions.clear();
        self.sched.clear_decisions();
        self.end_sum_read(&input.operation);
        self.follow(input);
        debug_assert!(self.cores_agree(), "core code and the fair class have another running task or CPU");
    }

    /// Whether core code has each task where the fair class has it.
    fn cores_agree(&self) -> bool {
        let running = |cpu: &CpuId| self.sched.curr(*cpu) == self.fair().curr(*cpu);
        let queued = |task: &Task| self.sched.cpu_of(task.id) == self.fair().entity(task.id).cpu;
        (0..self.cpus.len() as u32).map(CpuId).all(|cpu| running(&cpu)) && self.tasks.values().all(queued)
    }

    fn follow(&mut self, input: &Input) {
        match input.operation {
            Operation::UpdateRqClock { cpu, clock } => self.read_clock(cpu, clock),
            Operation::UpdateBlockedAverages { cpu, at } => {
                let at = at.unwrap_or_else(|| self.clock(cpu));
                self.sched.follow().update_blocked_averages(cpu, at);
            }
            Operation::UpdateCfsRqLoad(ref update) => self.update_cfs_rq_load(update),
            Operation::ForkedWith { pid, cpus } => self.forked_with(pid, cpus),
            Operation::UpdateTgLoad { cpu, group, task, load } => self.update_tg_load((group, task), cpu, load),
            Operation::AddTask(ref new) => self.add_task(new),
            Operation::UpdateCurr(ref charge) => self.update_curr(charge),
            Operation::Tick { cpu, flag, timer } => self.tick(cpu, flag, timer),
            Operation::Wakeup(ref wakeup) => self.wakeup(wakeup),
            Operation::SetTaskCpu { pid, from, to, charged } => self.select_task_rq(pid, from, to, charged),
            Operation::Detach { pid, from, to } => self.detach(pid, from, to),
            Operation::EnqueueMoved { pid, cpu } => self.enqueue_moved_uncharged(pid, cpu),
            Operation::Attach { pid, cpu, first, flag } => self.attach(pid, cpu, first, flag),
            Operation::Fork { cpu, parent, child, certain } => self.fork(cpu, parent, child, certain),
            Operation::Start { cpu, start } => self.start(cpu, &start),
            Operation::Block { cpu, special } => self.block(cpu, special),
            Operation::NewidleBalance { cpu } => self.newidle_balance(cpu),
            Operation::Switch(ref switch) => self.switch(switch),
            Operation::Repick { cpu, certain } => self.repick(cpu, certain),
            Operation::MoveTask { cpu, pid, to, flag } => self.move_task(cpu, pid, to, flag),
            Operation::Yield { cpu } => self.sched.yield_current(cpu, self.clock(cpu)),
            Operation::SetAffinity { pid } => self.set_affinity(pid),
            Operation::FinishDelayed { pid } => self.finish_delayed(pid),
            Operation::SetScheduler { pid, policy, nice, slice } => {
                self.set_scheduler(pid, SchedParams { policy, nice, slice })
            }
            Operation::SetPolicy { pid, policy } => self.set_policy(pid, policy),
            Operation::SetNice { pid, nice } => self.set_nice(pid, nice),
            Operation::Reweight { pid, weight } => self.reweight(pid, weight),
            Operation::SwitchedFrom { pid } => self.switched_from(pid),
            Operation::SwitchedTo { pid, at } => self.switched_to(pid, at),
            Operation::Release { pid } => self.release(pid),
            Operation::Probe { ref probe, charged } => self.probe(probe, charged),
            Operation::Process { pid, ref shown } => self.process(pid, shown),
            Operation::TaskCacheWork { cpu, pid } => self.task_cache_work(cpu, pid),
            Operation::CanMigrateTask { pid } => self.can_migrate_task(pid),
            Operation::CpuAverages { cpu, averages, until, followed, .. } => {
                self.note_cpu_averages(cpu, (averages, until), followed);
            }
            Operation::SetCpuActive { cpu, active } => self.set_cpu_active(cpu, active),
            Operation::SelectTaskRq(_)
            | Operation::SchedBalanceRq(_)
            | Operation::CpusAllowed { .. }
            | Operation::GroupMarks { .. }
            | Operation::TaskAverages { .. } => {}
            Operation::Lost => self.lose(),
        }
    }

    /// Slices and sums of groups follow the CPUs.
    fn set_cpu_active(&mut self, cpu: CpuId, active: bool) {
        if active {
            self.active.set(cpu);
        } else {
            self.active.clear(cpu);
        }
        let now = self.clock(cpu);
        self.sched.follow().rq_online(&self.active, !active, now);
    }

    fn can_migrate_task(&mut self, pid: Pid) {
        if let Some(task) = self.task(pid) {
            self.sched.follow().can_migrate_task(task);
        }
    }

    /// Whether probes show the averages of CPUs.
    pub fn shows_averages(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.averages.is_some())
    }

    /// Whether the row has lags.
    pub fn is_eevdf(&self) -> bool {
        self.eevdf
    }

    /// The task of a pid, while it is in the fair class.
    pub fn task(&self, pid: Pid) -> Option<TaskId> {
        self.tasks.get(&pid).filter(|task| !task.left_class).map(|task| task.id)
    }

    /// The pid of a task.
    pub fn pid(&self, id: TaskId) -> Pid {
        self.pids[id.index()]
    }

    /// `update_curr`.
    fn update_curr(&mut self, charge: &Charge) {
        let Charge { cpu, pid, ran, printed, caller, waking_at } = *charge;
        self.measure_delay(cpu, ran, waking_at);
        let Some(id) = self.task(pid) else { return };
        if self.sched.curr(cpu) != Some(id) {
            self.force_running(cpu, pid);
        }
        if let Caller::Wakeup(wakee) = caller {
            self.enqueue_uncharged(cpu, wakee);
        }
        self.sched.clear_resched(cpu);
        let read = self.read_for_charge(cpu, id, ran);
        let checked =
            self.cpus[cpu.index()].checked.take().is_some_and(|(task, clock)| task == id && read == Some(clock));
        if let Some(read) = read.filter(|_| !checked) {
            self.sched.follow().restore().exec_start(id, read.saturating_sub(ran));
        }
        if self.fair().has_sched_cache() {
            self.charges.insert(id, (cpu, ran));
        }
        let before = self.snapshot(cpu, id);
        // The groups above are charged by the next operation that looks at their queues.
        if !checked {
            self.sched.follow().update_curr(cpu, ran);
        }
        self.cpus[cpu.index()].charge = Some((before, self.snapshot(cpu, id)));
        self.clock_charged(cpu, id, caller);
        if let Some(printed) = printed {
            self.compare_vruntime(pid, printed);
        }
        match caller {
            Caller::Other(flag) => self.judge_update(cpu, flag),
            // No record shows what it decides, and a flag that a later one shows may be due to it.
            Caller::NoCheck if self.fair().need_resched(cpu) != Resched::No => self.excuse_pending(cpu),
            _ => {}
        }
    }

    /// The state of the fair class, to be read.
    pub fn fair(&self) -> &Fair {
        &self.sched.fair
    }

    /// The time of the record.
    pub fn now(&self) -> Nanos {
        self.now
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn known(&self, id: TaskId) -> bool {
        self.tasks.of(id).is_some_and(|task| task.known) && self.queues_known(id)
    }

    /// Events were lost: start again with empty queues.
    fn lose(&mut self) {
        let config = (*self.fair().config).clone();
        let cpus = self.cpus.len();
        self.sched = recording(config, Arc::clone(self.sched.topology()));
        self.charges.clear();
        self.tasks.clear();
        self.groups.clear();
        self.coverage = Coverage::default();
        self.sums = TgSums::default();
        self.pids.clear();
        self.cpus = vec![Cpu::default(); cpus];
        self.tally.desyncs += 1;
    }
}

/// A scheduler that records its decisions.
fn recording(config: KernelConfig, topology: Arc<Topology>) -> Sched {
    let mut sched = Sched::new(config, topology);
    sched.record(false, false);
    sched
}
