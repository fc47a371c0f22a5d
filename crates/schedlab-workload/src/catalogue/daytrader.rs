//! A tiered request server like DayTrader 7: users, a web tier, a database tier, order processing and a garbage collector.
//!
//! - `users` send the next request as soon as they have the answer (JMeter's plan has no think time) and are as many as 70%
//!   of the CPUs: the published run used about 70% CPU, and a request occupies one CPU at a time.
//! - A web thread serves a request: its own work, then database calls one after the other, then its own work again. The
//!   classes of requests and their shares are those of the JMeter plan; their work is a choice, no figure is published:
//!   quotes and logouts 0.3 ms and 1 call, pages 0.6 ms and 2 calls, registrations and updates 0.8 ms and 3 calls, orders
//!   1.0 ms and 5 calls, each call 0.1 ms; lognormal with sigma 0.5. Orders are then processed by
//!   one more thread.
//! - Two web threads and one database thread per CPU; the collector has as many threads as HotSpot's default (all CPUs up
//!   to 8, then 5/8 of the rest), which take 2 to 10 ms of CPU time each, every 0.5 to 2 s.
//!
//! Left out: the JIT compiler, the network, the clients' own CPU time, stop-the-world pauses.

use super::service::{collector, collectors, lognormal};
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Dist, ObjectSpec, Op, TaskSpec, Workload};
use schedlab_model::{Nanos, USEC};

const RATE: MetricSpec = MetricSpec::rate("requests_per_second", "requests completed per second");
const LATENCY: MetricSpec =
    MetricSpec::latency("latency", &["mean", "p50", "p99", "max"], "from a request until its answer, at the user");
const SERVICE: MetricSpec =
    MetricSpec::latency("service", &["mean", "p99"], "from when a web thread takes a request until it has answered");

pub(super) const ENTRY: Entry = Entry {
    id: "daytrader",
    summary: "a tiered request server like DayTrader 7: web, database, orders, garbage collection",
    options: &[
        OptionSpec::number("users", 0, 1, 100_000, "users, each with one request at a time; default: 70% of the CPUs")
            .default(Preset::Unset),
        limit::TIME,
    ],
    metrics: &[RATE, LATENCY, SERVICE],
    ends: limit::ENDS,
    build,
};

/// Classes: their share in percent, the web tier's own work, database calls, and whether they are orders.
const CLASSES: [(i64, Nanos, u64, bool); 4] =
    [(40, 300 * USEC, 1, false), (49, 600 * USEC, 2, false), (3, 800 * USEC, 3, false), (8, 1000 * USEC, 5, true)];
const CALL: Nanos = 100 * USEC;

// Registers: a thread's own id, the peer's, the begin of what is sampled, and scratch.
const OWN: u8 = 0;
const PEER: u8 = 1;
const BEGIN: u8 = 2;
const NOW: u8 = 3;
const COUNTER: u8 = 4;

/// The queues and metrics of the server.
struct Tiers {
    web: u32,
    database: u32,
    orders: u32,
    rate: u16,
    latency: u16,
    service: u16,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let mut queue = |name: &str| builder.object(name.to_string(), ObjectSpec::Queue);
    let (web, database, orders) = (queue("requests"), queue("database calls"), queue("orders"));
    let [rate, latency, service] = [RATE, LATENCY, SERVICE].map(|spec| builder.metric(spec.decl(1)));
    let tiers = Tiers { web, database, orders, rate, latency, service };
    let cpus = settings.nr_cpus as u32;
    let users = if settings.is_given("users") { settings.count("users") } else { (cpus * 7 / 10).max(1) };
    let parts = [
        ("database", database_thread(&mut builder, &tiers), cpus),
        ("orders", order_thread(&mut builder, &tiers), 1),
        ("collector", collector(&mut builder), collectors(cpus)),
    ];
    for (name, code, count) in parts {
        let program = builder.program(name, code);
        builder.task(TaskSpec { name: name.to_string(), program, count, ..TaskSpec::default() });
    }
    // Every user and web thread needs an id of its own, which it takes from a list that only it uses.
    for index in 0..2 * cpus {
        let me = builder.object(format!("web thread {index}"), ObjectSpec::List);
        let code = web_thread(&mut builder, &tiers, me);
        let program = builder.program("web", code);
        builder.task(TaskSpec { name: "web".to_string(), program, ..TaskSpec::default() });
    }
    for index in 0..users {
        let me = builder.object(format!("user {index}"), ObjectSpec::List);
        let program = builder.program("user", user(&tiers, me));
        builder.task(TaskSpec { name: "user".to_string(), program, process: 1, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "user", 2))
}

/// The register := the task's own id.
fn own_id(code: &mut Code, list: u32) {
    let known = code.mark();
    code.op(Op::ListPush(list));
    code.op(Op::ListTake(list));
    code.list_pop(OWN, known);
    code.bind(known);
}

fn user(tiers: &Tiers, me: u32) -> Code {
    let mut code = Code::default();
    own_id(&mut code, me);
    code.forever(|code| {
        code.op(Op::Clock(BEGIN));
        code.op(Op::Send { object: tiers.web, from: OWN });
        code.op(Op::WaitOwn);
        code.elapsed(NOW, BEGIN);
        code.op(Op::Sample { metric: tiers.latency, reg: NOW });
        code.op(Op::Count { metric: tiers.rate, count: 1 });
    });
    code
}

fn web_thread(builder: &mut Builder, tiers: &Tiers, me: u32) -> Code {
    let class = builder.dist(Dist::Uniform { low: 0, high: 99 });
    let halves = CLASSES.map(|(_, work, ..)| lognormal(builder, work / 2));
    let mut code = Code::default();
    own_id(&mut code, me);
    code.forever(|code| {
        code.op(Op::Receive { object: tiers.web, into: PEER });
        code.op(Op::Clock(BEGIN));
        code.op(Op::Draw(NOW, class));
        let done = code.mark();
        let mut below = 0;
        for (index, (share, _, calls, order)) in CLASSES.into_iter().enumerate() {
            below += share;
            let (this, next) = (code.mark(), code.mark());
            code.jump_below(NOW, below, this);
            code.jump(next);
            code.bind(this);
            code.op(Op::Run(halves[index]));
            code.repeat(COUNTER, calls, |code| {
                code.op(Op::Send { object: tiers.database, from: OWN });
                code.op(Op::WaitOwn);
            });
            if order {
                code.op(Op::Send { object: tiers.orders, from: OWN });
            }
            code.op(Op::Run(halves[index]));
            code.jump(done);
            code.bind(next);
        }
        code.bind(done);
        code.elapsed(NOW, BEGIN);
        code.op(Op::Sample { metric: tiers.service, reg: NOW });
        code.op(Op::PostPeer(PEER));
    });
    code
}

fn database_thread(builder: &mut Builder, tiers: &Tiers) -> Code {
    let work = lognormal(builder, CALL);
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Receive { object: tiers.database, into: PEER });
        code.op(Op::Run(work));
        code.op(Op::PostPeer(PEER));
    });
    code
}

/// Processes orders one after the other.
fn order_thread(builder: &mut Builder, tiers: &Tiers) -> Code {
    let work = lognormal(builder, CALL);
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Receive { object: tiers.orders, into: PEER });
        code.op(Op::Run(work));
    });
    code
}
