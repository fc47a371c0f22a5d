//! `stress-ng --aio` 0.15.06: POSIX asynchronous reads and writes of 16 bytes, carried out by a helper thread of glibc.

use schedlab_model::MSEC;

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-aio",
    summary: "stress-ng --aio: requests served by a helper thread",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "`aio-requests` reads and writes of 16 bytes are outstanding at one file, so one helper thread of \
             glibc serves them in order. It signals each completion while it holds the mutex of all requests, \
             which a thread that issues one needs.",
            "The main thread sleeps for 250 ms; a signal ends the sleep. It then looks at all requests, counts a \
             bogo op for each that is complete and issues it again.",
            "A bogo op is four system calls of the helper (pread or pwrite, getpid, getuid, rt_sigqueueinfo), the \
             return of the signal handler and the calls of the mutex and the condition where threads wait.",
        ],
        parameters: &[
            parameter(
                "transfer of 16 bytes and queueing the signal",
                Quantity::Time(TRANSFER),
                "4.2 us of CPU time per request on one CPU, of which five system calls are 1.05 us and the issue \
                 0.1 us, on a guest with 2 vCPUs (Xeon, Linux 6.18)",
            ),
            parameter("sleep of the main thread", Quantity::Time(SLEEP as u64), "stress-aio.c, V0.15.06"),
            parameter(
                "looking at a request and queueing it",
                Quantity::Time(ISSUE),
                "estimate, 50 to 200 ns: aio_error, two locks and a list, sysdeps/pthread/aio_misc.c of glibc \
                 2.29",
            ),
        ],
        simplified: &[
            "The handler of a signal that arrives while the main thread runs is missing, and what the request to \
             synchronise the file costs beyond a read (nothing on a file system in memory).",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("aio"),
        OptionSpec::number("aio-requests", 16, 1, 4096, "outstanding requests of a worker"),
        stress_ng::TIMEOUT,
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-aio";
/// Reading or writing 16 bytes of a file in memory and queueing the signal, beyond the system calls: a guest of 2 vCPUs
/// took 4.2 us of CPU time per request on one CPU, of which five system calls are 1.05 and the issue is 0.1.
const TRANSFER: u64 = 3_050;
/// The sleep of the main thread that a signal ends.
const SLEEP: i64 = 250 * MSEC as i64;
/// Looking at one request (`aio_error`) and queueing it again (two locks, a list).
const ISSUE: u64 = 100;
/// Requests of the helper, or sleeps of the main thread, between two reports of CPU time.
const REPORT: u64 = 16;

// Registers of both threads.
const SLOT: u8 = 0;
const WOKEN: u8 = 1;
// Registers of the main thread.
const LENGTH: u8 = 2;
const COUNTER: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let requests = u64::from(settings.count("aio-requests"));
    let workers: Vec<u32> =
        (0..stress_ng::count(settings, "aio")).map(|index| worker(&mut builder, rates, index, requests)).collect();
    stress_ng::start_each(builder, settings, &workers)
}

/// The objects of a worker.
#[derive(Clone, Copy)]
struct Worker {
    /// `__aio_requests_mutex`.
    mutex: ObjectId,
    /// `__aio_new_request_notification`.
    notification: ObjectId,
    /// The requests of the file, in order.
    issued: ObjectId,
    /// The requests whose error code is no longer EINPROGRESS.
    complete: ObjectId,
    /// Wakes the sleeping main thread.
    signal: ObjectId,
}

impl Worker {
    fn new(builder: &mut Builder, index: u32) -> Self {
        let mutex = ObjectSpec::Mutex { pi: false };
        Worker {
            mutex: builder.object(format!("requests mutex of worker {index}"), mutex),
            notification: builder.object(format!("new request of worker {index}"), ObjectSpec::Condition),
            issued: builder.object(format!("requests of worker {index}"), ObjectSpec::Queue),
            complete: builder.object(format!("completions of worker {index}"), ObjectSpec::Queue),
            signal: builder.object(format!("signal of worker {index}"), ObjectSpec::FutexQueue),
        }
    }

    /// `__aio_enqueue_request` of the request in the register.
    fn enqueue(&self, code: &mut Code, request: u8) {
        code.op(Op::Lock(self.mutex));
        code.op(Op::Run(Amount::Fixed(ISSUE)));
        code.op(Op::Send { object: self.issued, from: request });
        code.op(Op::CondSignal(self.notification));
        code.op(Op::Unlock(self.mutex));
    }

    /// `handle_fildes_io`: completes a request and takes the next one in one section of the mutex.
    fn handle_fildes_io(&self, code: &mut Code, rates: Rates) {
        code.op(Op::Lock(self.mutex));
        rates.forever(code, REPORT, |code| {
            let (idle, done) = (code.mark(), code.mark());
            let next = code.here();
            code.try_receive(self.issued, SLOT, idle);
            code.op(Op::Unlock(self.mutex));
            code.op(Op::System(Amount::Fixed(TRANSFER)));
            code.op(Op::Lock(self.mutex));
            code.op(Op::Send { object: self.complete, from: SLOT });
            // getpid and getuid, for the sender's fields of the signal.
            code.op(Op::System(Amount::Fixed(0)));
            code.op(Op::System(Amount::Fixed(0)));
            // rt_sigqueueinfo: wakes the sleeper, else the handler runs where the main thread is.
            code.op(Op::FutexWake { object: self.signal, count: 1, into: WOKEN });
            code.jump(done);
            code.bind(idle);
            code.op(Op::CondWait { object: self.notification, mutex: self.mutex });
            code.jump(next);
            code.bind(done);
        });
    }
}

/// The main thread's program; it starts the helper.
fn worker(builder: &mut Builder, rates: Rates, index: u32, requests: u64) -> u32 {
    let worker = Worker::new(builder, index);
    let mut helper = Code::default();
    worker.handle_fildes_io(&mut helper, rates);
    let helper = builder.program(COMM, helper);
    let mut code = Code::default();
    code.op(Op::Set(LENGTH, SLEEP));
    code.op(Op::Fork { program: helper, kind: TaskKind::Thread, into: SLOT });
    code.repeat(COUNTER, requests, |code| worker.enqueue(code, COUNTER));
    rates.forever(&mut code, REPORT, |code| {
        let (slept, none) = (code.mark(), code.mark());
        code.futex_wait(worker.signal, LENGTH, slept);
        // rt_sigreturn of the handler.
        code.op(Op::System(Amount::Fixed(0)));
        code.bind(slept);
        let next = code.here();
        code.try_receive(worker.complete, SLOT, none);
        rates.count(code, 1);
        worker.enqueue(code, SLOT);
        code.jump(next);
        code.bind(none);
    });
    builder.program(COMM, code)
}
