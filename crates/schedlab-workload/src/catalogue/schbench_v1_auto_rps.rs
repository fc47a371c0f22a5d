//! `-A` of schbench 1.0 (`auto_scale_rps`): main changes the rate of requests every second until the CPUs are as busy
//! as requested.
//!
//! - Main reads `/proc/stat`: busy = 1 - idle / total since the last reading, over all CPUs and all tasks.
//! - The rate of each message thread is multiplied by d = requested / busy and rounded, up if d is above 1, down if it
//!   is below. d is at most 3; from 1.2 to 1.5 only a quarter of its excess over 1 counts, below 1.2 an eighth. d is at
//!   least 0.3; from 0.8 to 0.9 a quarter of the difference from 1 is added, above 0.9 an eighth.
//! - Message threads begin with `rps`, by default 10. A new rate determines at once the number of requests in the
//!   second, and from the next second on the pauses between them.
//!
//! Simplified: d is a whole number of millionths instead of a float; a rate of 0, at which the program divides by 0, is
//! taken as 1. The program resets its table of requests per second when it comes within 5% of the goal; use the
//! scenario's `warmup` for that.

use schedlab_model::{Nanos, SEC};

use super::schbench_v1_rps::{own_id, RATE};
use crate::build::{Builder, Code, Mark};
use crate::{Amount, ObjectId, ObjectSpec, Op, ProgramId, Reg, TaskKind};

/// 1 in the unit of d.
const ONE: i64 = 1_000_000;
/// The program keeps the rate if it would become this.
const MOST: i64 = 1 << 31;

// Registers of main.
const A: Reg = 0;
const B: Reg = 1;
const OWN: Reg = 2;
const IDLE: Reg = 3;
const LAST: Reg = 4;
const RPS: Reg = 5;
const D: Reg = 6;
const LEFT: Reg = 7;

/// Main: it starts the message threads and adapts their rate until the runtime is over.
pub(super) struct Main {
    /// The requested utilisation of all CPUs, in percent.
    pub percent: u32,
    /// CPUs of the machine.
    pub nr_cpus: u64,
    /// Requests per second of each message thread at the beginning.
    pub rps: u64,
    /// How long it runs.
    pub runtime: Nanos,
}

impl Main {
    /// The program of main without its end.
    pub fn code(&self, builder: &mut Builder, message_threads: &[ProgramId]) -> Code {
        let ring: ObjectId = builder.object("main itself".to_string(), ObjectSpec::List);
        let mut code = Code::default();
        own_id(&mut code, ring, OWN);
        for program in message_threads {
            code.op(Op::Fork { program: *program, kind: TaskKind::Thread, into: A });
            code.op(Op::MailPeer { peer: OWN, from: A });
        }
        code.op(Op::Set(RPS, self.rps as i64));
        code.op(Op::IdleTime(IDLE));
        code.op(Op::Clock(LAST));
        code.repeat(LEFT, self.runtime.div_ceil(SEC).max(1), |code| {
            code.op(Op::Sleep(Amount::Fixed(SEC)));
            self.look(code);
            adapt(code);
            code.repeat(D, message_threads.len() as u64, |code| {
                let next = code.mark();
                code.mail_take(A, next);
                code.op(Op::MailPeer { peer: OWN, from: A });
                code.op(Op::SetPeer { peer: A, register: RATE, from: RPS });
                code.bind(next);
            });
        });
        code
    }

    /// D := requested / busy since the last reading.
    fn look(&self, code: &mut Code) {
        code.op(Op::IdleTime(A));
        code.op(Op::Copy { into: B, from: A });
        code.op(Op::SubReg { into: B, from: IDLE });
        code.op(Op::Copy { into: IDLE, from: A });
        code.op(Op::Clock(A));
        code.op(Op::Copy { into: D, from: A });
        code.op(Op::SubReg { into: D, from: LAST });
        code.op(Op::Copy { into: LAST, from: A });
        // D is the total time, B the idle part of it.
        multiply(code, D, self.nr_cpus as i64, A);
        code.op(Op::Copy { into: A, from: D });
        code.op(Op::SubReg { into: A, from: B });
        multiply(code, D, i64::from(self.percent) * (ONE / 100), B);
        code.op(Op::DivReg { into: D, by: A });
    }
}

/// RPS := RPS * D, rounded as in the program.
fn adapt(code: &mut Code) {
    let (below, up, down, done) = (code.mark(), code.mark(), code.mark(), code.mark());
    code.jump_below(D, ONE, below);
    code.jump_below(D, ONE + 1, done);
    steps(code, up, &[(1_200_000, Some(8)), (1_500_000, Some(4)), (3_000_001, None)]);
    code.op(Op::Set(D, 3 * ONE));
    code.bind(up);
    scaled(code, ONE - 1);
    let kept = code.mark();
    code.jump_below(A, MOST, kept);
    code.jump(done);
    code.bind(kept);
    code.op(Op::Copy { into: RPS, from: A });
    code.jump(done);

    code.bind(below);
    let more = code.mark();
    code.jump_below(D, 300_000, more);
    steps(code, down, &[(800_001, None), (900_001, Some(4))]);
    part(code, 8, true);
    code.jump(down);
    code.bind(more);
    code.op(Op::Set(D, 300_000));
    code.bind(down);
    scaled(code, 0);
    code.op(Op::Copy { into: RPS, from: A });
    let some = code.mark();
    code.jump_below(RPS, 1, some);
    code.jump(done);
    code.bind(some);
    code.op(Op::Set(RPS, 1));
    code.bind(done);
}

/// Below each of the limits in turn D changes by that part of its distance from 1, and the program continues at `to`.
fn steps(code: &mut Code, to: Mark, limits: &[(i64, Option<i64>)]) {
    for (limit, divisor) in limits {
        let (within, beyond) = (code.mark(), code.mark());
        code.jump_below(D, *limit, within);
        code.jump(beyond);
        code.bind(within);
        if let Some(divisor) = divisor {
            part(code, *divisor, *limit < ONE);
        }
        code.jump(to);
        code.bind(beyond);
    }
}

/// A part of D's excess over 1 is kept, or a part of its difference from 1 is added.
fn part(code: &mut Code, divisor: i64, missing: bool) {
    code.op(Op::Set(A, ONE));
    match missing {
        true => {
            code.op(Op::SubReg { into: A, from: D });
            code.op(Op::Set(B, divisor));
            code.op(Op::DivReg { into: A, by: B });
            code.op(Op::AddReg { into: D, from: A });
        }
        false => {
            code.op(Op::SubReg { into: D, from: A });
            code.op(Op::Set(B, divisor));
            code.op(Op::DivReg { into: D, by: B });
            code.op(Op::AddReg { into: D, from: A });
        }
    }
}

/// A := (RPS * D + `round`) / 1.
fn scaled(code: &mut Code, round: i64) {
    code.op(Op::Copy { into: A, from: RPS });
    code.op(Op::MulReg { into: A, by: D });
    code.op(Op::AddConst(A, round));
    code.op(Op::Set(B, ONE));
    code.op(Op::DivReg { into: A, by: B });
}

fn multiply(code: &mut Code, register: Reg, by: i64, temporary: Reg) {
    code.op(Op::Set(temporary, by));
    code.op(Op::MulReg { into: register, by: temporary });
}
