//! A PI futex goes to the first waiter when it is released; a mutex to the next task that tries to take it.

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::MSEC;
use schedlab_trace::Kind;
use schedlab_workload::{Amount, ObjectSpec, Op};

/// The order in which two tasks get a lock that one releases while the other waits for it, and at once tries to take
/// again.
fn next_holders(object: ObjectSpec, lock: Op, unlock: Op) -> Vec<u64> {
    let report = |who: i64| [Op::Set(0, who), Op::Sample { metric: 0, reg: 0 }];
    let sleep = |ms: u64| Op::Sleep(Amount::Fixed(ms * MSEC));
    let releases = [&[lock, sleep(2), unlock, lock], &report(1)[..], &[unlock]].concat();
    let waits = [&[sleep(1), lock], &report(2)[..], &[unlock]].concat();
    let mut workload = tasks(vec![("releases", 0, Some(0), releases), ("waits", 0, Some(1), waits)]);
    workload.objects = vec![object];
    let (outcome, record) = record(&spec(flat(2, 100), kernel("6.12.0", 2, 250), vec![workload]));
    outcome.unwrap();
    let samples = record.events.iter();
    samples.filter_map(|event| if let Kind::Sample { value, .. } = event.kind { Some(value) } else { None }).collect()
}

#[test]
fn a_pi_futex_is_handed_over_and_a_mutex_is_not() {
    assert_eq!(next_holders(ObjectSpec::PiFutex, Op::FutexLockPi(0), Op::FutexUnlockPi(0)), [2, 1]);
    assert_eq!(next_holders(ObjectSpec::Mutex { pi: false }, Op::Lock(0), Op::Unlock(0)), [1, 2]);
}
