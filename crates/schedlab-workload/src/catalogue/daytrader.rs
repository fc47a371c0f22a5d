//! A tiered request server like DayTrader 7: users, a web tier, a database tier, order processing and a garbage
//! collector.

use super::about::{parameter, About, Quantity};
use super::dispatch::dispatch;
use super::service::{collector, collectors, lognormal, shape, COLLECTOR_THREADS, COLLECTOR_WORK};
use super::{limit, BuildError, Entry, MetricSpec, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, ObjectId, ObjectSpec, Op, TaskSpec, TimerMode, Workload};
use schedlab_model::{Nanos, SEC, USEC};

const RATE: MetricSpec = MetricSpec::rate("requests_per_second", "requests completed per second");
const LATENCY: MetricSpec = MetricSpec::latency(
    "latency",
    &["mean", "p50", "p99", "max"],
    "from a request, or from when it was due with load or rate, until its answer",
);
const QUEUEING: MetricSpec =
    MetricSpec::queueing("queueing", &["mean", "p99"], "with load or rate: until a web thread takes the request");
const SERVICE: MetricSpec =
    MetricSpec::latency("service", &["mean", "p99"], "from when a web thread takes a request until it has answered");
/// The latency of each kind of operation, as in the table that JMeter prints by the names of its requests.
const OF_KIND: [MetricSpec; 4] = [
    MetricSpec::latency("quotes_latency", &["mean"], "latency of quotes and logouts alone"),
    MetricSpec::latency("pages_latency", &["mean"], "latency of pages alone"),
    MetricSpec::latency("updates_latency", &["mean"], "latency of updates alone"),
    MetricSpec::latency("orders_latency", &["mean"], "latency of orders alone"),
];

pub(super) const ENTRY: Entry = Entry {
    id: "daytrader",
    summary: "DayTrader-like tiers: web, database, orders, GC",
    about: About {
        structure: &[
            "Two web threads and one database thread per CPU, one thread that processes orders, and the threads \
             of a garbage collector in the background.",
            "A web thread takes a request from a queue, computes half of its own work, makes database calls one \
             after the other, and computes the other half. A call is a message to the database threads and a wait \
             for the answer: two futex wakeups and two switches away. Orders hold the row of one of `stocks` \
             stocks for their last two calls, which read it for update and write it, and are then passed to the \
             order thread.",
            "Closed loop: `users` users send the next request `think-time` after they have the answer. Open loop \
             (`load` or `rate`): requests arrive at random (Poisson) at a rate that needs `load` percent of the \
             CPUs, and latency counts from when a request was due, so a late generator hides nothing (no \
             coordinated omission); `queueing` ends when a web thread takes the request. The utilisation that is \
             reached is `sched.cpu_busy`.",
            "`quotes`, `pages`, `updates` and `orders` are the percentages of the operations; together they are \
             100. Each of them has its latency as a metric, which JMeter prints as an average; `count` of that is the \
             number of operations.",
        ],
        parameters: &[
            parameter(
                "users",
                Quantity::Words("70% of the CPUs"),
                "the published run on POWER10 used about 70% CPU, and a request occupies one CPU at a time",
            ),
            parameter(
                "shares of the operations",
                Quantity::Words("40, 49, 3, 8 percent"),
                "the JMeter plan daytrader7.jmx: quotes 36 and logouts 4; home 16, portfolios 15, accounts 10, \
                 market summaries 8; updates 2 and registrations 1; buys 4 and sells 4",
            ),
            parameter("think-time", Quantity::Words("0"), "MAXTHINKTIME of the same plan"),
            parameter(
                "web tier's own work",
                Quantity::Words("0.3, 0.6, 0.8, 1.0 ms"),
                "estimate, a third to three times that: no figure is published; quotes, pages, updates, orders",
            ),
            parameter(
                "database calls",
                Quantity::Words("1, 2, 3, 5"),
                "estimate, one fewer to twice as many: no figure is published; quotes, pages, updates, orders",
            ),
            parameter("work of a database call, and of an order", Quantity::Time(CALL), "estimate, 30 us to 1 ms"),
            shape("shape of all work"),
            parameter(
                "stocks",
                Quantity::Words("10000"),
                "MAX_QUOTES in TradeConfig.java of sample.daytrader7, drawn uniformly",
            ),
            parameter(
                "calls of an order with the row locked",
                Quantity::Number(LOCKED),
                "updateQuotePriceVolumeInt in TradeDirect.java: select for update, update, commit",
            ),
            COLLECTOR_THREADS,
            COLLECTOR_WORK,
        ],
        simplified: &[
            "The JIT compiler, the network, the clients' own CPU time and stop-the-world pauses are missing.",
            "Of the locks of the application only the rows of stocks are there: accounts are each user's own, and the \
             pool of connections is never empty.",
            "Orders are processed by another thread, as in the application's asynchronous modes; by default its web \
             thread does that.",
        ],
    },
    options: &[
        OptionSpec::number("users", 0, 1, 100_000, "closed loop: users, one request each; default: 70% of the CPUs")
            .default(Preset::Unset),
        OptionSpec::time("think-time", TimeUnit::Milliseconds, 0, 1_000_000, "closed loop: pause before a request"),
        OptionSpec::number(
            "load",
            0,
            1,
            400,
            "open loop: percent of the CPUs that requests need, without the collector; default: a closed loop",
        )
        .default(Preset::Unset),
        OptionSpec::number("rate", 0, 1, 100_000_000, "open loop: requests per second; default: as load says")
            .default(Preset::Unset),
        OptionSpec::number("quotes", CLASSES[0].share, 0, 100, "percent of the requests: quotes and logouts"),
        OptionSpec::number("pages", CLASSES[1].share, 0, 100, "percent: home, portfolio, account, market summary"),
        OptionSpec::number("updates", CLASSES[2].share, 0, 100, "percent: changes of a profile, registrations"),
        OptionSpec::number("orders", CLASSES[3].share, 0, 100, "percent: buys and sells"),
        OptionSpec::number("stocks", 10_000, 1, 100_000, "stocks whose rows orders lock, drawn evenly"),
        limit::TIME,
    ],
    metrics: &[RATE, LATENCY, QUEUEING, SERVICE, OF_KIND[0], OF_KIND[1], OF_KIND[2], OF_KIND[3]],
    ends: limit::ENDS,
    build,
};

/// Operations of one kind.
struct Class {
    /// The option with its percentage.
    name: &'static str,
    /// The default of that.
    share: i64,
    /// The web tier's own work.
    work: Nanos,
    /// Database calls.
    calls: u64,
    /// Whether it is an order.
    order: bool,
}

const CLASSES: [Class; 4] = [
    Class { name: "quotes", share: 40, work: 300 * USEC, calls: 1, order: false },
    Class { name: "pages", share: 49, work: 600 * USEC, calls: 2, order: false },
    Class { name: "updates", share: 3, work: 800 * USEC, calls: 3, order: false },
    Class { name: "orders", share: 8, work: 1000 * USEC, calls: 5, order: true },
];
/// Work of a database call, and of the processing of an order.
const CALL: Nanos = 100 * USEC;
/// The last calls of an order, for which it holds the row of its stock: the row is read for update and written.
const LOCKED: u64 = 2;

// Registers: a thread's own id, the peer's or when the request was due, the begin of what is sampled, and scratch.
const OWN: u8 = 0;
const PEER: u8 = 1;
const BEGIN: u8 = 2;
const NOW: u8 = 3;
const COUNTER: u8 = 4;
/// A number below 100 that says of which kind a request is.
const KIND: u8 = 5;

/// The queues, locks and metrics of the server.
struct Tiers {
    web: ObjectId,
    database: ObjectId,
    orders: ObjectId,
    /// The list through which a thread gets its own id, and its lock.
    ids: (ObjectId, ObjectId),
    /// The first of the rows.
    rows: ObjectId,
    nr_rows: u32,
    rate: u16,
    latency: u16,
    service: u16,
    /// With an open loop.
    queueing: Option<u16>,
    shares: [i64; CLASSES.len()],
    /// The latency of each kind of which there are requests.
    of_kind: [Option<u16>; CLASSES.len()],
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let shares = CLASSES.map(|class| settings.number(class.name));
    let every = interarrival(settings, &shares)?;
    let mut builder = Builder::new(settings.name);
    let mut queue = |name: &str| builder.object(name.to_string(), ObjectSpec::Queue);
    let (web, database, orders) = (queue("requests"), queue("database calls"), queue("orders"));
    let list = builder.object("ids".to_string(), ObjectSpec::List);
    let lock = builder.object("lock of the ids".to_string(), ObjectSpec::Mutex { pi: false });
    let nr_rows = settings.count("stocks");
    let row = |number| (format!("row of stock {number}"), ObjectSpec::Mutex { pi: false });
    let rows: Vec<ObjectId> = (0..nr_rows).map(row).map(|(name, spec)| builder.object(name, spec)).collect();
    let [rate, latency, service] = [RATE, LATENCY, SERVICE].map(|spec| builder.metric(spec.decl(1)));
    let queueing = every.map(|_| builder.metric(QUEUEING.decl(1)));
    let mut number = 0;
    let of_kind = OF_KIND.map(|spec| {
        number += 1;
        (shares[number - 1] > 0).then(|| builder.metric(spec.decl(1)))
    });
    let (ids, rows) = ((list, lock), rows[0]);
    let tiers = Tiers { web, database, orders, ids, rows, nr_rows, rate, latency, service, queueing, shares, of_kind };
    let cpus = settings.nr_cpus as u32;
    let parts = [
        ("database", database_thread(&mut builder, &tiers), cpus),
        ("orders", order_thread(&mut builder, &tiers), 1),
        ("collector", collector(&mut builder), collectors(cpus)),
        ("web", web_thread(&mut builder, &tiers), 2 * cpus),
    ];
    for (name, code, count) in parts {
        let program = builder.program(name, code);
        builder.task(TaskSpec { name: name.to_string(), program, count, ..TaskSpec::default() });
    }
    let (name, code, count) = match every {
        Some(every) => ("arrivals", arrivals(&mut builder, &tiers, every), 1),
        None if settings.is_given("users") => {
            ("user", user(&tiers, settings.time("think-time")), settings.count("users"))
        }
        None => ("user", user(&tiers, settings.time("think-time")), (cpus * 7 / 10).max(1)),
    };
    let program = builder.program(name, code);
    // The users are other machines: the timer of arrivals has no slack.
    let timer_slack = if every.is_some() { 1 } else { TaskSpec::default().timer_slack };
    let users = TaskSpec { name: name.to_string(), program, count, process: 1, timer_slack, ..TaskSpec::default() };
    builder.task(users);
    Ok(limit::finish(builder, settings, name, 2))
}

/// Mean time between two requests of an open loop; `None` for a closed one.
///
/// 1 / rate, or work of a request * 100 / load / CPUs
fn interarrival(settings: &Settings<'_>, shares: &[i64]) -> Result<Option<Nanos>, BuildError> {
    let total: i64 = shares.iter().sum();
    if total != 100 {
        let key = CLASSES.iter().map(|class| class.name).find(|name| settings.is_given(name)).unwrap_or("orders");
        let what = format!("quotes, pages, updates and orders are {total} percent of the requests together");
        return Err(settings.error(key, what).expected("100"));
    }
    let open: Vec<&str> = ["load", "rate"].into_iter().filter(|key| settings.is_given(key)).collect();
    let closed = ["users", "think-time"].into_iter().find(|key| settings.is_given(key));
    match (&open[..], closed) {
        ([], _) => return Ok(None),
        ([key], Some(closed)) => {
            let what = format!("`{closed}` belongs to a closed loop and `{key}` to an open one");
            return Err(settings.error(closed, what).expected("one of the two"));
        }
        ([load, _], _) => {
            return Err(settings.error(load, "`load` and `rate` both set the rate").expected("one of them"))
        }
        _ => {}
    }
    let work = |(class, share): (&Class, &i64)| {
        let order = if class.order { CALL } else { 0 };
        share.unsigned_abs() * (class.work + class.calls * CALL + order)
    };
    let hundred_requests: Nanos = CLASSES.iter().zip(shares).map(work).sum();
    let every = match settings.is_given("rate") {
        true => SEC / settings.number("rate").unsigned_abs(),
        false => hundred_requests / settings.number("load").unsigned_abs() / settings.nr_cpus as u64,
    };
    Ok(Some(every.max(1)))
}

/// The register := the task's own id, which it takes from a list that no other task uses at that time.
fn own_id(code: &mut Code, tiers: &Tiers) {
    let (list, lock) = tiers.ids;
    let known = code.mark();
    code.op(Op::Lock(lock));
    code.op(Op::ListPush(list));
    code.op(Op::ListTake(list));
    code.list_pop(OWN, known);
    code.bind(known);
    code.op(Op::Unlock(lock));
}

/// A user of the closed loop.
fn user(tiers: &Tiers, think: Nanos) -> Code {
    let mut code = Code::default();
    own_id(&mut code, tiers);
    code.forever(|code| {
        if think > 0 {
            code.op(Op::Sleep(Amount::Fixed(think)));
        }
        code.op(Op::Clock(BEGIN));
        code.op(Op::Send { object: tiers.web, from: OWN });
        code.op(Op::WaitOwn);
        code.elapsed(NOW, BEGIN);
        completed(code, tiers);
    });
    code
}

/// Counts a request of the kind in its register, whose latency is in another one.
fn completed(code: &mut Code, tiers: &Tiers) {
    code.op(Op::Sample { metric: tiers.latency, reg: NOW });
    by_kind(code, &tiers.shares, |code, kind| {
        code.op(Op::Sample { metric: tiers.of_kind[kind].unwrap_or(tiers.latency), reg: NOW });
    });
    code.op(Op::Count { metric: tiers.rate, count: 1 });
}

/// Executes `body(code, kind)` of the kind that the register holds, and goes on behind all of them.
fn by_kind(code: &mut Code, shares: &[i64], mut body: impl FnMut(&mut Code, usize)) {
    let done = code.mark();
    let mut below = 0;
    for (kind, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0) {
        below += share;
        let (this, next) = (code.mark(), code.mark());
        code.jump_below(KIND, below, this);
        code.jump(next);
        code.bind(this);
        body(code, kind);
        code.jump(done);
        code.bind(next);
    }
    code.bind(done);
}

/// The requests of the open loop, one each `every` on average. A request is the time at which it was due.
fn arrivals(builder: &mut Builder, tiers: &Tiers, every: Nanos) -> Code {
    let timer = builder.object("arrivals".to_string(), ObjectSpec::Timer);
    let period = builder.amount(Dist::Exponential { mean: every });
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Timer { object: timer, period, mode: TimerMode::Absolute });
        code.op(Op::TimerDue { object: timer, into: PEER });
        code.op(Op::Send { object: tiers.web, from: PEER });
    });
    code
}

fn web_thread(builder: &mut Builder, tiers: &Tiers) -> Code {
    let class = builder.dist(Dist::Uniform { low: 0, high: 99 });
    let row = builder.dist(Dist::Uniform { low: 0, high: u64::from(tiers.nr_rows) - 1 });
    let halves = CLASSES.map(|class| lognormal(builder, class.work / 2));
    let mut code = Code::default();
    own_id(&mut code, tiers);
    code.forever(|code| {
        code.op(Op::Receive { object: tiers.web, into: PEER });
        code.op(Op::Clock(BEGIN));
        if let Some(metric) = tiers.queueing {
            code.op(Op::Copy { into: NOW, from: BEGIN });
            code.op(Op::SubReg { into: NOW, from: PEER });
            code.op(Op::Sample { metric, reg: NOW });
        }
        code.op(Op::Draw(KIND, class));
        by_kind(code, &tiers.shares, |code, kind| {
            code.op(Op::Run(halves[kind]));
            operation(code, tiers, &CLASSES[kind], row);
            code.op(Op::Run(halves[kind]));
        });
        code.elapsed(NOW, BEGIN);
        code.op(Op::Sample { metric: tiers.service, reg: NOW });
        match tiers.queueing {
            None => {
                code.op(Op::SetPeer { peer: PEER, register: KIND, from: KIND });
                code.op(Op::PostPeer(PEER));
            }
            Some(_) => {
                code.elapsed(NOW, PEER);
                completed(code, tiers);
            }
        }
    });
    code
}

/// The database calls of a request; an order holds a row during the last of them and is then passed on.
fn operation(code: &mut Code, tiers: &Tiers, class: &Class, row: u32) {
    let call = |code: &mut Code| {
        code.op(Op::Send { object: tiers.database, from: OWN });
        code.op(Op::WaitOwn);
    };
    if !class.order {
        return code.repeat(COUNTER, class.calls, call);
    }
    code.repeat(COUNTER, class.calls - LOCKED, call);
    code.op(Op::Draw(NOW, row));
    dispatch(code, NOW, tiers.nr_rows, &mut |code, row| code.op(Op::Lock(tiers.rows + row)));
    code.repeat(COUNTER, LOCKED, call);
    dispatch(code, NOW, tiers.nr_rows, &mut |code, row| code.op(Op::Unlock(tiers.rows + row)));
    code.op(Op::Send { object: tiers.orders, from: OWN });
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
