//! The program behind hackbench and `perf bench sched messaging`: groups of senders and receivers behind one gate.
//!
//! Main creates every child, waits until each has written one byte to the ready channel, takes the time, wakes all of
//! them at once by one byte that is never read, and reaps them. Creation is not part of the time, the exits and the
//! reaping are: a process meets page faults in its exit handlers, which is most of the time when there are few
//! messages. What is left out: the program's own instructions between two system calls. Over loopback TCP a message is
//! one of an AF_UNIX stream with a larger buffer and the softirq of the receiving side, as for netperf; segments are
//! not merged.

use super::forked::Faults;
use super::{BuildError, MetricSpec, Settings};
use crate::build::{Builder, Code};
use crate::{
    Amount, ObjectId, ObjectSpec, Op, Policy, ProgramId, Section, SectionContext, TaskKind, TaskSpec, Workload,
};
use schedlab_model::Nanos;

/// One configuration.
pub(super) struct Messaging {
    /// `comm` of every task.
    pub comm: &'static str,
    /// Groups.
    pub groups: u32,
    /// Senders, and receivers, per group.
    pub fds: u32,
    /// Messages of each sender to each receiver.
    pub loops: u32,
    /// Bytes of a message.
    pub datasize: u32,
    /// Pipes instead of sockets.
    pub pipe: bool,
    /// Loopback TCP instead of AF_UNIX sockets.
    pub inet: bool,
    /// Threads instead of processes.
    pub threads: bool,
    /// Main is SCHED_FIFO, and each child goes back to SCHED_OTHER first.
    pub fifo: bool,
    /// What a child meets when it leaves `main`, where children are processes.
    pub exit: Faults,
    /// The elapsed time.
    pub time: MetricSpec,
}

/// What a message over loopback TCP takes longer than over an AF_UNIX stream: 400,000 of 100 bytes took 1.14 s of CPU
/// time instead of 0.86 (hackbench 2.40 -g 2 -l 500, with and without -i, in a guest of 2 vCPUs on 6.18).
pub(super) const SOFTIRQ: Nanos = 700;
/// Most tasks of one run: the programs' own tables stay small enough.
const MAX_TASKS: u64 = 200_000;

// Registers of main.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;
const BEGIN: u8 = 2;

/// What the tasks share.
struct Shared {
    ready: ObjectId,
    wake: ObjectId,
}

impl Messaging {
    /// The workload; `groups` is the key that an error about the number of tasks names.
    pub fn build(&self, settings: &Settings<'_>, groups_key: &str) -> Result<Workload, BuildError> {
        let tasks = 2 * u64::from(self.groups) * u64::from(self.fds);
        if tasks > MAX_TASKS {
            return Err(settings
                .error(groups_key, format!("{tasks} tasks, which is more than the maximum of {MAX_TASKS} per workload"))
                .expected("fewer groups or fds"));
        }
        let mut builder = Builder::new(settings.name);
        let time = builder.metric(self.time.decl(1));
        let shared = Shared {
            ready: builder.object("ready".to_string(), self.channel()),
            wake: builder.object("wake".to_string(), ObjectSpec::Gate),
        };
        let children = self.children(&mut builder, &shared);
        let program = self.main(&mut builder, &shared, &children, time, settings.repeat);
        builder.task(TaskSpec { name: self.comm.to_string(), program, ..TaskSpec::default() });
        Ok(builder.finish(!settings.repeat))
    }

    fn channel(&self) -> ObjectSpec {
        match (self.pipe, self.inet) {
            (true, _) => ObjectSpec::Pipe { pages: 16, packet: false },
            (false, false) => ObjectSpec::UnixStream { sndbuf: 212_992 },
            (false, true) => ObjectSpec::UnixStream { sndbuf: tcp_sndbuf(self.datasize) },
        }
    }

    /// A `send`: over TCP the softirq of the receiving side first, which the sender's own call executes.
    fn send(&self, code: &mut Code, object: ObjectId) {
        if self.inet {
            let section = Section { context: SectionContext::PreemptOff, might_sleep: false, every: 0 };
            code.op(Op::Section { amount: Amount::Fixed(SOFTIRQ), section, last: false });
        }
        code.op(Op::Write { object, bytes: self.datasize });
    }

    /// The programs of all children in the order of their creation, each with the word its end is joined on: thread
    /// ids for threads, nothing for processes.
    fn children(&self, builder: &mut Builder, shared: &Shared) -> Vec<(ProgramId, Option<ObjectId>)> {
        let mut children = Vec::new();
        for group in 0..self.groups {
            let name = |i| format!("channel {i} of group {group}");
            let channels: Vec<ObjectId> = (0..self.fds).map(|i| builder.object(name(i), self.channel())).collect();
            for channel in &channels {
                let join = self.join_word(builder, group);
                children.push((self.receiver(builder, shared, *channel, join), join));
            }
            let same = (!self.threads).then(|| self.sender(builder, shared, &channels, None));
            for _ in 0..self.fds {
                let join = self.join_word(builder, group);
                let program = same.unwrap_or_else(|| self.sender(builder, shared, &channels, join));
                children.push((program, join));
            }
        }
        children
    }

    fn join_word(&self, builder: &mut Builder, group: u32) -> Option<ObjectId> {
        self.threads.then(|| builder.object(format!("exit of a thread of group {group}"), ObjectSpec::Futex))
    }

    /// Every child: report ready, then poll the wake channel.
    fn start(&self, shared: &Shared) -> Code {
        let mut code = Code::default();
        if self.fifo {
            code.op(Op::SetPolicy(Policy::Normal));
        }
        code.op(Op::Write { object: shared.ready, bytes: 1 });
        code.op(Op::GateWait(shared.wake));
        code
    }

    fn receiver(&self, builder: &mut Builder, shared: &Shared, channel: ObjectId, join: Option<ObjectId>) -> ProgramId {
        let mut code = self.start(shared);
        let messages = u64::from(self.fds) * u64::from(self.loops);
        code.repeat(COUNTER, messages, |code| code.op(Op::Read { object: channel, bytes: self.datasize }));
        self.finish(builder, code, join)
    }

    fn sender(&self, builder: &mut Builder, shared: &Shared, to: &[ObjectId], join: Option<ObjectId>) -> ProgramId {
        let mut code = self.start(shared);
        code.repeat(COUNTER, u64::from(self.loops), |code| {
            to.iter().for_each(|object| self.send(code, *object));
        });
        self.finish(builder, code, join)
    }

    fn finish(&self, builder: &mut Builder, mut code: Code, join: Option<ObjectId>) -> ProgramId {
        match join {
            Some(join) => code.op(Op::Post(join)),
            None => self.exit.meet(&mut code, COUNTER),
        }
        builder.program(self.comm, code)
    }

    fn main(
        &self,
        builder: &mut Builder,
        shared: &Shared,
        children: &[(ProgramId, Option<ObjectId>)],
        time: u16,
        repeat: bool,
    ) -> ProgramId {
        let kind = if self.threads { TaskKind::Thread } else { TaskKind::Process };
        let mut code = Code::default();
        if self.fifo {
            code.op(Op::SetPolicy(Policy::Fifo(1)));
        }
        let again = code.here();
        for (program, _) in children {
            code.op(Op::Fork { program: *program, kind, into: CHILD });
        }
        let count = children.len() as u64;
        code.repeat(COUNTER, count, |code| code.op(Op::Read { object: shared.ready, bytes: 1 }));
        code.op(Op::Clock(BEGIN));
        code.op(Op::GateOpen(shared.wake));
        if self.threads {
            for join in children.iter().filter_map(|(_, join)| *join) {
                code.op(Op::Wait(join));
            }
        } else {
            code.repeat(COUNTER, count, |code| code.op(Op::Reap));
        }
        code.elapsed(COUNTER, BEGIN);
        code.op(Op::Sample { metric: time, reg: COUNTER });
        if repeat {
            code.op(Op::GateClose(shared.wake));
            code.jump(again);
        } else {
            code.op(Op::Finish);
        }
        builder.program(self.comm, code)
    }
}

/// The send buffer of an AF_UNIX stream that holds as many messages as a TCP connection over loopback: its buffers grow
/// until 42,745 messages of 100 bytes, or 4,257 of 1000, are on the way (Linux 6.18 with its own tcp_wmem and
/// tcp_rmem).
fn tcp_sndbuf(datasize: u32) -> u32 {
    const BYTES: u32 = 4_270_000;
    // What an AF_UNIX message is charged: head, and the slab of data and tail (see channel.rs of the simulator).
    let truesize = 256 + (datasize.div_ceil(64) * 64 + 320).next_power_of_two();
    (BYTES / datasize).max(2).saturating_mul(truesize)
}
