//! `-R` of schbench 1.0 (2023-04 to 2025-04): a message thread that makes requests, eight at a time. `-A` changes their
//! rate: schbench_v1_auto_rps.rs.
//!
//! In each second the message thread gives a request to one worker after the other, as many as asked for, and sleeps
//! for the time of eight after every eighth; what is left of the second it sleeps at its end. A worker that has been
//! given nine since it last took its requests gets none, and the request is dropped, without the sleep that may be due:
//! when all workers have nine, the rest of the second's requests is dropped within a moment, and fewer are served than
//! could be. A worker takes all its requests and serves one after the other; with none it waits. Its wakeup counts from
//! the last request that it was given, its request time from when it begins with a request: the time in the queue is in
//! neither. Since 2025-05 the program gives the requests of a second without a pause instead, and drops from 129 on;
//! that has no model.

use schedlab_model::{SEC, USEC};

use super::wake_list::{sample_from_1us, NOW, STAMP};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, ProgramId, Reg, TaskKind};

/// Requests between two sleeps.
const BATCH: i64 = 8;
/// Requests that a worker may be given before it takes them.
const PENDING: u32 = 9;

/// A request that is dropped: a look at the clock.
const DROP: Amount = Amount::Fixed(30);

// Registers of a worker, in addition to those of its request.
const LEFT: Reg = 3;
const TAKEN: Reg = 4;

// Registers of a message thread.
const TEMPORARY: Reg = 0;
/// Requests per second; `-A` changes it.
pub(super) const RATE: Reg = 1;
const OWN: Reg = 2;
const PEER: Reg = 3;
const PAUSE: Reg = 4;
const START: Reg = 5;
const GIVEN: Reg = 6;
const EIGHTH: Reg = 7;

/// A message thread that makes `rps` requests per second for `workers` workers, which serve each with `request` and
/// report their wakeups as `wakeup`.
pub(super) fn generator(
    builder: &mut Builder,
    index: u32,
    workers: u32,
    rps: u64,
    wakeup: u16,
    request: &dyn Fn(&mut Code),
) -> ProgramId {
    let ring = builder.object(format!("message thread {index} itself"), ObjectSpec::List);
    let mut code = Code::default();
    code.op(Op::Set(RATE, i64::try_from(rps).unwrap_or(i64::MAX)));
    own_id(&mut code, ring, OWN);
    let rooms: Vec<ObjectId> = (0..workers)
        .map(|number| {
            let room = ObjectSpec::Semaphore { initial: PENDING };
            let room = builder.object(format!("requests of worker {number} of message thread {index}"), room);
            let program = worker(builder, room, wakeup, request);
            code.op(Op::Fork { program, kind: TaskKind::Thread, into: PEER });
            code.op(Op::MailPeer { peer: OWN, from: PEER });
            room
        })
        .collect();
    second(&mut code);
    code.forever(|code| rooms.iter().for_each(|room| give(code, *room)));
    builder.program("schbench-msg", code)
}

/// The task's own id, from a list that only it uses. Its mailbox is the ring of its children.
pub(super) fn own_id(code: &mut Code, ring: ObjectId, own: Reg) {
    let known = code.mark();
    code.op(Op::ListPush(ring));
    code.op(Op::ListTake(ring));
    code.list_pop(own, known);
    code.bind(known);
}

/// A second begins: `sleep_time` is that of eight requests at the rate of this moment.
fn second(code: &mut Code) {
    code.op(Op::Clock(START));
    code.op(Op::Set(PAUSE, 1_000_000));
    code.op(Op::DivReg { into: PAUSE, by: RATE });
    code.op(Op::Set(TEMPORARY, BATCH * USEC as i64));
    code.op(Op::MulReg { into: PAUSE, by: TEMPORARY });
    code.op(Op::Set(GIVEN, 0));
    code.op(Op::Set(EIGHTH, BATCH));
}

/// One request for the next worker.
fn give(code: &mut Code, room: ObjectId) {
    const CREATED: Reg = TEMPORARY;
    let (dropped, counted, over, next) = (code.mark(), code.mark(), code.mark(), code.mark());
    code.mail_take(PEER, next);
    code.op(Op::MailPeer { peer: OWN, from: PEER });
    code.op(Op::Clock(CREATED));
    code.sem_try_wait(room, dropped);
    code.op(Op::MailPeer { peer: PEER, from: CREATED });
    code.op(Op::SetPeer { peer: PEER, register: STAMP, from: CREATED });
    code.op(Op::PostPeer(PEER));
    code.dec_jump(EIGHTH, counted);
    code.op(Op::Set(EIGHTH, BATCH));
    code.op(Op::Sleep(Amount::Reg(PAUSE)));
    code.jump(counted);
    code.bind(dropped);
    code.op(Op::Run(DROP));
    code.dec_jump(EIGHTH, counted);
    code.op(Op::Set(EIGHTH, BATCH));
    code.bind(counted);
    code.op(Op::AddConst(GIVEN, 1));
    code.op(Op::Copy { into: TEMPORARY, from: RATE });
    code.op(Op::SubReg { into: TEMPORARY, from: GIVEN });
    code.jump_below(TEMPORARY, 1, over);
    code.jump(next);
    // What is left of the second.
    code.bind(over);
    code.op(Op::AddConst(START, SEC as i64));
    code.op(Op::SleepUntil(START));
    second(code);
    code.bind(next);
}

fn worker(builder: &mut Builder, room: ObjectId, wakeup: u16, request: &dyn Fn(&mut Code)) -> ProgramId {
    let mut code = Code::default();
    code.forever(|code| {
        let (all, idle, next) = (code.mark(), code.mark(), code.mark());
        code.op(Op::Clock(STAMP));
        code.op(Op::Set(LEFT, 0));
        let take = code.here();
        code.mail_take(TAKEN, all);
        code.op(Op::AddConst(LEFT, 1));
        code.op(Op::SemPost(room));
        code.jump(take);
        code.bind(all);
        code.jump_below(LEFT, 1, idle);
        let serve = code.here();
        request(code);
        code.dec_jump(LEFT, serve);
        code.jump(next);
        code.bind(idle);
        code.op(Op::WaitOwn);
        code.elapsed(NOW, STAMP);
        sample_from_1us(code, NOW, wakeup);
        code.bind(next);
    });
    builder.program("schbench-worker", code)
}
