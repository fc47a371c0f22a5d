//! State that the model takes from the trace: a task's where it is first shown, and the position of a queue in virtual
//! time.

use schedlab_model::{CpuId, Nanos, Pid, TaskId, Vruntime};
use schedlab_policy::fair::{CpuAverages, GroupId};
use schedlab_policy::weight::calc_delta_fair;

use super::Model;
use crate::inputs::InputKind;
use crate::operation::First;
use crate::trace::{SelectState, TaskAverages};

impl Model {
    /// Slice of a task that is about to be placed, if the trace shows it; its lag as guessed, if nothing shows its
    /// state.
    pub(super) fn take_lag(&mut self, id: TaskId, first: Option<First>) {
        let mut state = self.fair().view().task_state(id);
        match first {
            Some(First::Probed { probe, .. }) => state.slice = probe.slice,
            Some(First::Unknown) if self.eevdf => state.vlag = self.guess.lag(self.fair().view().lag_limit(id)),
            _ => return,
        }
        self.sched.follow().restore().task(id, state);
    }

    /// A task that is queued at its first record has used a part of its slice.
    pub(super) fn guess_used_slice(&mut self, id: TaskId) {
        let mut state = self.fair().view().task_state(id);
        let used = self.guess.used(state.deadline.since(state.vruntime));
        state.deadline = state.deadline.plus(-used);
        self.sched.follow().restore().task(id, state);
    }

    /// The first task seen on a queue shows roughly where the queue is in virtual time.
    pub(super) fn prime_queue(&mut self, cpu: CpuId, id: TaskId, first: Option<First>) {
        let Some(vruntime) = first.map(|first| self.first_vruntime(id, first)) else { return };
        if let Some(first) = first.filter(|_| self.coverage.is_preexisting()) {
            return self.position_queues(id, vruntime, first);
        }
        if !std::mem::replace(&mut self.cpus[cpu.index()].primed, true) {
            self.take_position(cpu, vruntime);
        }
    }

    /// A task was placed on a queue whose position in virtual time is not known: the trace shows where the task was
    /// placed, and placement is the same everywhere. A task that `arrives` with a relative vruntime settles the
    /// position; a sleeper may have returned to where it was.
    pub(super) fn align_queue(&mut self, cpu: CpuId, id: TaskId, first: Option<First>, arrives: bool) {
        let Some(first) = first else { return };
        if self.coverage.is_preexisting() {
            return;
        }
        let alone = self.fair().rq(cpu).nr_competing(&self.fair().config) == 1;
        let queue = &mut self.cpus[cpu.index()];
        let guess = !std::mem::replace(&mut queue.primed, true);
        let settles = arrives && (alone || !self.eevdf) && !std::mem::replace(&mut queue.settled, true);
        if guess || settles {
            let off = self.first_vruntime(id, first).since(self.fair().entity(id).vruntime);
            let zero = self.fair().rq(cpu).min_vruntime.plus(off);
            self.take_position(cpu, zero);
        }
    }

    /// The same for a task whose own state is known: it keeps its place relative to the queue.
    pub(super) fn align_queue_and_task(&mut self, cpu: CpuId, id: TaskId, first: Option<First>) {
        let before = self.fair().rq(cpu).min_vruntime;
        self.align_queue(cpu, id, first, true);
        let off = self.fair().rq(cpu).min_vruntime.since(before);
        if off != 0 {
            let mut state = self.fair().view().task_state(id);
            (state.vruntime, state.deadline) = (state.vruntime.plus(off), state.deadline.plus(off));
            self.sched.follow().restore().task(id, state);
        }
    }

    fn first_vruntime(&self, id: TaskId, first: First) -> Vruntime {
        let (vruntime, ran) = match first {
            First::Printed { vruntime, ran } => (vruntime, ran),
            First::Probed { probe, ran } => (probe.vruntime, ran),
            First::Unknown => (self.fair().entity(id).vruntime.0, 0),
        };
        Vruntime(vruntime.wrapping_sub(calc_delta_fair(ran, &self.fair().entity(id).load)))
    }

    /// Overwrites the state of a queued task with what the trace shows of it.
    pub(super) fn take_state(&mut self, pid: Pid, first: Option<First>) {
        let (Some(first), Some(id)) = (first, self.task(pid)) else { return };
        if first == First::Unknown {
            self.tasks.modify(pid, |task| task.known = true);
            *(if self.eevdf { &mut self.tally.tasks.solved } else { &mut self.tally.tasks.guessed }) += 1;
            return;
        }
        let mut state = self.fair().view().task_state(id);
        let vruntime = self.first_vruntime(id, first);
        // Where only vruntime is shown, the deadline keeps its distance.
        state.deadline = vruntime.plus(state.deadline.since(state.vruntime));
        state.vruntime = vruntime;
        if let First::Probed { probe, .. } = first {
            state.deadline = Vruntime(probe.deadline);
            state.slice = probe.slice;
            if probe.lag != 0 {
                state.vlag = probe.lag;
            }
        }
        self.sched.follow().restore().task(id, state);
        if let First::Probed { probe, .. } = first {
            if probe.delayed {
                self.sched.follow().mark_delayed(id);
            }
            if let Some(load) = probe.load {
                self.sched.follow().restore().load(id, load);
                self.tally.inputs.take(InputKind::TaskLoad);
            }
            self.read_initial_group_state(id, &probe);
        }
        self.note_state_taken(pid);
    }

    /// A task's state is the kernel's from here on.
    pub(super) fn note_state_taken(&mut self, pid: Pid) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.known = true;
        match std::mem::replace(&mut task.was_known, true) {
            true => self.tally.inputs.take(InputKind::TaskStateAgain),
            false => {
                self.tally.inputs.take(InputKind::TaskState);
                self.tally.tasks.taken += 1;
            }
        }
    }

    /// A task's load average as a probe of its placement shows it. In groups loads follow from other probes.
    pub fn take_task_load(&mut self, id: TaskId, load_avg: u64) {
        if self.fair().nr_groups() == 1 {
            self.sched.follow().restore().task_load_avg(id, load_avg);
            self.tally.inputs.take(InputKind::TaskLoad);
        }
    }

    /// The averages of a task that a balancing pass looks at, and `h_load` of its CPU's queue.
    pub fn take_task_averages(&mut self, id: TaskId, src: CpuId, shown: &TaskAverages) {
        if self.fair().nr_groups() == 1 {
            self.sched.follow().restore().task_load_avg(id, shown.load_avg);
            self.sched.follow().restore().task_util_avg(id, shown.util_avg);
            self.sched.follow().restore().h_load(src, shown.h_load, shown.last_h_load_update);
        }
    }

    /// The same of a CPU's queue.
    pub fn take_cpu_load(&mut self, cpu: CpuId, load_avg: u64) {
        if self.fair().nr_groups() == 1 {
            self.sched.follow().restore().cpu_load_avg(cpu, load_avg);
            self.tally.inputs.take(InputKind::CpuLoad);
        }
    }

    /// The averages of a CPU's queue: a probe shows them up to `until`, or, without that, each change of them, if
    /// `followed`.
    pub(super) fn note_cpu_averages(
        &mut self,
        cpu: CpuId,
        (averages, until): (CpuAverages, Option<Nanos>),
        followed: bool,
    ) {
        let changed = until.is_none();
        let until = until.unwrap_or_else(|| averages.last_update_time(self.clock_now(cpu)));
        let before = match changed && followed {
            true => self.cpus[cpu.index()].averages.replace((averages, until)),
            false => None,
        };
        // The model updates them between two such records, or from the first on.
        if before.is_none() {
            self.sched.follow().restore().cpu_averages(cpu, averages, until);
        }
    }

    /// The averages of CPUs as the kernel reads them now, where probes show each change.
    pub fn take_cpu_averages(&mut self) {
        for cpu in (0..self.cpus.len() as u32).map(CpuId) {
            if let Some((averages, until)) = self.cpus[cpu.index()].averages {
                self.sched.follow().restore().cpu_averages(cpu, averages, until);
            }
        }
    }

    /// The averages of a CPU's queue as a selection reads them. The load of tasks that have left (`cfs_rq->removed`) is
    /// subtracted without a record if no period of the averages ends then.
    pub fn correct_cpu_averages(&mut self, cpu: CpuId, state: &SelectState) {
        let queue = self.cpus.get_mut(cpu.index());
        let Some((averages, until)) = queue.and_then(|queue| queue.averages.as_mut()) else { return };
        let shown = (averages.load_avg, averages.runnable_avg, averages.util_avg);
        averages.load_avg = state.prev_load;
        averages.runnable_avg = state.prev_runnable.unwrap_or(averages.runnable_avg);
        averages.util_avg = state.prev_util.unwrap_or(averages.util_avg);
        if let Some(read) = state.prev_until {
            *until = read;
            averages.period_contrib = CpuAverages::period_contrib_at(read);
        }
        if shown != (averages.load_avg, averages.runnable_avg, averages.util_avg) {
            self.tally.inputs.take(InputKind::CpuAverages);
        }
    }

    /// The position of a CPU's root queue in virtual time: set from a task, or the kernel's own.
    pub(super) fn take_position(&mut self, cpu: CpuId, zero: Vruntime) {
        self.sched.follow().restore().min_vruntime(GroupId::ROOT, cpu, zero);
        let again = self.cpus[cpu.index()].zero_was_taken;
        self.tally.inputs.take(if again { InputKind::QueuePositionAgain } else { InputKind::QueuePosition });
    }

    /// The zero point of a CPU's root queue is the kernel's from here on.
    pub(super) fn note_zero_taken(&mut self, cpu: CpuId) {
        let queue = &mut self.cpus[cpu.index()];
        (queue.zero_taken, queue.zero_was_taken, queue.primed, queue.settled) = (true, true, true, true);
    }
}
