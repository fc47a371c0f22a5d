//! What both lines of schbench share: a message thread wakes all the workers on its list under one time stamp.
//!
//! A worker pushes itself, posts the message thread and waits for its own word. The message thread takes the whole
//! list, last pushed first, writes the stamp into each worker and posts it. The stamp is shared on purpose: a worker
//! that preempts the message thread delays the rest of the batch, and that shows in their samples.

use schedlab_model::Nanos;

use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, Reg};

/// Register of every worker that the message thread writes: when its wakeup began.
pub(super) const STAMP: Reg = 0;
/// Scratch register of the workers' side.
pub(super) const NOW: Reg = 1;

// Registers of the message thread; 0 and 1 are free for its caller.
const PEER: Reg = 2;
const BATCH: Reg = 3;

/// The objects of one message thread.
#[derive(Clone, Copy)]
pub(super) struct WakeList {
    list: ObjectId,
    futex: ObjectId,
}

impl WakeList {
    pub fn new(builder: &mut Builder, index: u32) -> Self {
        WakeList {
            list: builder.object(format!("waiting list {index}"), ObjectSpec::List),
            futex: builder.object(format!("futex of message thread {index}"), ObjectSpec::Futex),
        }
    }

    /// The message thread's endless loop; `transfer` is its part of a pipe test, `burn` how long it spins once it has
    /// been posted, `pause` how long it then sleeps before it looks at the list again.
    pub fn serve(&self, code: &mut Code, transfer: Option<Nanos>, burn: Option<Nanos>, pause: Option<Amount>) {
        let top = code.here();
        // The word is set to "blocked" before the list is taken, which drops the posts of those already on it.
        code.op(Op::Post(self.futex));
        code.op(Op::Wait(self.futex));
        code.op(Op::ListTake(self.list));
        code.op(Op::Clock(BATCH));
        let empty = code.mark();
        let next = code.here();
        code.list_pop(PEER, empty);
        if let Some(cost) = transfer {
            code.op(Op::Run(Amount::Fixed(cost)));
            code.op(Op::Clock(BATCH));
        }
        code.op(Op::SetPeer { peer: PEER, register: STAMP, from: BATCH });
        code.op(Op::PostPeer(PEER));
        code.jump(next);
        code.bind(empty);
        code.op(Op::Wait(self.futex));
        if let Some(burn) = burn {
            code.op(Op::RunWall(Amount::Fixed(burn)));
        }
        if let Some(pause) = pause {
            code.op(Op::Sleep(pause));
        }
        code.jump(top);
    }

    /// A worker's message and wait, with a sample of the wakeup; `transfer` is its part of a pipe test.
    pub fn message(&self, code: &mut Code, transfer: Option<Nanos>, metric: u16) {
        if let Some(cost) = transfer {
            code.op(Op::Run(Amount::Fixed(cost)));
        }
        code.op(Op::Clock(STAMP));
        code.op(Op::ListPush(self.list));
        code.op(Op::Post(self.futex));
        code.op(Op::WaitOwn);
        code.elapsed(NOW, STAMP);
        sample_from_1us(code, NOW, metric);
    }
}

/// A sample, unless it is below the microsecond that the program's clock counts in: those it drops.
pub(super) fn sample_from_1us(code: &mut Code, reg: Reg, metric: u16) {
    let skip = code.mark();
    code.jump_below(reg, 1_000, skip);
    code.op(Op::Sample { metric, reg });
    code.bind(skip);
}

/// CPU time of filling `bytes` of memory in cache: `memset` of glibc 2.36 did 88 to 107 bytes per ns from 512 bytes to
/// 256 KiB, and 3 ns for 64 bytes, on a guest of 2 vCPUs (best of 20 series).
pub(super) fn memset_cost(bytes: u32) -> Nanos {
    3 + Nanos::from(bytes) / 100
}
