//! From records to operations: which function of the kernel emitted a record, and what it decided.
//!
//! Follows core.c and fair.c: an operation emits the same records in the same order in every modelled version, with
//! three exceptions that the records themselves distinguish. The outcome of a decision is the need-resched flag of the
//! CPU's next record. The reader does not use vruntimes, except to infer a weight from the growth of one.

mod balance;
mod charge;
mod class;
mod clock;
mod code;
mod delayed;
mod domains;
mod first;
mod flag;
#[cfg(test)]
mod flag_tests;
mod jiffies;
mod pass;
#[cfg(test)]
mod placement_tests;
mod select;
mod switch;
mod task;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tg_load;
mod wake;
mod weight;
#[cfg(test)]
mod yield_tests;
mod yields;

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_trace::Kind;

use self::delayed::delayed_task;
use self::first::{initial_tasks, prio_ahead, probes_follow_charges};
use self::flag::FlagBefore;
use self::task::{Place, Task};
use self::wake::Wakee;
use crate::header::Kernel;
use crate::operation::{CfsRqUpdate, Location, Operation};
use crate::trace::{Address, CfsRqLoad, Entry, Probe, What, Window};
use crate::trace::{OthersLoad, Start};

/// What is known from the records so far.
pub struct Reader {
    kernel: Kernel,
    cpus: Vec<Cpu>,
    tasks: BTreeMap<Pid, Task>,
    operations: Vec<Operation>,
    /// The trace has run times.
    charges: bool,
    /// Tasks that were queued when the recording began, until their CPU's first record.
    initial: Option<Vec<(Pid, CpuId)>>,
    /// The group that each task was last shown in.
    shown_in: BTreeMap<Pid, Address>,
    /// A probe at `sched_stat_runtime` reads the state after the charge.
    probes_follow_charges: Option<bool>,
    /// The shortest time from the charge of a yield to its switch.
    yield_takes: Option<Nanos>,
    /// The least preempt count of interrupts, by what they emit.
    irq_depth: [Option<u8>; 2],
    /// The simulated task whose fork is the next record.
    starting: Option<Start>,
    /// What the tick count would have been at time 0 of the trace's clock, as far as records show it.
    jiffies_at_0: Option<u64>,
    /// Changes of nice values and classes that no record announced.
    unannounced: u64,
    now: Nanos,
}

/// A CPU.
#[derive(Clone, Default)]
struct Cpu {
    /// The running task; `None` until the first record.
    current: Option<Pid>,
    /// An arriving task has shown the position of the queue in virtual time.
    primed: bool,
    /// When its running task was charged last.
    charged: Nanos,
    /// Need-resched as last seen, lazy or not.
    flag: bool,
    /// TIF_NEED_RESCHED was seen, not only the lazy flag.
    full: bool,
    /// Need-resched before this record.
    flag_before: FlagBefore,
    /// Tasks that code on this CPU has detached and not yet attached.
    moving: Vec<Moving>,
    /// The clock by which code on this CPU enqueued a task without a wakeup.
    attach_clock: Option<Nanos>,
    /// The hrtick fired, and its charge is still to come.
    hrtick: bool,
    /// The last tick period in which a timer interrupt was seen.
    ticked: u64,
    /// The last record was emitted in an interrupt.
    interrupted: bool,
    /// Its last record is from the middle of an enqueue on this CPU.
    enqueues_on: Option<CpuId>,
    /// This record is a charge of the task that no change explains.
    unexplained: Option<Pid>,
    /// The task whose announced change was made at the last event, a charge.
    changed_task: Option<Pid>,
    /// This record is a charge that only `schedule()` can have made.
    schedules: bool,
    /// The running task has set its own need-resched by this record (`switched_to_fair`), whatever the record shows.
    resched: bool,
    /// The running task has yielded, and `schedule()` will pick it again, perhaps after an interrupt.
    picks_again: bool,
    /// The queue has changed in that interrupt.
    changed: bool,
    /// `schedule()` has picked the running task again since the last event.
    repicked: bool,
    /// The running task was dequeued already.
    blocked: bool,
    /// It has looked for tasks to pull since (`sched_balance_newidle`).
    newidle: bool,
    /// The balancer has updated the loads of a CPU since the last event, and a probe has shown it.
    updates_blocked: bool,
    /// Tasks were attached while it idled: it enters `schedule()` at the end of the interrupt that attached them.
    received: bool,
    /// The last record was a charge.
    just_charged: bool,
    /// The clock stands still: a fork found nothing to charge.
    clock_stands: bool,
    /// It is in no scheduling domain.
    inactive: bool,
    /// The running task entered `setsid`.
    setsid: bool,
    /// The running task has yielded: its switch says nothing about the flag.
    yielded: bool,
    /// The task that a CPU is being selected for by code on this CPU.
    selecting: Option<Pid>,
    /// Code on this CPU is in `sched_balance_rq`.
    balances: bool,
    /// The task that `sched_waking` named last on this CPU.
    wakes: Option<Pid>,
    /// When it became idle or busy last.
    idle_changed: Nanos,
    /// The sums of groups that code on this CPU has read last since its last event other than a charge, or since its
    /// last tick, by queue and group.
    sums_read: BTreeMap<(CpuId, u64), OthersLoad>,
    /// Code on this CPU charged the current task of another one for a wakeup: that CPU, and its flag before the check.
    checking: Option<(CpuId, bool)>,
}

/// A task between `detach_task` and `attach_task`.
#[derive(Clone, Copy)]
struct Moving {
    pid: Pid,
    to: CpuId,
    /// Where it is once attached.
    becomes: Place,
    /// A probe has shown its enqueue.
    enqueued: bool,
}

impl Reader {
    pub fn new(kernel: Kernel) -> Self {
        Reader {
            kernel,
            cpus: vec![Cpu::default(); kernel.cpus.max(1)],
            tasks: BTreeMap::new(),
            operations: Vec::new(),
            charges: false,
            initial: None,
            shown_in: BTreeMap::new(),
            probes_follow_charges: None,
            yield_takes: None,
            irq_depth: [None; 2],
            starting: None,
            jiffies_at_0: None,
            unannounced: 0,
            now: 0,
        }
    }

    /// How many changes of nice values and classes no record announced so far.
    pub fn unannounced(&self) -> u64 {
        self.unannounced
    }

    /// The operations that a record stands for or completes.
    pub fn read(&mut self, entry: &Entry, ahead: &Window<'_>) -> std::vec::Drain<'_, Operation> {
        let needed = entry.cpu.index() + 1;
        if self.cpus.len() < needed {
            self.cpus.resize(needed, Cpu::default());
        }
        self.cpu(entry.cpu).enqueues_on = match entry.what {
            What::Clock { cpu, move_task: Some(_), .. } => cpu,
            What::CpuAverages { .. } | What::CfsRqLoad { .. } => self.cpu(entry.cpu).enqueues_on,
            _ => None,
        };
        match entry.what {
            What::Event(kind) => self.event(entry, kind, ahead),
            _ => self.other(entry, ahead),
        }
        self.repick_before_next(entry, ahead);
        self.operations.drain(..)
    }

    /// A record that is no scheduler event.
    fn other(&mut self, entry: &Entry, ahead: &Window<'_>) {
        let calls = matches!(entry.what, What::Change(_) | What::ChangeTarget(_) | What::Yield | What::Setsid);
        if calls {
            self.start(entry, ahead);
        }
        if calls && entry.in_task() {
            self.end_yield(entry, false);
        }
        match entry.what {
            What::Probe(probe) => self.probe(probe, ahead),
            What::TaskCacheWork => self.push(Operation::TaskCacheWork { cpu: entry.cpu, pid: entry.pid }),
            What::Hrtick => self.cpu(entry.cpu).hrtick = true,
            What::Yield => self.enter_yield(entry.pid),
            What::Setsid => self.cpu(entry.cpu).setsid = true,
            What::Change(change) => {
                if let Some(task) = self.tasks.get_mut(&entry.pid) {
                    task.announce(change, entry.pid);
                }
            }
            What::ChangeTarget(pid) => {
                if let Some(task) = self.tasks.get_mut(&entry.pid) {
                    task.change_target = Some(pid);
                }
            }
            What::Clock { cpu: Some(cpu), clock, pid, move_task, restored } => {
                self.enqueue_shown(entry, pid, (cpu, clock), ahead);
                if move_task.is_some() {
                    self.requeued(entry, cpu, (pid, restored), ahead);
                }
            }
            What::RqClock { cpu, clock } => {
                self.attach_before_clock(entry, clock, ahead);
                self.push(Operation::UpdateRqClock { cpu, clock });
            }
            What::UpdateBlockedAverages { cpu, clock } => self.update_blocked_averages(entry, cpu, clock, ahead),
            What::CfsRqLoad { cpu, at, state: Some(state) } => self.update_cfs_rq_load(entry, cpu, at, &state, ahead),
            What::Start(start) => self.starting = Some(start),
            What::Select(ref probe) => self.select_task_rq(entry, probe, ahead),
            What::Selected { cpu } => self.selected(entry, cpu),
            What::Pass(ref record) => self.pass(entry, record, ahead),
            What::CpuAverages { cpu, averages, capacity, until, .. } => {
                let followed = ahead.shows_updates();
                self.push(Operation::CpuAverages { cpu, averages, capacity, until, followed });
            }
            What::SumsRead { cpu, group, others } => {
                self.cpu(entry.cpu).sums_read.insert((cpu, group), others);
            }
            What::AttachDomain { cpu, attached } => self.attach_domain(cpu, attached, ahead),
            What::Lost => self.lost(),
            What::Clock { .. }
            | What::CfsRqLoad { .. }
            | What::EnterCall
            | What::LeaveCall
            | What::ReschedPoint
            | What::Checked
            | What::NewTask { .. }
            | What::Other
            | What::Event(_) => {}
        }
    }

    /// The scheduler's own state of a task.
    fn probe(&mut self, probe: Probe, ahead: &Window<'_>) {
        if let Some(address) = probe.address {
            self.shown_in.insert(probe.pid, address);
        }
        let charged = *self.probes_follow_charges.get_or_insert_with(|| probes_follow_charges(ahead));
        self.push(Operation::Probe { probe, charged });
        if let Some(shown) = probe.process {
            self.push(Operation::Process { pid: probe.pid, shown });
        }
    }

    /// A probe shows that a task is enqueued without a wakeup, and the clock of the queue.
    fn enqueue_shown(&mut self, entry: &Entry, pid: Pid, (cpu, clock): (CpuId, Nanos), ahead: &Window<'_>) {
        self.attach_enqueued(entry, cpu, ahead);
        let view = self.cpu(entry.cpu);
        view.attach_clock = Some(clock);
        view.moving.iter_mut().filter(|moving| moving.pid == pid).for_each(|moving| moving.enqueued = true);
        self.push(Operation::UpdateRqClock { cpu, clock });
    }

    fn update_cfs_rq_load(&mut self, entry: &Entry, cpu: CpuId, at: Nanos, state: &CfsRqLoad, ahead: &Window<'_>) {
        if self.cpu(entry.cpu).moving.iter().any(|moving| moving.to == cpu) {
            self.cpu(entry.cpu).attach_clock = Some(state.clock);
        }
        self.push(Operation::UpdateRqClock { cpu, clock: state.clock });
        self.read_tg_load(entry, (state.group.at, None), cpu, ahead);
        let update = CfsRqUpdate { cpu, at, state: *state, in_task: entry.in_task() };
        self.push(Operation::UpdateCfsRqLoad(update));
    }

    fn event(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        self.start(entry, ahead);
        self.attach_before(entry, kind, ahead);
        self.attach_named_task(entry, kind, ahead);
        if let Some(locked) = self.locked_by(entry, kind) {
            self.attach_enqueued(entry, locked, ahead);
        }
        self.block_before_switch(entry, kind, ahead);
        self.read_clock(entry, kind, ahead);
        self.read_tg_loads(entry, kind, ahead);
        self.now = entry.time;
        self.note_depth(entry);
        self.cpu(entry.cpu).schedules = false;
        self.cpu(entry.cpu).unexplained = None;
        self.cpu(entry.cpu).changed_task = None;
        if !self.cpu(entry.cpu).balances {
            self.cpu(entry.cpu).updates_blocked = false;
        }
        self.cpu(entry.cpu).repicked = false;
        let before = self.follow_flag(entry, ahead);
        self.cpu(entry.cpu).flag_before = before;
        self.leave_task_code(entry, kind, ahead);
        let interrupted = std::mem::replace(&mut self.cpu(entry.cpu).interrupted, !entry.in_task());
        match kind {
            Kind::Runtime { pid, runtime, vruntime } => self.runtime(entry, pid, runtime, vruntime, ahead),
            Kind::Waking { pid, prio, target_cpu } => {
                self.cpu(entry.cpu).wakes = Some(pid);
                self.waking(pid, prio, target_cpu, ahead);
                self.return_to_last_cpu(entry, pid, target_cpu, ahead);
            }
            Kind::Wakeup { pid, prio, target_cpu: cpu } => {
                self.wakeup(entry, &Wakee { pid, prio, cpu }, before, ahead);
            }
            Kind::WakeupNew { pid, prio, target_cpu: cpu } => {
                self.wakeup_new(entry, &Wakee { pid, prio, cpu }, ahead);
            }
            Kind::Migrate { .. } => self.migrate(entry, kind, ahead),
            Kind::Fork { parent, child } => {
                self.cancel_change(parent);
                // Without state in the trace there is no better time to place the child.
                self.fork(entry.cpu, (parent, child), !interrupted || !ahead.shows_state(), ahead);
            }
            Kind::Exit { pid, .. } => self.exit(pid),
            Kind::Switch { .. } => self.switch(entry, kind, ahead),
            Kind::Sample { .. }
            | Kind::Count { .. }
            | Kind::Scan { .. }
            | Kind::Fault { .. }
            | Kind::Resched { .. }
            | Kind::NonPreemptible { .. }
            | Kind::Extension { .. }
            | Kind::Refill { .. }
            | Kind::Numa { .. }
            | Kind::LockWait { .. } => {}
        }
        self.cpu(entry.cpu).just_charged = matches!(kind, Kind::Runtime { .. });
        // A charge may follow what an enqueue has read, and precede its wakeup.
        if !matches!(kind, Kind::Runtime { .. }) {
            self.cpu(entry.cpu).sums_read.clear();
        }
    }

    /// A record in task context ends what the task was in the middle of.
    fn leave_task_code(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        self.yield_uncharged(entry, kind);
        if entry.in_task() && !matches!(kind, Kind::Switch { .. } | Kind::Runtime { .. }) {
            self.cpu(entry.cpu).yielded = false;
        }
        // A task that is preempted in the kernel has not finished its system call.
        if entry.in_task() && !entry.preempts && !matches!(kind, Kind::Runtime { .. }) {
            self.make_pending_change(entry.pid, false, ahead);
            self.cpu(entry.cpu).setsid = false;
        }
    }

    /// The first record on a CPU shows which task runs there.
    fn start(&mut self, entry: &Entry, ahead: &Window<'_>) {
        if self.cpu(entry.cpu).current.is_some() {
            return;
        }
        let pid = match entry.kind() {
            Some(Kind::Switch { prev, .. }) => prev,
            _ => entry.pid,
        };
        self.cpu(entry.cpu).current = Some(pid);
        self.cpu(entry.cpu).flag = entry.flag();
        self.cpu(entry.cpu).full = entry.flags.need_resched();
        self.start_clock(entry.cpu, ahead);
        if pid != 0 {
            self.add_task(pid, None, Location::Running(entry.cpu), Some(entry), ahead);
        }
        let initial = self.initial.take().unwrap_or_else(|| initial_tasks(entry, ahead));
        let (own, others): (Vec<_>, Vec<_>) = initial.into_iter().partition(|(_, cpu)| *cpu == entry.cpu);
        self.initial = Some(others);
        let delayed = if self.kernel.uses_autogroup { None } else { delayed_task(entry, &own, ahead) };
        for (pid, cpu) in own {
            if !self.tasks.contains_key(&pid) {
                // This record may be the switch that shows it.
                let prio = prio_ahead(pid, Some(entry), ahead);
                self.add_task(pid, prio, Location::Queued(cpu), None, ahead);
            }
        }
        if let Some((prio, probe)) = delayed {
            self.add_delayed_task(prio, probe, entry.cpu);
        }
    }

    /// A change that a task announced did not happen.
    fn cancel_change(&mut self, pid: Pid) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.change = None;
        }
    }

    fn exit(&mut self, pid: Pid) {
        self.cancel_change(pid);
        if let Some(task) = self.tasks.get_mut(&pid) {
            (task.exiting, task.dying) = (true, true);
        }
    }

    /// Events were lost: start again, with the CPUs that are in a scheduling domain.
    fn lost(&mut self) {
        let unannounced = self.unannounced;
        let cpus = self.cpus.iter().map(|view| Cpu { inactive: view.inactive, ..Cpu::default() }).collect();
        *self = Reader { unannounced, cpus, ..Reader::new(self.kernel) };
        self.push(Operation::Lost);
    }

    fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let index = cpu.index();
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, Cpu::default());
        }
        &mut self.cpus[index]
    }

    fn current(&self, cpu: CpuId) -> Option<Pid> {
        self.cpus.get(cpu.index())?.current
    }

    fn current_is_fair(&self, cpu: CpuId) -> bool {
        self.current(cpu).and_then(|pid| self.tasks.get(&pid)).is_some_and(Task::is_fair)
    }

    fn place(&self, pid: Pid) -> Option<Place> {
        self.tasks.get(&pid).map(|task| task.place)
    }

    fn put(&mut self, pid: Pid, place: Place) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.place = place;
        }
    }
}
