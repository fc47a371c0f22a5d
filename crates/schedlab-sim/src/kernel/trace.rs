//! What only trace files contain: run times (`sched_stat_runtime`) and the context of events. Without a trace file none
//! of it is compiled into a run.

use schedlab_model::CpuId;
use schedlab_policy::{Resched, RunTime};
use schedlab_trace::{Event, Flags, Kind, Sink};

use super::percpu::PerCpu;
use super::state::Kernel;
use crate::run::{Context, Run};

impl Kernel {
    /// Sends an event that the code on `cpu` emits to the sink, after the run times accounted before it.
    #[inline(always)]
    pub fn emit<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId, kind: Kind) {
        if run.is_trace() {
            if run.takes_trace_only() {
                self.emit_run_times(run, cpu);
                if matches!(kind, Kind::Migrate { .. }) {
                    self.sched.pass_move();
                }
            }
            run.flags(self.id, self.flags(run, cpu));
        }
        run.emit(self.id, cpu, kind);
    }

    /// Emits an event that only trace files contain.
    #[inline(always)]
    pub fn trace_only<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId, kind: Kind) {
        if run.takes_trace_only() {
            self.emit_run_times(run, cpu);
            self.emit_trace_only(run, cpu, kind, self.flags(run, cpu));
        }
    }

    /// Writes a note into a trace: what a probe of `schedlab record` would show here.
    #[inline(always)]
    pub fn note<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId, name: &str, fields: impl FnOnce(&Kernel) -> String) {
        if run.takes_trace_only() {
            self.emit_run_times(run, cpu);
            run.flags(self.id, self.flags(run, cpu));
            run.note(cpu, name, &fields(self));
        }
    }

    /// Emits the run times accounted by now, before anything that changes what their records show.
    #[inline(always)]
    pub fn trace_run_times<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId) {
        if run.takes_trace_only() {
            self.emit_run_times(run, cpu);
        }
    }

    fn flags<S: Sink>(&self, run: &Run<S>, cpu: CpuId) -> Flags {
        let k = &self.cpus[cpu.index()];
        let asked = if k.curr.is_some() { self.sched.fair.need_resched(cpu) } else { Resched::No };
        flags(run.context, k, asked)
    }

    /// Emits all run times that are left at the end of an event.
    #[inline(always)]
    pub fn trace_rest<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId) {
        if run.takes_trace_only() {
            self.emit_run_times(run, cpu);
            while self.sched.pass_move() {
                self.emit_run_times(run, cpu);
            }
        }
    }

    #[cold]
    fn emit_run_times<S: Sink>(&mut self, run: &mut Run<S>, cpu: CpuId) {
        let mut run_times = std::mem::take(&mut self.run_times);
        self.sched.take_run_times(&mut run_times);
        for RunTime { task, runtime, vruntime } in run_times.drain(..) {
            let pid = self.tasks[task.index()].pid;
            // The kernel reports a run time before it checks what has ended with it.
            let flags = flags(run.context, &self.cpus[cpu.index()], Resched::No);
            self.emit_trace_only(run, cpu, Kind::Runtime { pid, runtime, vruntime: Some(vruntime) }, flags);
        }
        self.run_times = run_times;
    }

    #[cold]
    fn emit_trace_only<S: Sink>(&self, run: &mut Run<S>, cpu: CpuId, kind: Kind, flags: Flags) {
        run.flags(self.id, flags);
        run.trace_only(&Event { time: run.now, kernel: self.id, cpu, kind });
    }
}

/// The flags of an event in this context. `asked`: the request of the fair class since, which `resched_curr` sets at
/// once.
fn flags(context: Context, cpu: &PerCpu, asked: Resched) -> Flags {
    let (full, lazy) = match context {
        Context::Schedule { full, lazy } => (full, lazy),
        _ => (cpu.need_resched || asked == Resched::Full, cpu.need_resched_lazy || asked == Resched::Lazy),
    };
    let resched = match (full, lazy) {
        (true, true) => b'B',
        (true, false) => b'N',
        (false, true) => b'L',
        (false, false) => b'.',
    };
    let (context, depth) = match context {
        Context::Yield => (b'.', b'1'),
        Context::Task | Context::Schedule { .. } => (b'.', b'2'),
        Context::Interrupt => (b'h', b'2'),
        Context::Softirq => (b's', b'2'),
    };
    Flags([b'd', resched, context, depth, b'.'])
}
