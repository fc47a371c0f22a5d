//! netperf TCP_RR and UDP_RR over loopback: one byte to the server and one back, one transaction outstanding.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, Section, SectionContext, TaskSpec, Workload};
use schedlab_model::Nanos;

const RATE: MetricSpec = MetricSpec::rate("transactions_per_second", "transactions per second, as `Trans. Rate`");
const LATENCY: MetricSpec = MetricSpec::latency("latency", &["mean", "p50", "p99"], "a round trip at the client");

/// What a message takes longer than over an AF_UNIX stream.
pub(super) const TCP_SOFTIRQ: Nanos = 1_030;
const UDP_SOFTIRQ: Nanos = 430;

macro_rules! test {
    ($entry:ident, $id:literal, $summary:literal, $about:expr, $softirq:expr, $build:ident) => {
        pub(super) const $entry: Entry = Entry {
            id: $id,
            summary: $summary,
            about: $about,
            options: &[
                OptionSpec::number("instances", 1, 1, 10_000, "clients at a time, each with its server"),
                OptionSpec::number("request", 1, 1, 65_000, "bytes of a request, the first of -r"),
                OptionSpec::number("response", 1, 1, 65_000, "bytes of a response, the second of -r"),
                OptionSpec {
                    name: "softirq",
                    kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: 0, max: 1_000_000 },
                    default: Preset::Time($softirq),
                    help: "what a message takes longer than over an AF_UNIX stream, in the sender's call",
                    short: "",
                },
                limit::TIME,
            ],
            metrics: &[RATE, LATENCY],
            ends: limit::ENDS,
            build: $build,
        };
    };
}

/// What is known of the test over `$protocol`, a message of which takes `$longer` longer than over an AF_UNIX stream.
macro_rules! about {
    ($protocol:literal, $softirq:expr, $longer:literal) => {
        About {
            structure: &[
                concat!(
                    "A client and a server process with one ",
                    $protocol,
                    " socket each, `instances` times. The client sends a request and waits for the response; one \
                     transaction is outstanding."
                ),
                "A transaction is two sends and two recvs, two wakeups, and two switches where both share a CPU. The \
                 receiving half of the protocol runs as a softirq in the sender's own send (`__local_bh_enable_ip` \
                 after `loopback_xmit`), with preemption disabled, and so does the synchronous wakeup of the \
                 receiver.",
            ],
            parameters: &[
                parameter(
                    "softirq of a message",
                    Quantity::Time($softirq),
                    concat!(
                        "send and recv of one byte by one thread on one CPU of a guest with 2 vCPUs (Xeon, Linux 6.18) \
                         take ",
                        $longer,
                        " longer than over an AF_UNIX stream (p50 of 2000 means of 64: 1.77 us a pair over TCP, 1.17 over \
                         UDP, 0.74 over AF_UNIX); lmbench on a desktop with 6.14 has round trips of 17.6, 14.9 and 7.9 us \
                         over two CPUs"
                    ),
                ),
                parameter("bytes of request and response", Quantity::Words("1 and 1"), "netperf's defaults"),
            ],
            simplified: &[
                "ksoftirqd, which takes over when softirqs do not end, acknowledgements of their own, timers, the \
                 control connection and lost datagrams are missing.",
                "The wakeup comes at the end of the softirq, not within it.",
            ],
        }
    };
}

test!(
    TCP_RR,
    "netperf-tcp-rr",
    "netperf TCP_RR over loopback: request and response",
    about!("TCP", TCP_SOFTIRQ, "1.03 us"),
    TCP_SOFTIRQ,
    build
);
test!(
    UDP_RR,
    "netperf-udp-rr",
    "netperf UDP_RR over loopback: request and response",
    about!("UDP", UDP_SOFTIRQ, "0.43 us"),
    UDP_SOFTIRQ,
    build
);

const NOW: u8 = 0;
const BEGIN: u8 = 1;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let [rate, latency] = [RATE, LATENCY].map(|spec| builder.metric(spec.decl(1)));
    let bytes = ["request", "response"].map(|key| settings.count(key));
    let softirq = settings.time("softirq");
    let instances = settings.count("instances");
    for instance in 0..instances {
        let socket = ObjectSpec::UnixStream { sndbuf: 212_992 };
        let there = builder.object(format!("requests {instance}"), socket.clone());
        let back = builder.object(format!("responses {instance}"), socket);
        let mut server = Code::default();
        server.forever(|code| {
            code.op(Op::Read { object: there, bytes: bytes[0] });
            send(code, back, bytes[1], softirq);
        });
        let mut client = Code::default();
        client.forever(|code| {
            code.op(Op::Clock(BEGIN));
            send(code, there, bytes[0], softirq);
            code.op(Op::Read { object: back, bytes: bytes[1] });
            code.elapsed(NOW, BEGIN);
            code.op(Op::Sample { metric: latency, reg: NOW });
            code.op(Op::Count { metric: rate, count: 1 });
        });
        for (number, (name, code)) in [("netserver", server), ("netperf", client)].into_iter().enumerate() {
            let program = builder.program(name, code);
            let process = 2 * instance + number as u32;
            builder.task(TaskSpec { name: name.to_string(), program, process, ..TaskSpec::default() });
        }
    }
    Ok(limit::finish(builder, settings, "netperf", 2 * instances))
}

/// A `send` over loopback: the softirq's part, then the message and the wakeup, all in one system call.
fn send(code: &mut Code, object: u32, bytes: u32, softirq: Nanos) {
    let section = Section { context: SectionContext::PreemptOff, might_sleep: false, every: 0 };
    if softirq > 0 {
        code.op(Op::Section { amount: Amount::Fixed(softirq), section, last: false });
    }
    code.op(Op::Write { object, bytes });
}
