//! lmbench 3, the latency tools: the mean time of one operation.

use super::about::{parameter, About, Quantity};
use super::{limit, BuildError, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Workload};
use schedlab_model::{Nanos, USEC};

const LATENCY: MetricSpec =
    MetricSpec::latency("latency", &["mean", "p50"], "time of one operation, as the tool counts it");

const fn word(name: &'static str, words: &'static [&'static str], help: &'static str) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Choice(words), default: Preset::Word(words[0]), help, short: "" }
}

macro_rules! tool {
    ($name:ident, $id:literal, $summary:literal, $about:expr, $build:path, [$($option:expr),*]) => {
        pub(super) const $name: Entry = Entry {
            id: $id,
            summary: $summary,
            about: $about,
            options: &[$($option,)* limit::TIME],
            metrics: &[LATENCY],
            ends: limit::ENDS,
            build: $build,
        };
    };
}

tool!(
    LAT_PROC,
    "lmbench-lat-proc",
    "lmbench lat_proc: create a process (3.0)",
    LAT_PROC_ABOUT,
    lat_proc,
    [word("what", &["fork", "exec", "shell"], "what the child does")]
);
tool!(LAT_PIPE, "lmbench-lat-pipe", "lmbench lat_pipe: a byte to and fro, pipes (3.0)", LAT_PIPE_ABOUT, lat_pipe, []);
tool!(LAT_UNIX, "lmbench-lat-unix", "lmbench lat_unix: a byte to and fro, AF_UNIX (3.0)", LAT_UNIX_ABOUT, lat_unix, []);
tool!(LAT_SEM, "lmbench-lat-sem", "lmbench lat_sem: hand over by semaphores (3.0)", LAT_SEM_ABOUT, lat_sem, []);
tool!(
    LAT_CTX,
    "lmbench-lat-ctx",
    "lmbench lat_ctx: a token round a ring (3.0)",
    LAT_CTX_ABOUT,
    lat_ctx,
    [
        OptionSpec::number("processes", 2, 2, 1000, "processes in the ring"),
        OptionSpec::number("size", 0, 0, 16_384, "KB that a process reads before it passes the token on").short("s")
    ]
);
tool!(
    LAT_SELECT,
    "lmbench-lat-select",
    "lmbench lat_select: ready descriptors (3.0)",
    LAT_SELECT_ABOUT,
    lat_select,
    [OptionSpec::number("fds", 200, 1, 10_000, "descriptors").short("n")]
);
tool!(
    LAT_SYSCALL,
    "lmbench-lat-syscall",
    "lmbench lat_syscall: one system call (3.0)",
    LAT_SYSCALL_ABOUT,
    lat_syscall,
    [word("call", &["null", "fstat", "open"], "the call; open is open and close")]
);

/// What the small program and the shell do of their own.
const HELLO: Nanos = 20 * USEC;
const SHELL: Nanos = 200 * USEC;
/// A look at one descriptor: 100 took 0.87 us in a guest, of which the call is 0.21.
const PER_FD_PS: u64 = 6_600;
/// fstat, and open with close, beyond their system calls (one, and two).
const FSTAT: Nanos = 60;
const OPEN: Nanos = 900;
/// Reading 1 KB that is in the cache, 8 bytes per cycle at 3 GHz.
const READ_KB: Nanos = 43;

const CHILD: u8 = 0;
const BEGIN: u8 = 1;
const TOOK: u8 = 2;

/// The body for ever, each time a sample.
fn sampled(code: &mut Code, metric: u16, body: impl FnOnce(&mut Code)) {
    code.forever(|code| {
        code.op(Op::Clock(BEGIN));
        body(code);
        code.elapsed(TOOK, BEGIN);
        code.op(Op::Sample { metric, reg: TOOK });
    });
}

/// A tool of one process.
fn alone(settings: &Settings<'_>, comm: &str, body: impl FnOnce(&mut Code)) -> Workload {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(LATENCY.decl(1));
    let mut code = Code::default();
    sampled(&mut code, metric, body);
    let program = builder.program(comm, code);
    limit::copies(builder, settings, comm, program, 1)
}

fn lat_syscall(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let calls: &[Nanos] = match settings.word("call").as_str() {
        "fstat" => &[FSTAT],
        "open" => &[OPEN, 0],
        _ => &[0],
    };
    Ok(alone(settings, "lat_syscall", |code| calls.iter().for_each(|call| code.op(Op::System(Amount::Fixed(*call))))))
}

fn lat_select(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let cost = settings.number("fds").unsigned_abs() * PER_FD_PS / 1000;
    Ok(alone(settings, "lat_select", |code| code.op(Op::System(Amount::Fixed(cost)))))
}

fn lat_proc(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(LATENCY.decl(1));
    let mut hello = Code::default();
    hello.op(Op::Run(Amount::Fixed(HELLO)));
    let hello = builder.program("hello", hello);
    let mut shell = Code::default();
    shell.op(Op::Run(Amount::Fixed(SHELL)));
    shell.op(Op::Exec(hello));
    let shell = builder.program("sh", shell);
    let mut child = Code::default();
    match settings.word("what").as_str() {
        "exec" => child.op(Op::Exec(hello)),
        "shell" => child.op(Op::Exec(shell)),
        _ => {}
    }
    let child = builder.program("lat_proc", child);
    let mut code = Code::default();
    sampled(&mut code, metric, |code| {
        code.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
        code.op(Op::Reap);
    });
    let program = builder.program("lat_proc", code);
    Ok(limit::copies(builder, settings, "lat_proc", program, 1))
}

fn lat_pipe(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    Ok(round_trip(settings, "lat_pipe", ObjectSpec::Pipe { pages: 16, packet: false }))
}

fn lat_unix(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    Ok(round_trip(settings, "lat_unix", ObjectSpec::UnixStream { sndbuf: 212_992 }))
}

/// A byte to the child and back.
fn round_trip(settings: &Settings<'_>, comm: &str, channel: ObjectSpec) -> Workload {
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(LATENCY.decl(1));
    let there = builder.object("to the child".to_string(), channel.clone());
    let back = builder.object("from the child".to_string(), channel);
    let hop = |from, to| (Op::Read { object: from, bytes: 1 }, Op::Write { object: to, bytes: 1 });
    let (take, give) = hop(there, back);
    let child = echo(&mut builder, comm, take, give);
    let mut code = Code::default();
    code.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
    sampled(&mut code, metric, |code| {
        let (read, write) = hop(back, there);
        code.op(write);
        code.op(read);
    });
    let program = builder.program(comm, code);
    limit::copies(builder, settings, comm, program, 1)
}

fn echo(builder: &mut Builder, comm: &str, take: Op, give: Op) -> ProgramId {
    let mut code = Code::default();
    code.forever(|code| {
        code.op(take);
        code.op(give);
    });
    builder.program(comm, code)
}

fn lat_sem(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    // The tool divides by twice the number of round trips.
    let metric = builder.metric(LATENCY.decl(2));
    let semaphore = ObjectSpec::Semaphore { initial: 0 };
    let there = builder.object("to the child".to_string(), semaphore.clone());
    let back = builder.object("from the child".to_string(), semaphore);
    let child = echo(&mut builder, "lat_sem", Op::SemWait(there), Op::SemPost(back));
    let mut code = Code::default();
    code.op(Op::Fork { program: child, kind: TaskKind::Process, into: CHILD });
    sampled(&mut code, metric, |code| {
        code.op(Op::SemPost(there));
        code.op(Op::SemWait(back));
    });
    let program = builder.program("lat_sem", code);
    Ok(limit::copies(builder, settings, "lat_sem", program, 1))
}

fn lat_ctx(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    const TOKEN: u32 = 4;
    let processes = settings.count("processes");
    let walk = settings.number("size").unsigned_abs() * READ_KB;
    let mut builder = Builder::new(settings.name);
    let metric = builder.metric(LATENCY.decl(u64::from(processes)));
    let spec = ObjectSpec::Pipe { pages: 16, packet: false };
    let ring: Vec<u32> = (0..processes).map(|index| builder.object(format!("pipe {index}"), spec.clone())).collect();
    let pass = |code: &mut Code, from: u32, to: u32, first: bool| {
        let (read, write) = (Op::Read { object: from, bytes: TOKEN }, Op::Write { object: to, bytes: TOKEN });
        let walk = |code: &mut Code| {
            if walk > 0 {
                code.op(Op::Run(Amount::Fixed(walk)));
            }
        };
        if first {
            code.op(write);
            code.op(read);
            walk(code);
        } else {
            code.op(read);
            walk(code);
            code.op(write);
        }
    };
    let mut main = Code::default();
    for index in 1..processes as usize {
        let mut code = Code::default();
        code.forever(|code| pass(code, ring[index], ring[(index + 1) % ring.len()], false));
        let program = builder.program("lat_ctx", code);
        main.op(Op::Fork { program, kind: TaskKind::Process, into: CHILD });
    }
    sampled(&mut main, metric, |code| pass(code, ring[0], ring[1], true));
    let program = builder.program("lat_ctx", main);
    let working_set = settings.number("size").unsigned_abs() as u32;
    builder.task(TaskSpec { name: "lat_ctx".to_string(), program, working_set, ..TaskSpec::default() });
    Ok(limit::finish(builder, settings, "lat_ctx", 1))
}

const LAT_PROC_ABOUT: About = About {
    structure: &[
        "One process. An operation is a fork, the exit of the child and a wait (`fork`); the child also runs \
         a small program (`exec`), or runs it by /bin/sh -c (`shell`). One or two wakeups, two switches where \
         they share a CPU.",
    ],
    parameters: &[
        parameter("work of the small program", Quantity::Time(HELLO), "estimate, 10 to 100 us"),
        parameter(
            "work of the shell",
            Quantity::Time(SHELL),
            "estimate, 100 us to 1 ms: shell took 0.4 to 0.8 ms longer than exec on a guest",
        ),
    ],
    simplified: &[REPETITIONS],
};

const LAT_PIPE_ABOUT: About = About {
    structure: &["Two processes and two pipes. An operation is one round trip of a byte: two writes, two reads, two \
         wakeups and two switches."],
    parameters: &[parameter("bytes", Quantity::Number(1), "lat_pipe.c and lat_unix.c of lmbench 3")],
    simplified: &[REPETITIONS],
};

const LAT_UNIX_ABOUT: About = About {
    structure: &["Two processes and a pair of AF_UNIX streams. An operation is one round trip of a byte: two sends, \
         two receives, two wakeups and two switches."],
    parameters: &[parameter("bytes", Quantity::Number(1), "lat_pipe.c and lat_unix.c of lmbench 3")],
    simplified: &[REPETITIONS],
};

const LAT_SEM_ABOUT: About = About {
    structure: &[
        "Two processes and two semaphores. Each waits for its own and gives the other's. An operation is half \
         a round trip: one call, one wakeup, one switch.",
    ],
    parameters: &[parameter(
        "semaphores",
        Quantity::Number(2),
        "lat_sem.c of lmbench 3: two System V semaphores in one set",
    )],
    simplified: &["Semaphores as System V has them are missing: there a semop is always a system call.", REPETITIONS],
};

/// How the programs repeat their loop.
const REPETITIONS: &str =
    "lmbench takes the median of 11 repetitions and subtracts the overhead of its loop; here every \
                           operation is a sample.";

const LAT_CTX_ABOUT: About = About {
    structure: &["`processes` processes pass a token of 4 bytes round a ring of pipes; each reads `size` KB, its \
         working set, before it passes the token on. An operation is one hop: a write, a read, a wakeup and a \
         switch."],
    parameters: &[parameter(
        "reading 1 KB that is in the cache",
        Quantity::Time(READ_KB),
        "8 bytes per cycle at 3 GHz",
    )],
    simplified: &["The time includes the pipe operations that lmbench subtracts.", REPETITIONS],
};

const LAT_SELECT_ABOUT: About = About {
    structure: &["One process. An operation is one select on `fds` descriptors that are ready: one system call, no \
         switch."],
    parameters: &[parameter(
        "a look at one descriptor",
        Quantity::Picos(PER_FD_PS),
        "100 took 0.87 us on a guest, of which the call is 0.21",
    )],
    simplified: &["The kind of the descriptors has no effect.", REPETITIONS],
};

const LAT_SYSCALL_ABOUT: About = About {
    structure: &["One process. An operation is one system call (`null`, `fstat`) or two (`open`, which is open and \
         close), no switch."],
    parameters: &[
        parameter("fstat beyond its system call", Quantity::Time(FSTAT), "estimate, 30 to 200 ns"),
        parameter("open and close beyond theirs", Quantity::Time(OPEN), "estimate, 0.5 to 2 us"),
    ],
    simplified: &["read, write and stat are missing.", REPETITIONS],
};
