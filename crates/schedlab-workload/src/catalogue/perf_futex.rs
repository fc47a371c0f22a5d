//! What the programs behind `perf bench futex` (perf 6.1) share: threads, each pinned to a CPU in turn, that report
//! themselves ready under a mutex and start together by a condition variable.
//!
//! The last of the real threads wakes main; here each posts a semaphore that main waits on. None of that is timed.

use schedlab_model::{CpuId, CpuMask};

use super::{OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{ObjectId, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Workload};

/// How the threads of every program start, and what is simplified about it.
pub(super) const START: &str =
    "Threads are pinned to the CPUs in turn, report themselves ready under a mutex, and start \
                                together by a condition variable; none of that is timed.";
pub(super) const READY: &str =
    "The last thread of the real program wakes main; here each posts a semaphore for which main waits.";

/// The number of threads.
pub(super) const THREADS: OptionSpec =
    OptionSpec::number("threads", 0, 1, 100_000, "threads; default: one per CPU").default(Preset::PerCpu).short("t");
/// Futexes that processes share.
pub(super) const SHARED: OptionSpec =
    OptionSpec::not_modelled("shared", "what finding the key of a shared futex costs has no model").short("S");

/// Register of main with a child's id.
const CHILD: u8 = 0;
/// Register of main with a countdown.
pub(super) const COUNTER: u8 = 1;

/// The threads of one benchmark, and what they share to start together.
pub(super) struct Threads {
    comm: &'static str,
    threads: u32,
    nr_cpus: u32,
    ready: ObjectId,
    mutex: ObjectId,
    start: ObjectId,
}

impl Threads {
    pub fn new(builder: &mut Builder, settings: &Settings<'_>, comm: &'static str) -> Self {
        Threads {
            comm,
            threads: settings.count("threads"),
            nr_cpus: settings.nr_cpus as u32,
            ready: builder.object("threads that are ready".to_string(), ObjectSpec::Semaphore { initial: 0 }),
            mutex: builder.object("thread_lock".to_string(), ObjectSpec::Mutex { pi: false }),
            start: builder.object("thread_worker".to_string(), ObjectSpec::Condition),
        }
    }

    /// The number of threads.
    pub fn len(&self) -> u32 {
        self.threads
    }

    /// A program for each thread, in order. `body` is what a thread does after the start; threads that do the same on
    /// the same CPU share a program, unless `own`.
    pub fn programs(
        &self,
        builder: &mut Builder,
        own: bool,
        mut body: impl FnMut(&mut Builder, &mut Code, u32),
    ) -> Vec<ProgramId> {
        let distinct = if own { self.threads } else { self.threads.min(self.nr_cpus) };
        let programs: Vec<ProgramId> = (0..distinct)
            .map(|index| {
                let mut code = Code::default();
                code.op(Op::SetAffinity(builder.mask(CpuMask::from_iter([CpuId(index % self.nr_cpus)]))));
                code.op(Op::Lock(self.mutex));
                code.op(Op::SemPost(self.ready));
                code.op(Op::CondWait { object: self.start, mutex: self.mutex });
                code.op(Op::Unlock(self.mutex));
                body(builder, &mut code, index);
                builder.program(self.comm, code)
            })
            .collect();
        programs.iter().copied().cycle().take(self.threads as usize).collect()
    }

    /// Main creates the threads, waits until all are ready and starts them.
    pub fn start(&self, main: &mut Code, programs: &[ProgramId]) {
        for program in programs {
            main.op(Op::Fork { program: *program, kind: TaskKind::Thread, into: CHILD });
        }
        main.repeat(COUNTER, u64::from(self.threads), |code| code.op(Op::SemWait(self.ready)));
        main.op(Op::Lock(self.mutex));
        main.op(Op::CondBroadcast(self.start));
        main.op(Op::Unlock(self.mutex));
    }

    /// Main joins `threads` threads.
    pub fn join(main: &mut Code, threads: u32) {
        main.repeat(COUNTER, u64::from(threads), |code| code.op(Op::Reap));
    }

    /// The workload with main's program: `pass` `runs` times, counted in the register `left`, and then the end, or for
    /// ever with `repeat`.
    pub fn finish(
        &self,
        mut builder: Builder,
        settings: &Settings<'_>,
        runs: u64,
        left: u8,
        pass: impl FnOnce(&mut Code),
    ) -> Workload {
        let mut main = Code::default();
        if settings.repeat {
            main.forever(pass);
        } else {
            main.repeat(left, runs, pass);
            main.op(Op::Finish);
        }
        let program = builder.program(self.comm, main);
        builder.task(TaskSpec { name: self.comm.to_string(), program, ..TaskSpec::default() });
        builder.finish(!settings.repeat)
    }
}
