//! Pipes, locks and other objects of which a workload's steps use only one side, as after a misspelt name.

use std::collections::BTreeSet;

use schedlab_workload::{ObjectId, ObjectSpec, Op, Sends, Workload};

/// A use of an object that has effect only together with its opposite.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Read,
    Write,
    Wait,
    Post,
    Lock,
    Unlock,
    Receive,
    Send,
    CondWait,
    Signal,
}

impl Side {
    /// What the opposite does, and what the steps do. A post or a signal for which no task waits is only useless.
    fn missing(self) -> Option<(Side, &'static str, &'static str)> {
        match self {
            Side::Read => Some((Side::Write, "writes to", "read from it")),
            Side::Write => Some((Side::Read, "reads from", "write to it")),
            Side::Wait => Some((Side::Post, "posts", "wait for it")),
            Side::Lock => Some((Side::Unlock, "unlocks", "lock it")),
            Side::Receive => Some((Side::Send, "sends to", "receive from it")),
            Side::Send => Some((Side::Receive, "receives from", "send to it")),
            Side::CondWait => Some((Side::Signal, "signals", "wait for it")),
            Side::Post | Side::Unlock | Side::Signal => None,
        }
    }

    fn of(op: &Op) -> Option<(ObjectId, Side)> {
        match *op {
            Op::Read { object, .. } => Some((object, Side::Read)),
            Op::Write { object, .. } => Some((object, Side::Write)),
            Op::Wait(object) | Op::SemWait(object) => Some((object, Side::Wait)),
            Op::Post(object) | Op::PostHere(object) | Op::SemPost(object) => Some((object, Side::Post)),
            Op::Lock(object) | Op::SpinLock { object, .. } => Some((object, Side::Lock)),
            Op::Unlock(object) | Op::SpinUnlock(object) => Some((object, Side::Unlock)),
            Op::Receive { object, .. } | Op::TryReceive { object, .. } => Some((object, Side::Receive)),
            Op::Send { object, .. } => Some((object, Side::Send)),
            Op::CondWait { object, .. } => Some((object, Side::CondWait)),
            Op::CondSignal(object) | Op::CondBroadcast(object) => Some((object, Side::Signal)),
            _ => None,
        }
    }
}

/// One line for each object that is used on one side only.
pub(crate) fn lines(workload: &Workload) -> Vec<String> {
    let ops = workload.programs.iter().flat_map(|program| &program.ops);
    let mut used: BTreeSet<(ObjectId, Side)> = ops.filter_map(Side::of).collect();
    for remote in &workload.remotes {
        used.insert((remote.queue, Side::Send));
        if let Sends::Closed { replies, .. } = remote.sends {
            used.insert((replies, Side::Receive));
        }
    }
    let line = |(object, side): &(ObjectId, Side)| {
        let (opposite, verb, others) = side.missing()?;
        let name = workload.object_names.get(*object as usize)?;
        // A semaphore that begins with units needs no post.
        let open = matches!(workload.objects.get(*object as usize), Some(ObjectSpec::Semaphore { initial: 1.. }));
        let alone = !open && !used.contains(&(*object, opposite));
        alone.then(|| format!("no step of {} {verb} {name}, while others {others}", workload.name))
    };
    used.iter().filter_map(line).collect()
}
