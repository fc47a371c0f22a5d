//! `perf bench sched seccomp-notify` (perf 6.6 and later): a child whose system calls its parent answers.

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, MetricSpec, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Better, ObjectSpec, Op, TaskKind, TaskSpec, Unit, Workload};

const USECS_PER_OP: MetricSpec =
    MetricSpec::headline("usecs_per_op", Unit::Microseconds, Better::Lower, "time of one answered call, two wakeups");
const TOTAL_TIME: MetricSpec =
    MetricSpec::headline("total_time", Unit::Seconds, Better::Lower, "all calls, creation of the child included");

pub(super) const ENTRY: Entry = Entry {
    id: "perf-seccomp-notify",
    summary: "perf bench sched seccomp-notify (from 6.6)",
    about: About {
        structure: &[
            "A child calls gettid, which its filter turns into a notification: it wakes the parent and waits for \
             the answer. The parent receives the notification, for which it blocks, and sends the answer, which \
             wakes the child.",
            "An operation is one answered call: strict ping-pong with two wakeups and two switches. With \
             `sync-mode` (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) both wakeups ask for the CPU of the waker.",
        ],
        parameters: &[parameter(
            "system calls of an operation",
            Quantity::Words("3: gettid and two ioctl"),
            "tools/perf/bench/sched-seccomp-notify.c",
        )],
        simplified: &[
            "gettid is two futex calls here, a wake and a wait, so there are four calls.",
            "The kill of the child at the end is missing.",
        ],
    },
    options: &[
        OptionSpec::number("loop", 1_000_000, 1, 1_000_000_000, "calls").short("l"),
        OptionSpec::flag("sync-mode", "wake the other side on the same CPU (6.6 and later)").short("s"),
    ],
    metrics: &[USECS_PER_OP, TOTAL_TIME],
    ends: Ends::Always,
    build,
};

const COMM: &str = "seccomp-notify";

// Registers of the parent.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;
const BEGIN: u8 = 2;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let loops = u64::from(settings.count("loop"));
    let mut builder = Builder::new(settings.name);
    let metrics = [builder.metric(USECS_PER_OP.decl(loops)), builder.metric(TOTAL_TIME.decl(1))];
    let request = builder.object("notifications".to_string(), ObjectSpec::Futex);
    let answer = builder.object("answer".to_string(), ObjectSpec::Futex);
    let post = if settings.flag("sync-mode") { Op::PostHere } else { Op::Post };
    let mut child = Code::default();
    child.repeat(COUNTER, loops, |code| {
        code.op(post(request));
        code.op(Op::Wait(answer));
    });
    let child = builder.program(COMM, child);
    let mut parent = Code::default();
    let again = parent.here();
    parent.op(Op::Clock(BEGIN));
    parent.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
    parent.repeat(COUNTER, loops, |code| {
        code.op(Op::Wait(request));
        code.op(post(answer));
    });
    parent.op(Op::Reap);
    parent.elapsed(COUNTER, BEGIN);
    metrics.iter().for_each(|metric| parent.op(Op::Sample { metric: *metric, reg: COUNTER }));
    if settings.repeat {
        parent.jump(again);
    } else {
        parent.op(Op::Finish);
    }
    let program = builder.program(COMM, parent);
    builder.task(TaskSpec { name: COMM.to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}
