//! pgbench against PostgreSQL: client threads, a backend process per client, shared buffers under a spinlock, row
//! locks.

use super::about::{parameter, About, Quantity};
use super::dispatch::dispatch;
use super::service::{lognormal, shape};
use super::{limit, BuildError, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings, TimeUnit};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, MemoryWork, MetricKind, ObjectSpec, Op, SpinLockSpec, TaskSpec, Unit, Workload};
use schedlab_model::{Nanos, MSEC, USEC};

const TPS: MetricSpec = MetricSpec::rate("tps", "transactions per second");
const LATENCY: MetricSpec = MetricSpec {
    name: "latency",
    help: "from the first statement of a transaction until its last reply, at the client",
    unit: Unit::Milliseconds,
    better: Better::Lower,
    kind: MetricKind::Samples,
    stats: &["mean", "p95", "p99"],
    queueing: false,
};
const SPIN: MetricSpec =
    MetricSpec::latency("spin", &["p99", "max"], "spinning for the lock of the buffers, where it was not free at once");

const SCRIPTS: &[&str] = &["tpcb-like", "simple-update", "select-only"];

pub(super) const ENTRY: Entry = Entry {
    id: "pgbench",
    summary: "pgbench 15: clients, backends, a buffer spinlock",
    about: About {
        structure: &[
            "`jobs` threads of pgbench serve `client` clients: a thread waits for a reply of any of its clients \
             and sends that client's next statement. Each client has a backend process of its own at the other \
             end of a stream socket, and one statement outstanding.",
            "A transaction has one statement (`select-only`), five (`simple-update`) or seven (`tpcb-like`). A \
             statement takes 6 system calls of the backend (recvfrom twice, epoll_wait, sendto, lseek twice) and \
             4 of the client (ppoll, recvfrom twice, sendto), two wakeups and, with one client, two switches.",
            "A statement accesses a shared buffer under a spinlock `accesses` times, for `hold`; a backend that \
             does not get it spins and then sleeps, as s_lock does. With `fault` the access under the lock is the \
             first one of this process to that memory. `tpcb-like` holds the row of one of `scale` branches from \
             the update of it, the fifth statement, to the end.",
        ],
        parameters: &[
            parameter(
                "CPU time of a statement in the backend",
                Quantity::Words("24, 22, 30 us"),
                "tpcb-like, simple-update, select-only: pgbench 15.18, scale 10, one client, on a guest (Xeon) \
                 with other load, without the kernel's part of about 4 us",
            ),
            parameter("CPU time of the client for it", Quantity::Time(CLIENT), "the same runs"),
            shape("shape of both"),
            parameter("system calls", Quantity::Words("6 and 4"), "perf stat -p of pgbench 15.18"),
            parameter(
                "first sleep for the spinlock",
                Quantity::Words("1 ms"),
                "s_lock, src/backend/storage/lmgr/s_lock.c",
            ),
            parameter("accesses", Quantity::Words("1"), "estimate, 0 to 3"),
            parameter("hold", Quantity::Words("300 ns"), "estimate, 100 ns to 1 us: a lookup in the table of buffers"),
            parameter("buffers of 8 KiB in a huge page", Quantity::Number(BUFFERS_PER_2MIB as u64), "2 MiB / 8 KiB"),
        ],
        simplified: &[
            "The disk is missing (as with synchronous_commit = off), the WAL writer, checkpointer and autovacuum, \
             row locks on tellers, the lock manager's own locks, and the time a connection takes.",
            "All statements of a script take the same CPU time, and all make 6 calls, while the real BEGIN and \
             END need no lseek.",
            "The wait and the transfer after it are one read.",
        ],
    },
    options: &[
        OptionSpec::number("client", 1, 1, 1000, "clients, each with a backend").short("c"),
        OptionSpec::number("jobs", 1, 1, 1000, "threads of pgbench, no more than clients").short("j"),
        OptionSpec {
            name: "builtin",
            kind: OptionKind::Choice(SCRIPTS),
            default: Preset::Word(SCRIPTS[0]),
            help: "script: 7, 5 or 1 statements per transaction",
            short: "b",
        },
        OptionSpec::number("scale", 1, 1, 1000, "branches, whose rows tpcb-like locks"),
        OptionSpec::number("accesses", 1, 0, 1000, "buffers that a statement accesses under the spinlock"),
        OptionSpec {
            name: "hold",
            kind: OptionKind::Time { unit: TimeUnit::Microseconds, min: 0, max: 1_000_000 },
            default: Preset::Time(300),
            help: "how long a buffer is accessed under the lock",
            short: "",
        },
        OptionSpec {
            name: "fault",
            kind: OptionKind::Choice(&["none", "4KiB", "2MiB"]),
            default: Preset::Word("none"),
            help: "pages of the buffers that a backend touches for the first time under the lock",
            short: "",
        },
        limit::TIME.short("T"),
        OptionSpec::not_modelled("transactions", "a run ends with time"),
        OptionSpec::not_modelled("rate", "the loop is closed"),
    ],
    metrics: &[TPS, LATENCY, SPIN],
    ends: limit::ENDS,
    build,
};

/// `s_lock`: about this long until the first sleep, and the first sleep.
const LOCK: ObjectSpec =
    ObjectSpec::SpinLock(SpinLockSpec { spin: 100 * USEC, sleep: MSEC, sleep_max: 0, slice_extension: false });
/// What the backend does for a statement, in the order of [`SCRIPTS`], and what the client does for a reply.
const STATEMENT: [Nanos; 3] = [24 * USEC, 22 * USEC, 30 * USEC];
const CLIENT: Nanos = 4 * USEC;
const STATEMENTS: [u64; 3] = [7, 5, 1];
/// The statement of tpcb-like that updates the branch, from 0.
const BRANCH_UPDATE: u64 = 4;
/// Bytes of a statement and of a reply: one message, far below the socket's buffer.
const BYTES: u32 = 100;
/// System calls of a statement in addition to one `read` and one `write`.
const BACKEND_CALLS: u64 = 4;
const CLIENT_CALLS: u64 = 2;
/// Buffers of 8 KiB in a page of 2 MiB.
const BUFFERS_PER_2MIB: i64 = 256;

// Registers of a client thread.
const NOW: u8 = 0;
const BEGIN: u8 = 1;
const WHO: u8 = 2;
// Registers of a backend.
const ME: u8 = 0;
const ME_LAST: u8 = 1;
const BRANCH: u8 = 2;
const COUNTER: u8 = 3;
const TOUCHED: u8 = 4;

/// What the backends share.
struct Server {
    script: usize,
    statement: Amount,
    buffers: u32,
    spin: u16,
    accesses: u64,
    hold: Nanos,
    fault: String,
    branches: Vec<u32>,
    branch: u32,
}

/// One thread of pgbench and its end of the sockets.
struct Job {
    clients: Vec<u32>,
    statements: Vec<u32>,
    begins: Vec<u32>,
    replies: u32,
    whose: u32,
}

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let (clients, jobs) = (settings.count("client"), settings.count("jobs"));
    if jobs > clients {
        return Err(settings
            .error("jobs", format!("{jobs} threads for {clients} clients"))
            .expected("no more than `client`"));
    }
    if settings.is_given("scale") && settings.word("builtin") != SCRIPTS[0] {
        return Err(settings.error("scale", "only tpcb-like locks branches").expected("builtin = \"tpcb-like\""));
    }
    if let Some(unused) = ["hold", "fault"].into_iter().find(|key| settings.is_given(key)) {
        if settings.number("accesses") == 0 {
            return Err(settings
                .error(unused, "no buffer is accessed with accesses = 0")
                .expected("accesses from 1 on"));
        }
    }
    let mut builder = Builder::new(settings.name);
    let [tps, latency, spin] = [TPS, LATENCY, SPIN].map(|spec| builder.metric(spec.decl(1)));
    let word = settings.word("builtin");
    let script = SCRIPTS.iter().position(|known| *known == word).unwrap_or(0);
    let rows = if script == 0 { settings.count("scale") } else { 0 };
    let server = Server {
        script,
        statement: lognormal(&mut builder, STATEMENT[script]),
        buffers: builder.object("buffers".to_string(), LOCK),
        spin,
        accesses: settings.number("accesses").unsigned_abs(),
        hold: settings.time("hold"),
        fault: settings.word("fault"),
        branches: (0..rows)
            .map(|row| builder.object(format!("branch {row}"), ObjectSpec::Mutex { pi: false }))
            .collect(),
        branch: builder.dist(Dist::Uniform { low: 0, high: u64::from(settings.count("scale")) - 1 }),
    };
    let work = lognormal(&mut builder, CLIENT);
    for number in 0..jobs {
        let job = job(&mut builder, number, (number..clients).step_by(jobs as usize).collect());
        for place in 0..job.clients.len() {
            backend(&mut builder, &server, &job, place);
        }
        let code = client_thread(&job, work, tps, latency);
        let program = builder.program("pgbench", code);
        builder.task(TaskSpec { name: "pgbench".to_string(), program, process: clients, ..TaskSpec::default() });
    }
    Ok(limit::finish(builder, settings, "pgbench", clients + 1))
}

fn job(builder: &mut Builder, number: u32, clients: Vec<u32>) -> Job {
    let socket = ObjectSpec::UnixStream { sndbuf: 212_992 };
    let replies = builder.object(format!("replies {number}"), socket.clone());
    let whose = builder.object(format!("whose reply {number}"), ObjectSpec::Queue);
    let mut each = |what: &str, spec: &ObjectSpec| -> Vec<u32> {
        clients.iter().map(|client| builder.object(format!("{what} {client}"), spec.clone())).collect()
    };
    let statements = each("statements", &socket);
    let begins = each("begin", &ObjectSpec::Queue);
    Job { clients, statements, begins, replies, whose }
}

/// A backend: each statement comes by its own socket, the reply goes into the one that its client's thread polls.
fn backend(builder: &mut Builder, server: &Server, job: &Job, place: usize) {
    let mut code = Code::default();
    let last = STATEMENTS[server.script] - 1;
    code.op(Op::Set(ME, place as i64));
    code.op(Op::Set(ME_LAST, (place + job.clients.len()) as i64));
    code.op(Op::Set(TOUCHED, 1));
    code.forever(|code| {
        for number in 0..=last {
            calls(code, BACKEND_CALLS);
            code.op(Op::Read { object: job.statements[place], bytes: BYTES });
            if number == BRANCH_UPDATE && !server.branches.is_empty() {
                code.op(Op::Draw(BRANCH, server.branch));
                let rows = &server.branches;
                dispatch(code, BRANCH, rows.len() as u32, &mut |code, row| code.op(Op::Lock(rows[row as usize])));
            }
            code.op(Op::Run(server.statement));
            code.repeat(COUNTER, server.accesses, |code| server.access(code));
            if number == last && !server.branches.is_empty() {
                let rows = &server.branches;
                dispatch(code, BRANCH, rows.len() as u32, &mut |code, row| code.op(Op::Unlock(rows[row as usize])));
            }
            code.op(Op::Send { object: job.whose, from: if number == last { ME_LAST } else { ME } });
            code.op(Op::Write { object: job.replies, bytes: BYTES });
        }
    });
    let program = builder.program("postgres", code);
    let process = job.clients[place];
    builder.task(TaskSpec { name: "postgres".to_string(), program, process, ..TaskSpec::default() });
}

/// System calls that neither wait nor wake.
fn calls(code: &mut Code, count: u64) {
    (0..count).for_each(|_| code.op(Op::System(Amount::Fixed(0))));
}

impl Server {
    /// One access to a buffer under the lock.
    fn access(&self, code: &mut Code) {
        code.op(Op::SpinLock { object: self.buffers, metric: self.spin });
        code.op(Op::Run(Amount::Fixed(self.hold)));
        match self.fault.as_str() {
            "4KiB" => (0..2).for_each(|_| code.op(Op::Memory { work: MemoryWork::Map, kib: 4 })),
            "2MiB" => {
                let known = code.mark();
                code.dec_jump(TOUCHED, known);
                code.op(Op::Memory { work: MemoryWork::Map, kib: 2048 });
                code.op(Op::Set(TOUCHED, BUFFERS_PER_2MIB));
                code.bind(known);
            }
            _ => {}
        }
        code.op(Op::SpinUnlock(self.buffers));
    }
}

/// A thread of pgbench. A reply's number identifies its client; that of a transaction's last reply comes in a second
/// series.
fn client_thread(job: &Job, work: Amount, tps: u16, latency: u16) -> Code {
    let clients = job.clients.len();
    let mut code = Code::default();
    let begin = |code: &mut Code, client: usize| {
        code.op(Op::Clock(BEGIN));
        code.op(Op::Send { object: job.begins[client], from: BEGIN });
        code.op(Op::Write { object: job.statements[client], bytes: BYTES });
    };
    (0..clients).for_each(|client| begin(&mut code, client));
    code.forever(|code| {
        code.op(Op::Read { object: job.replies, bytes: BYTES });
        calls(code, CLIENT_CALLS);
        code.op(Op::Run(work));
        code.op(Op::Receive { object: job.whose, into: WHO });
        dispatch(code, WHO, 2 * clients as u32, &mut |code, number| {
            let number = number as usize;
            let Some(client) = number.checked_sub(clients) else {
                return code.op(Op::Write { object: job.statements[number], bytes: BYTES });
            };
            code.op(Op::Receive { object: job.begins[client], into: BEGIN });
            code.elapsed(NOW, BEGIN);
            code.op(Op::Sample { metric: latency, reg: NOW });
            code.op(Op::Count { metric: tps, count: 1 });
            begin(code, client);
        });
    });
    code
}
