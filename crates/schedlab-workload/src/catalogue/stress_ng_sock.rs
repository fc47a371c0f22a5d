//! `stress-ng --sock` 0.15.06: a server that sends 511 messages on each of its clients' TCP connections over loopback.

use super::about::{parameter, About, Quantity};
use super::stress_ng::{self, Rates};
use super::stress_ng_memory::call;
use super::{BuildError, Entry, OptionSpec, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectId, ObjectSpec, Op, ProgramId, Section, SectionContext, TaskKind, Workload};

pub(super) const ENTRY: Entry = Entry {
    id: "stress-ng-sock",
    summary: "stress-ng --sock: short TCP connections over loopback",
    about: About {
        structure: &[
            stress_ng::MAIN,
            "A worker is a server and its child the client. The client connects; the server accepts, sends \
             messages of 16, 32 ... 8176 bytes, 2 MB in all, and closes; the client calls ioctl(SIOCINQ) and recv \
             of up to 8192 bytes until the end, closes and connects again.",
            "A bogo op is a connection that the server has closed: 1088 system calls (511 sends, 256 recvs with \
             data, as many ioctls, the rest for the connection) and 32 wakeups, one per segment that is full.",
        ],
        parameters: &[
            parameter(
                "messages of a connection",
                Quantity::Number(MESSAGES as u64),
                "stress-sock.c, V0.15.06; the real one made 510 sends, 272 recvs and as many ioctls per op",
            ),
            parameter(
                "segment",
                Quantity::Words("65,483 bytes"),
                "loopback's MTU of 65,536 less the headers; Nagle's rule (tcp_nagle_check, net/ipv4/tcp_output.c) \
                 holds a send back until it is full",
            ),
            parameter("softirq of a segment", Quantity::Time(SOFTIRQ), "as netperf-tcp-rr"),
            parameter(
                "copy of a KiB on each side",
                Quantity::Time(COPY_KIB),
                "what remains of the 1.53 ms of CPU time per op on one CPU of a guest with 2 vCPUs (Xeon, Linux \
                 6.18) above the calls and softirqs",
            ),
        ],
        simplified: &[
            "Acknowledgements, which let the first segments go early, are missing, and a recv that returns what \
             there is: here it waits for 8192 bytes.",
            "The handshake and the end of a connection are calls without work of their own; other domains, types \
             and protocols are missing.",
            stress_ng::CPU_TIME,
        ],
    },
    options: &[
        stress_ng::workers("sock").short("S"),
        stress_ng::TIMEOUT,
        OptionSpec::not_modelled("sock-domain", "it is always ipv4"),
        OptionSpec::not_modelled("sock-type", "it is always stream"),
        OptionSpec::not_modelled("sock-opts", "it is always send"),
        OptionSpec::not_modelled("sock-protocol", "it is always tcp"),
        OptionSpec::not_modelled("sock-nodelay", "no message waits for others"),
        OptionSpec::not_modelled("sock-zerocopy", "a copy costs what it costs by default"),
        OptionSpec::not_modelled("sock-port", "there are no ports"),
        OptionSpec::not_modelled("sock-if", "there is only loopback"),
    ],
    metrics: stress_ng::METRICS,
    ends: stress_ng::ENDS,
    build,
};

const COMM: &str = "stress-ng-sock";
/// Bytes by which the messages of a connection grow, and their number.
const STEP: u32 = 16;
const MESSAGES: u32 = 511;
/// Bytes that the client requests.
const BUFFER: u32 = 8192;
/// Bytes of a segment: loopback's MTU of 65,536 less the headers.
const SEGMENT: u32 = 65_483;
/// Calls of the server for a connection in addition to accept and send, and of the client to connect, ioctl and recv.
const SERVER_CALLS: u64 = 23;
const CLIENT_CALLS: u64 = 38;
/// The softirq of a message, as in netperf.rs, and the copy of a KiB on each side.
const SOFTIRQ: u64 = super::netperf::TCP_SOFTIRQ;
const COPY_KIB: u64 = 300;
/// Holds the segments of a connection, each charged with about twice its size.
const SNDBUF: u32 = 8 << 20;

const CHILD: u8 = 0;
const COUNTER: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let rates = Rates::new(&mut builder);
    let workers: Vec<ProgramId> = (0..stress_ng::count(settings, "sock"))
        .map(|index| {
            let requests = ObjectSpec::UnixStream { sndbuf: 212_992 };
            let connect = builder.object(format!("connections of worker {index}"), requests);
            let data = builder.object(format!("data of worker {index}"), ObjectSpec::UnixStream { sndbuf: SNDBUF });
            let client = client(&mut builder, rates, connect, data);
            server(&mut builder, rates, client, connect, data)
        })
        .collect();
    stress_ng::start_each(builder, settings, &workers)
}

fn client(builder: &mut Builder, rates: Rates, connect: ObjectId, data: ObjectId) -> ProgramId {
    const BYTES: u32 = STEP * MESSAGES * (MESSAGES + 1) / 2;
    let mut code = Code::default();
    rates.forever(&mut code, 1, |code| {
        code.op(Op::Write { object: connect, bytes: 1 });
        code.repeat(COUNTER, CLIENT_CALLS, call);
        code.repeat(COUNTER, u64::from(BYTES / BUFFER), |code| receive(code, data, BUFFER));
        receive(code, data, BYTES % BUFFER);
        // The end of the connection.
        (0..2).for_each(|_| call(code));
    });
    builder.program(COMM, code)
}

fn server(builder: &mut Builder, rates: Rates, client: ProgramId, connect: ObjectId, data: ObjectId) -> ProgramId {
    let mut code = Code::default();
    code.op(Op::Fork { program: client, kind: TaskKind::Process, into: CHILD });
    rates.forever(&mut code, 1, |code| {
        code.op(Op::Read { object: connect, bytes: 1 });
        let mut held = 0;
        for bytes in (1..=MESSAGES).map(|index| index * STEP) {
            held += bytes;
            let segment = if bytes == STEP * MESSAGES { held } else { SEGMENT };
            if held < segment {
                code.op(Op::System(Amount::Fixed(copy_of(bytes))));
            } else {
                section(code, SectionContext::Preemptible, copy_of(bytes));
                section(code, SectionContext::PreemptOff, SOFTIRQ);
                code.op(Op::Write { object: data, bytes: segment });
                held -= segment;
            }
        }
        code.repeat(COUNTER, SERVER_CALLS, call);
        rates.count(code, 1);
    });
    builder.program(COMM, code)
}

fn receive(code: &mut Code, object: ObjectId, bytes: u32) {
    call(code);
    section(code, SectionContext::Preemptible, copy_of(bytes));
    code.op(Op::Read { object, bytes });
}

fn copy_of(bytes: u32) -> u64 {
    u64::from(bytes) * COPY_KIB / 1024
}

/// Work of the call that follows.
fn section(code: &mut Code, context: SectionContext, work: u64) {
    let section = Section { context, might_sleep: false, every: 0 };
    code.op(Op::Section { amount: Amount::Fixed(work), section, last: false });
}
