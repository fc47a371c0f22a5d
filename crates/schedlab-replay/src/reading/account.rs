//! `sched_stat_runtime`: the one record of `update_curr`, and by its surroundings the operation that called it.

use schedlab_model::{CpuId, Nanos, Pid, USEC};
use schedlab_trace::{Kind, TaskState};

use super::ahead::weight_of;
use super::switch::left;
use super::{is_fair, nice, Place, Reading, Task};
use crate::operation::{Flag, Group, Left, Operation, Timer, Weight, Whereabouts, Within};
use crate::step::{Point, Step, What};
use crate::window::Window;

/// An interrupt within this time came before the next lines of code.
const AT_ONCE: Nanos = 10 * USEC;

/// Nobody runs for 18 minutes without a tick: such a runtime is damaged.
const LONGEST: Nanos = 1 << 40;

impl Reading {
    pub(super) fn runtime(&mut self, step: &Step, pid: Pid, ran: Nanos, printed: Option<u64>, ahead: &Window<'_>) {
        if ran > LONGEST || pid == 0 {
            return;
        }
        self.charges = true;
        if !self.tasks.contains_key(&pid) {
            let Some(cpu) = self.where_it_runs(pid, step, ahead) else { return };
            self.cpu(cpu).current = Some(pid);
            self.introduce(pid, None, Whereabouts::Running(cpu), Some(step), ahead);
        }
        let Some(task) = self.tasks.get(&pid) else { return };
        let cpu = match task.place {
            Place::Running(cpu) => cpu,
            Place::Queued(_) | Place::Off(_) => step.cpu,
        };
        let blocked = self.cpus.get(cpu.index()).is_some_and(|cpu| cpu.blocked);
        if !blocked && is_outside(pid, printed, ahead.ahead().next()) {
            return self.runtime_outside(pid, ahead);
        }
        if !task.is_fair() {
            return self.come_back(pid, ahead);
        }
        let change = match step.in_task() {
            true if self.is_pending(step, ahead) => Some(Change::Set),
            true if cpu == step.cpu => self.change(step, pid, printed, ahead),
            _ => None,
        };
        (self.cpu(cpu).charged, self.cpu(cpu).stands) = (step.time, false);
        let arriving = self.cpu(step.cpu).moving.iter().any(|(_, to, _)| *to == cpu);
        let within = match change {
            None if !arriving => self.within(step, cpu, ahead),
            _ => Within::Undecided,
        };
        let told = cpu == step.cpu && step.in_task() && step.flag();
        self.cpu(cpu).schedules = told && change.is_none() && !matches!(within, Within::Wakeup(_));
        let asked = match within {
            Within::Wakeup(wakee) => self.tasks.get(&wakee).filter(|task| task.waking).map(|task| task.asked),
            _ => None,
        };
        self.push(Operation::Account { cpu, pid, ran, printed, within, asked });
        if matches!(within, Within::Wakeup(_)) && cpu != step.cpu {
            self.cpu(step.cpu).checking = Some((cpu, self.flag_of(cpu)));
        }
        if within == Within::Tick {
            let flag = self.flag_ahead(cpu, ahead);
            let timer = self.timer(cpu, step, ahead);
            self.push(Operation::Tick { cpu, flag, timer });
        }
        match change {
            Some(Change::Set) => self.set_pending(step.pid, true),
            Some(Change::Regroup(to)) => {
                let to = if self.sessions { to } else { Group::Same };
                let flag = Flag { before: step.flag(), ..self.flag_ahead(cpu, ahead) };
                self.cpu(cpu).flag = reschedules(step, ahead);
                self.push(Operation::Regroup { cpu, pid, to, flag });
            }
            Some(Change::Yield) => {
                self.push(Operation::Yield { cpu });
                match gives_way(step, pid, ahead) {
                    true => self.cpu(cpu).yielded = true,
                    // Nobody else was worth it.
                    false => self.push(Operation::Repick { cpu, sure: true }),
                }
            }
            Some(Change::Leave(weight, left)) => {
                if let Some(weight) = weight {
                    self.reweight(pid, weight);
                }
                self.block(cpu, left);
            }
            Some(Change::LeaveClass) => self.leave_class(pid),
            Some(Change::Fork(child)) => self.fork(cpu, pid, child, true),
            Some(Change::Reweight(weight)) => self.reweight(pid, weight),
            None => {}
        }
        self.arrive_after(step, ahead);
    }

    /// Which timer's interrupt this is: a probe tells, or else the tick comes first in its period.
    fn timer(&mut self, cpu: CpuId, step: &Step, ahead: &Window<'_>) -> Timer {
        let second = self.hrtick.is_some_and(|period| self.ticked(cpu, step.time / period));
        match std::mem::take(&mut self.cpu(cpu).hrtick) {
            true => Timer::Hrtick,
            false if second && !ahead.shows_hrtick() => Timer::Either,
            false => Timer::Tick,
        }
    }

    /// Whether the tick of a period has been seen: it comes first in its period.
    fn ticked(&mut self, cpu: CpuId, period: u64) -> bool {
        std::mem::replace(&mut self.cpu(cpu).ticked, period) == period
    }

    /// A runtime outside the fair class. It is the last one there if the next is not.
    fn runtime_outside(&mut self, pid: Pid, ahead: &Window<'_>) {
        if self.tasks.get(&pid).is_some_and(Task::is_fair) {
            self.leave_class(pid);
        }
        if outside_next(pid, ahead) == Some(false) {
            self.return_to_class(pid, ahead);
        }
    }

    /// A task first seen by a runtime: its own CPU's, or one whose records have not begun.
    fn where_it_runs(&self, pid: Pid, step: &Step, ahead: &Window<'_>) -> Option<CpuId> {
        if step.pid == pid {
            return Some(step.cpu);
        }
        let mut later = ahead.ahead().filter(|later| later.pid == pid);
        later.next().map(|later| later.cpu).filter(|cpu| self.current(*cpu).is_none())
    }

    fn within(&self, step: &Step, cpu: CpuId, ahead: &Window<'_>) -> Within {
        let own = cpu == step.cpu;
        match ahead.next_event_on(step.cpu) {
            Some(Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. }) => Within::Wakeup(pid),
            _ if own && step.in_irq() => Within::Tick,
            Some(Kind::Switch { .. }) if own => Within::Undecided,
            _ => {
                let mut flag = self.flag_ahead(cpu, ahead);
                flag.shared |= charges_first(step, ahead);
                Within::Other(flag)
            }
        }
    }

    /// What a task did to itself when it was charged outside any interrupt and not for a wakeup.
    fn change(&mut self, step: &Step, pid: Pid, printed: Option<u64>, ahead: &Window<'_>) -> Option<Change> {
        let cpu = step.cpu;
        let next = ahead.next_event_on(cpu);
        if matches!(next, Some(Kind::Wakeup { .. } | Kind::WakeupNew { .. })) {
            return None;
        }
        // A charge right before a switch is `schedule()`'s own.
        let exiting = |task: &mut Task| std::mem::take(&mut task.exiting);
        let charged_again = |next: &&Step| matches!(next.kind(), Some(Kind::Runtime { pid: of, .. }) if of == pid);
        let next_charge = ahead.ahead().find(|next| next.cpu == cpu && next.kind().is_some() || charged_again(next));
        let switches = next_charge.is_some_and(|next| matches!(next.kind(), Some(Kind::Switch { .. })));
        let moves = self.autogroup && !switches && !picks_again(step, ahead);
        if moves && self.tasks.get_mut(&pid).is_some_and(exiting) {
            return Some(Change::Regroup(Group::Root));
        }
        if std::mem::take(&mut self.cpu(cpu).yields) || self.yields(step, pid, ahead) {
            return Some(Change::Yield);
        }
        if let Some(left) = leaves(cpu, pid, false, ahead) {
            return Some(Change::Leave(self.new_weight(pid, printed, ahead), left));
        }
        if self.regroups(step, ahead) {
            return Some(Change::Regroup(Group::New));
        }
        match forks(step, pid, ahead) {
            Some(child) => Some(Change::Fork(child)),
            _ if outside_next(pid, ahead) == Some(true) => Some(Change::LeaveClass),
            _ => self.new_weight(pid, printed, ahead).map(Change::Reweight),
        }
    }

    /// `setsid`: it moves the task to a group of its own with its signal lock held, and (from 5.6 on) reschedules at once.
    /// Where the kernel does not count locks, the call itself must have been recorded. Without probes a `getrusage`, which up
    /// to 6.7 charges under that lock as well, looks the same when the slice ends right after it.
    fn regroups(&mut self, step: &Step, ahead: &Window<'_>) -> bool {
        if step.depth().is_none() {
            return self.autogroup && std::mem::take(&mut self.cpu(step.cpu).begins);
        }
        let wakes = |next: &Step| matches!(next.kind(), Some(Kind::Wakeup { .. }));
        let told =
            step.has_flags() && next_on(step, ahead).is_some_and(|next| next.flags.need_resched() && !wakes(next));
        let mut inside = ahead.ahead().filter(|next| next.cpu == step.cpu).take_while(|next| next.is_inside());
        let shown =
            inside.any(|next| matches!(next.what, What::Clock { pid, regroups: Some(true), .. } if pid == step.pid));
        self.autogroup && step.depth() == Some(b'3') && (shown || told && !ahead.shows_moves())
    }

    /// `sched_yield` without its record: it alone charges a task with nothing but the runqueue locked. Where the kernel
    /// does not count locks: the task is switched out runnable though nothing told it to go, and was not woken on its
    /// way to sleep.
    fn yields(&self, step: &Step, pid: Pid, ahead: &Window<'_>) -> bool {
        if let Some(depth) = step.depth() {
            return depth == b'1';
        }
        let runnable = |kind| matches!(kind, Kind::Switch { prev, prev_state: TaskState::Running, .. } if prev == pid);
        let untold = step.has_flags() && !step.flag() && self.tasks.get(&pid).is_some_and(|task| !task.woken);
        untold && ahead.next_event_on(step.cpu).is_some_and(runnable)
    }

    /// A weight that begins here: the task's vruntime grows by it until the task's next record. Where vruntime is not
    /// printed, a changed priority at the next switch says so, and the last record before it is taken for the place.
    fn new_weight(&self, pid: Pid, printed: Option<u64>, ahead: &Window<'_>) -> Option<Weight> {
        let known = self.tasks.get(&pid)?.weight;
        let (mut next, mut later_prio) = (None, None);
        for step in ahead.ahead() {
            match step.kind() {
                Some(Kind::Runtime { pid: of, runtime, vruntime }) if of == pid && next.is_none() => {
                    next = Some((runtime, vruntime, step.flag()));
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
}

/// Whether the next record is another charge of the task that tells its vruntime. Such a kernel (up to 6.7) renews the
/// deadline before it tells of the charge: the flag may be that charge's own.
fn charges_first(step: &Step, ahead: &Window<'_>) -> bool {
    let next = next_on(step, ahead).and_then(Step::kind);
    matches!(next, Some(Kind::Runtime { pid, vruntime: Some(_), .. }) if pid == step.pid)
}

/// Whether a task was charged because it leaves its queue: its switch follows, with nothing in between but what the CPU
/// pulls for itself meanwhile. That may take long, and other CPUs see the queue without the task.
pub(super) fn leaves(cpu: CpuId, pid: Pid, mut pulled: bool, ahead: &Window<'_>) -> Option<Left> {
    for step in ahead.ahead().filter(|step| step.cpu == cpu) {
        let Some(kind) = step.kind() else { continue };
        match kind {
            // Interrupts are off until the switch.
            _ if !step.in_task() => return None,
            Kind::Runtime { pid: of, .. } if of != pid || pulled => {}
            Kind::Migrate { dest_cpu, .. } if dest_cpu == cpu => pulled = true,
            Kind::Switch { prev, prev_state, .. } if prev == pid => {
                return Some(left(prev_state)).filter(|left| *left != Left::Runnable);
            }
            _ => return None,
        }
    }
    None
}

/// Whether the CPU's next record shows that a charge ended in `resched_curr`, as `sched_move_task` of the running task does
/// from 5.6 on: the flag, or the switch that it led to.
fn reschedules(step: &Step, ahead: &Window<'_>) -> bool {
    let switches = |next: &Step| matches!(next.kind(), Some(Kind::Switch { .. }));
    !step.has_flags() || next_on(step, ahead).is_some_and(|next| next.flags.need_resched() || switches(next))
}

/// Whether a charge is that of a `schedule()` which chooses the same task: it is made with the flag set, and clears it.
fn picks_again(step: &Step, ahead: &Window<'_>) -> bool {
    step.flag() && !reschedules(step, ahead)
}

fn next_on<'a>(step: &Step, ahead: &'a Window<'_>) -> Option<&'a Step> {
    ahead.ahead().find(|next| next.cpu == step.cpu && next.kind().is_some())
}

/// Whether a task was charged in `task_fork_fair`: what it tells next is that it has a child. Up to 5.16 much of
/// `copy_process` comes between, so that it may have been preempted there, more than once.
fn forks(step: &Step, pid: Pid, ahead: &Window<'_>) -> Option<Pid> {
    if let Some(Kind::Switch { .. }) = ahead.next_event_on(step.cpu) {
        return None;
    }
    let mut own = ahead.ahead().filter(|next| next.pid == pid && next.in_task()).filter_map(Step::kind).peekable();
    let preempted =
        |kind: &Kind| matches!(kind, Kind::Switch { prev_state, .. } if left(*prev_state) == Left::Runnable);
    loop {
        match own.next()? {
            Kind::Fork { parent, child } if parent == pid => return Some(child),
            // `schedule()` charges right before it switches.
            Kind::Runtime { pid: of, .. } if of == pid && own.peek().is_some_and(preempted) => {}
            kind if preempted(&kind) => {}
            _ => return None,
        }
    }
}

/// Whether the switch of a task that yields is the yield's own: `schedule()` follows at once, but for an interrupt that
/// comes at once.
fn gives_way(step: &Step, pid: Pid, ahead: &Window<'_>) -> bool {
    let mut own = ahead.ahead().filter(|next| next.cpu == step.cpu && next.kind().is_some()).peekable();
    let at_once = |next: &&Step| next.in_task() || next.time - step.time < AT_ONCE;
    let next = own.peek().copied().filter(at_once).and_then(|_| own.find(|next| next.in_task()));
    next.and_then(Step::kind).is_some_and(|kind| matches!(kind, Kind::Switch { prev, .. } if prev == pid))
}

/// Whether the task's next runtime is outside the fair class, if it runs on until then.
fn outside_next(pid: Pid, ahead: &Window<'_>) -> Option<bool> {
    let mut steps = ahead.ahead().peekable();
    while let Some(step) = steps.next() {
        match step.kind() {
            Some(Kind::Runtime { pid: of, vruntime, .. }) if of == pid => {
                return Some(is_outside(pid, vruntime, steps.peek().copied()));
            }
            Some(Kind::Switch { prev, .. }) if prev == pid => return None,
            _ => {}
        }
    }
    None
}

/// Whether a runtime was outside the fair class: it prints vruntime 0, or the probe behind it finds the task on no queue.
fn is_outside(pid: Pid, printed: Option<u64>, behind: Option<&Step>) -> bool {
    match (printed, behind.map(|step| step.what)) {
        (Some(printed), _) => printed == 0,
        (None, Some(What::Probe(probe))) => probe.point == Point::Runtime && probe.pid == pid && !probe.queued,
        _ => false,
    }
}

/// What a task did to itself.
#[derive(Clone, Copy)]
enum Change {
    /// What a probe has told.
    Set,
    /// `sched_move_task` of a task that exits or begins a session.
    Regroup(Group),
    Yield,
    /// It was charged for the last time, in `schedule()` or where its weight changed right before.
    Leave(Option<Weight>, Left),
    Fork(Pid),
    LeaveClass,
    Reweight(Weight),
}
