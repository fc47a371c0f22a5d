//! A kernel, its machine, and its tasks' programs: the parts of a world.

use schedlab_model::{rarely, stream, CpuId, KernelId, Ties};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

use super::housekeeping::with_housekeeping;
use super::outcome::{Ended, Outcome};
use crate::kernel::{self, Kernel, Life, Task};
use crate::machine::{Machine, Mode};
use crate::programs::{self, Programs};
use crate::run::{Context, Run, Source};

/// A kernel on its machine, with the programs of its tasks.
#[derive(Debug)]
pub struct System {
    pub(crate) machine: Machine,
    pub(crate) kernel: Kernel,
    pub(crate) programs: Programs,
}

/// The systems of a world. A world of one is a type of its own, so that its kernel is found without indexing.
pub trait Systems {
    /// Whether kernel 0 hosts the others.
    const HAS_HOST: bool = false;

    /// The system of a kernel.
    fn get_mut(&mut self, kernel: KernelId) -> &mut System;

    /// Lets hosts and guests follow each other.
    #[inline(always)]
    fn follow<S: Sink>(&mut self, _run: &mut Run<S>) {}

    /// Tasks that live and are not vCPUs. Those of a guest that was killed do not count.
    fn alive(&self) -> u32 {
        self.all().iter().map(|system| system.kernel.alive).sum()
    }

    /// Whether something that nothing in the run ends keeps CPUs from executing.
    fn stands_still(&self) -> bool {
        self.all().iter().any(|system| system.machine.stopped > 0)
    }

    /// All of them, in the order of their kernels.
    fn all(&self) -> &[System];

    /// All of them, in the order of their kernels.
    fn all_mut(&mut self) -> &mut [System];
}

impl Systems for System {
    #[inline(always)]
    fn get_mut(&mut self, _kernel: KernelId) -> &mut System {
        self
    }

    fn all(&self) -> &[System] {
        std::slice::from_ref(self)
    }

    fn all_mut(&mut self) -> &mut [System] {
        std::slice::from_mut(self)
    }
}

impl Systems for Vec<System> {
    #[inline]
    fn get_mut(&mut self, kernel: KernelId) -> &mut System {
        &mut self[kernel.index()]
    }

    fn all(&self) -> &[System] {
        self
    }

    fn all_mut(&mut self) -> &mut [System] {
        self
    }
}

/// The seed of a kernel of a run: the run's own for kernel 0, one derived from it for any other, so that no two kernels
/// draw from the same streams. A kernel draws what it would draw alone in a run with that seed.
#[must_use]
pub fn kernel_seed(seed: u64, kernel: KernelId) -> u64 {
    match kernel {
        KernelId::FIRST => seed,
        KernelId(number) => stream(seed, &format!("kernel/{number}")).next_u64(),
    }
}

/// What breaks the ties of a kernel of a run.
pub(super) fn ties(spec: &RunSpec, kernel: KernelId) -> Ties {
    Ties::new(spec.ties, kernel_seed(spec.seed, kernel))
}

impl System {
    /// Whether the task on the CPU holds a spinlock, its own program's or one of the kernel.
    pub(super) fn holds_spinlock(&self, cpu: CpuId) -> bool {
        let Some(task) = self.kernel.cpus[cpu.index()].curr else { return false };
        let pid = self.kernel.tasks[task.index()].pid;
        self.machine.cpus[cpu.index()].segment.mode == Mode::Locked || self.programs.holds_spinlock(pid)
    }

    /// Whether no task of a program can ever run again: none is runnable, sleeps until a timer, or starts later, and
    /// nothing from outside can wake one.
    pub(super) fn is_over(&self) -> bool {
        let System { kernel, programs, .. } = self;
        let sleeps = |task: &Task| matches!(task.life, Life::Sleeping | Life::Dead) && !kernel.has_timer(task.id);
        let mut tasks = kernel.tasks.iter().filter(|task| !kernel.sched.is_kthread(task.id));
        !programs.expects_more() && !kernel.has_actions() && tasks.all(sleeps)
    }

    /// A kernel at time 0 with the starts of its tasks planned.
    pub(super) fn new<S: Sink>(run: &mut Run<S>, spec: &RunSpec, id: KernelId) -> Self {
        let seed = kernel_seed(spec.seed, id);
        let spec = &*with_housekeeping(spec);
        let machine = Machine::new(spec, seed);
        let (mut kernel, mut programs) = (Kernel::new(id, spec, seed), Programs::new(spec, seed));
        if run.takes_trace_only() {
            kernel.sched.record_run_times();
        }
        kernel::arm_bandwidth(run, &kernel);
        kernel::arm_actions(run, &kernel);
        programs::boot(run, &mut kernel, &mut programs);
        System { machine, kernel, programs }
    }

    /// Handles an event of the kernel.
    #[inline(always)]
    pub(super) fn handle<S: Sink>(&mut self, run: &mut Run<S>, source: Source, cpu: CpuId) {
        let System { machine, kernel, .. } = self;
        if rarely(machine.stopped > 0) && machine.cpus[cpu.index()].rate == 0 && source.needs_cpu() {
            return kernel::hold_interrupt(run, kernel, source, cpu);
        }
        if machine.selection_takes_time() && rarely(kernel.cpus[cpu.index()].in_newidle) && source.is_interrupt() {
            return kernel::hold_interrupt(run, kernel, source, cpu);
        }
        if rarely(kernel.irqs_off > 0) && source.is_interrupt() && kernel::irqs_disabled(machine, cpu) {
            return kernel::hold_interrupt(run, kernel, source, cpu);
        }
        if run.is_trace() {
            run.context = Context::of(source);
        }
        self.dispatch(run, source, cpu);
        self.kernel.trace_rest(run, cpu);
    }

    #[inline(always)]
    fn dispatch<S: Sink>(&mut self, run: &mut Run<S>, source: Source, cpu: CpuId) {
        let System { machine, kernel, programs } = self;
        match source {
            Source::Segment => programs::on_segment(run, machine, kernel, programs, cpu),
            Source::Tick => kernel::on_tick(run, machine, kernel, cpu),
            Source::Resched => kernel::on_resched_ipi(run, machine, kernel, cpu),
            Source::Call => kernel::on_call_ipi(run, machine, kernel, cpu),
            Source::Flush => kernel::on_flush_ipi(run, machine, kernel, cpu),
            Source::Wakeup => kernel::on_wakeup(run, machine, kernel, cpu),
            Source::IdleExit => kernel::on_idle_exit(run, machine, kernel, cpu, |run, machine, kernel| {
                programs::handle_requests(run, machine, kernel, programs, cpu);
            }),
            Source::Network => programs::on_network(run, machine, kernel, programs, cpu),
            Source::HrTimer => kernel::on_hrtimer(run, machine, kernel, cpu),
            Source::HrTick => kernel::on_hrtick(run, machine, kernel, cpu),
            Source::SliceTimer => kernel::rseq_slice_expired(run, machine, kernel, cpu),
            Source::Bandwidth => kernel::on_bandwidth(run, machine, kernel),
            Source::Classes => kernel::on_class_timer(run, machine, kernel),
            Source::Start => programs::on_start(run, machine, kernel, programs),
            Source::Action if kernel.has_actions() => kernel::on_action(run, machine, kernel),
            Source::Halt | Source::Action => run.touch(kernel.id, cpu),
            Source::PollLimit => kernel::on_poll_limit(run, machine, kernel, cpu),
        }
    }

    pub(super) fn outcome<S: Sink>(&self, run: &Run<S>, ended: Ended) -> Outcome {
        let System { machine, kernel, .. } = self;
        Outcome {
            ended,
            now: run.now,
            handled: run.handled,
            switches: kernel.switches,
            pending_max: run.pending_max,
            tasks_max: kernel.tasks.len(),
            cpus: machine.cpus.iter().map(|cpu| cpu.time).collect(),
            checks: kernel.checks.counts(),
            bandwidth: kernel.cgroups.bandwidth(&kernel.sched.fair),
        }
    }
}
