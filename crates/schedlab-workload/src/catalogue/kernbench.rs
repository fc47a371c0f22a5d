//! kernbench: a kernel is built by `make -j`, at half the CPUs, at four jobs per CPU, or without a limit.

use super::about::{parameter, About, Quantity};
use super::{BuildError, Ends, Entry, MetricSpec, OptionKind, OptionSpec, Preset, Settings};
use crate::build::{Builder, Code};
use crate::{Amount, Better, Dist, ObjectId, ObjectSpec, Op, ProgramId, TaskKind, TaskSpec, Unit, Workload};
use schedlab_model::{Nanos, MSEC, SEC, USEC};

const ELAPSED: MetricSpec =
    MetricSpec::headline("elapsed", Unit::Seconds, Better::Lower, "from the start of make until its end");
const CPU_TIME: MetricSpec =
    MetricSpec::headline("user_system", Unit::Seconds, Better::Lower, "user plus system time of make and all its jobs");
const USER: MetricSpec = MetricSpec::headline("user", Unit::Seconds, Better::Lower, "the user time of these");
const SYSTEM: MetricSpec = MetricSpec::headline("system", Unit::Seconds, Better::Lower, "the system time of these");

pub(super) const ENTRY: Entry = Entry {
    id: "kernbench",
    summary: "kernbench: make -j builds a kernel (0.42)",
    about: About {
        structure: &[
            "make runs its serial head, then a make per directory. That make reads its Makefile, starts a job per \
             object whenever the jobserver has a token (none is needed without a limit), waits for all of them, \
             and archives them; when every directory is through, the first make links. A make below holds the \
             token of its job only until it starts jobs of its own, as GNU make's implicit slot does.",
            "A job is a shell that runs the compiler driver, which runs cc1 and then the assembler, and then \
             fixdep and rm: six processes, each started by vfork, so its parent sleeps twice for it, until its \
             exec and until its exit. The compiler works in user mode and faults in its memory in kernel mode.",
            "A make waits for a token in pselect() and then reads it without blocking (`jobserver_acquire` of GNU \
             make 4.2 and later), so a token that a job returns wakes every make that waits, and all but one of \
             them sleep again.",
        ],
        parameters: &[
            parameter("objects", Quantity::Words("2800"), "estimate, 1000 to 5000: an x86 defconfig"),
            parameter("objects of a directory", Quantity::Number(DIRECTORY), "estimate, 5 to 20"),
            parameter(
                "CPU time of cc1",
                Quantity::Words("lognormal, median 0.3 s, sigma 0.8"),
                "estimate: from a tenth of a second to several",
            ),
            parameter(
                "CPU time of the assembler",
                Quantity::Words("lognormal, median 20 ms, sigma 0.8"),
                "estimate, a tenth to a twentieth of cc1",
            ),
            parameter("share of both in the kernel", Quantity::Words("a tenth"), "estimate, 5 to 20%"),
            parameter("shell, driver, fixdep and rm", Quantity::Time(SMALL), "estimate, 1 to 5 ms each"),
            parameter(
                "head, tail",
                Quantity::Words("1 s, 4 s"),
                "estimates, a third to three times that: configuration and headers; link and symbols",
            ),
            parameter("reading a Makefile, archiving", Quantity::Time(RECIPE), "estimate, 3 to 30 ms"),
            parameter(
                "processes of a job",
                Quantity::Number(6),
                "Kbuild's cmd_and_fixdep; vfork seen with strace of GNU make 4.3, dash and the driver of gcc 12; in a \
                 build of 6.8 an object has 6.2 sleeps until an exec, 6.7 in wait4() and 6.5 exits (perf record -e \
                 sched:sched_switch beside make -j1 of ten objects, less the same without one)",
            ),
        ],
        simplified: &[
            "Directories that wait for others, directories of different sizes, programs that make runs while it \
             reads a Makefile (some 460 processes before the first object in that build), the page cache and the \
             disk are missing.",
            "A job returns its token when it ends. A real make returns the token when it has reaped the job.",
            "x86 runs objtool at the end of the build where it has CONFIG_X86_KERNEL_IBT; here it never does.",
            "Voluntary and involuntary switches and the use of the CPUs are the metrics sched.* of the run.",
        ],
    },
    options: &[
        OptionSpec {
            name: "load",
            kind: OptionKind::Choice(&["half", "optimal", "maximal"]),
            default: Preset::Word("optimal"),
            help: "jobs at a time: half of the CPUs, four per CPU, or no limit",
            short: "",
        },
        OptionSpec::number("jobs", 0, 1, 1_000_000, "jobs at a time; default: as load says").default(Preset::Unset),
        OptionSpec::number("objects", 2800, 1, 100_000, "objects to compile"),
    ],
    metrics: &[ELAPSED, CPU_TIME, USER, SYSTEM],
    ends: Ends::Always,
    build,
};

const HEAD: Nanos = SEC;
const TAIL: Nanos = 4 * SEC;
/// cc1's CPU time.
const COMPILE: Dist = Dist::Lognormal { median: 300 * MSEC, sigma: 0.8 };
/// The assembler's.
const ASSEMBLE: Dist = Dist::Lognormal { median: 20 * MSEC, sigma: 0.8 };
/// Objects of a directory.
const DIRECTORY: u64 = 12;
/// Reading a Makefile, and archiving the objects of a directory.
const RECIPE: Nanos = 10 * MSEC;
/// User mode between two spells of page faults, and such a spell: a tenth of the time in the kernel.
const STRETCH: Nanos = 4_500 * USEC;
const FAULTS: Nanos = 500 * USEC;
/// The shell, the driver, fixdep and rm.
const SMALL: Nanos = 2 * MSEC;

// Registers.
const CHILD: u8 = 0;
const COUNTER: u8 = 1;
const BEGIN: u8 = 2;
const LEFT: u8 = 3;

fn build(settings: &Settings<'_>) -> Result<Workload, BuildError> {
    let mut builder = Builder::new(settings.name);
    let metrics = [ELAPSED, CPU_TIME, USER, SYSTEM].map(|spec| builder.metric(spec.decl(1)));
    let jobs = jobs(settings);
    let tokens = jobs.map(|initial| Jobserver::of(&mut builder, initial));
    let job = job(&mut builder, tokens);
    let objects = u64::from(settings.count("objects"));
    let (directories, rest) = (objects / DIRECTORY, objects % DIRECTORY);
    let whole = directory(&mut builder, tokens, job, DIRECTORY);
    let last = (rest > 0).then(|| directory(&mut builder, tokens, job, rest));
    let mut code = Code::default();
    let again = code.here();
    code.op(Op::Clock(BEGIN));
    code.op(Op::Run(Amount::Fixed(HEAD)));
    start(&mut code, tokens, whole, directories);
    if let Some(last) = last {
        start(&mut code, tokens, last, 1);
    }
    reap(&mut code, directories + u64::from(last.is_some()));
    code.op(Op::Run(Amount::Fixed(TAIL)));
    code.op(Op::CpuTime(LEFT));
    code.elapsed(COUNTER, BEGIN);
    code.op(Op::Sample { metric: metrics[0], reg: COUNTER });
    code.op(Op::Sample { metric: metrics[1], reg: LEFT });
    code.op(Op::UserTime(COUNTER));
    code.op(Op::Sample { metric: metrics[2], reg: COUNTER });
    code.op(Op::SubReg { into: LEFT, from: COUNTER });
    code.op(Op::Sample { metric: metrics[3], reg: LEFT });
    if settings.repeat {
        code.jump(again);
    } else {
        code.op(Op::Finish);
    }
    let program = builder.program("make", code);
    builder.task(TaskSpec { name: "make".to_string(), program, ..TaskSpec::default() });
    Ok(builder.finish(!settings.repeat))
}

/// Jobs at a time; `None` for no limit.
fn jobs(settings: &Settings<'_>) -> Option<u32> {
    let cpus = settings.nr_cpus as u32;
    match (settings.is_given("jobs"), settings.word("load").as_str()) {
        (true, _) => Some(settings.count("jobs")),
        // kernbench takes three jobs where half of the CPUs are two.
        (_, "half") if cpus / 2 == 2 => Some(3),
        (_, "half") => Some((cpus / 2).max(1)),
        (_, "maximal") => None,
        _ => Some(4 * cpus),
    }
}

/// Starts so many processes, each when there is a token for it.
fn start(code: &mut Code, tokens: Option<Jobserver>, program: ProgramId, count: u64) {
    code.repeat(COUNTER, count, |code| {
        take(code, tokens);
        code.op(Op::Fork { program, kind: TaskKind::Vfork, into: CHILD });
    });
}

/// Waits for so many of them.
fn reap(code: &mut Code, count: u64) {
    code.repeat(COUNTER, count, |code| code.op(Op::Reap));
}

/// The pipe with the tokens: how many it holds, and whether pselect() finds it readable.
#[derive(Clone, Copy)]
struct Jobserver {
    tokens: ObjectId,
    readable: ObjectId,
}

impl Jobserver {
    fn of(builder: &mut Builder, initial: u32) -> Jobserver {
        let tokens = builder.object("jobserver".to_string(), ObjectSpec::Semaphore { initial });
        Jobserver { tokens, readable: builder.object("jobserver-poll".to_string(), ObjectSpec::Gate) }
    }
}

/// Reads a token, or waits until the pipe is readable and tries again. The look after the pipe has become unreadable
/// finds a token that came in between.
fn take(code: &mut Code, jobserver: Option<Jobserver>) {
    let Some(Jobserver { tokens, readable }) = jobserver else { return };
    let (empty, wait, done) = (code.mark(), code.mark(), code.mark());
    let top = code.here();
    code.sem_try_wait(tokens, empty);
    code.jump(done);
    code.bind(empty);
    code.op(Op::GateClose(readable));
    code.sem_try_wait(tokens, wait);
    code.jump(done);
    code.bind(wait);
    code.op(Op::GateWait(readable));
    code.jump(top);
    code.bind(done);
}

fn give(code: &mut Code, jobserver: Option<Jobserver>) {
    if let Some(Jobserver { tokens, readable }) = jobserver {
        code.op(Op::SemPost(tokens));
        code.op(Op::GateOpen(readable));
    }
}

/// The make of a directory with so many objects.
fn directory(builder: &mut Builder, tokens: Option<Jobserver>, job: ProgramId, objects: u64) -> ProgramId {
    let mut code = Code::default();
    code.op(Op::Run(Amount::Fixed(RECIPE)));
    give(&mut code, tokens);
    start(&mut code, tokens, job, objects);
    reap(&mut code, objects);
    take(&mut code, tokens);
    code.op(Op::Run(Amount::Fixed(RECIPE)));
    give(&mut code, tokens);
    let make = builder.program("make", code);
    exec(builder, "make", make)
}

/// What make forks for an object.
fn job(builder: &mut Builder, tokens: Option<Jobserver>) -> ProgramId {
    let cc1 = worker(builder, "cc1", COMPILE);
    let assembler = worker(builder, "as", ASSEMBLE);
    let [fixdep, rm] = ["fixdep", "rm"].map(|name| {
        let mut code = Code::default();
        code.op(Op::Run(Amount::Fixed(SMALL)));
        builder.program(name, code)
    });
    let mut driver = Code::default();
    driver.op(Op::Run(Amount::Fixed(SMALL)));
    for program in [cc1, assembler] {
        command(builder, &mut driver, "gcc", program);
    }
    let driver = builder.program("gcc", driver);
    let mut shell = Code::default();
    shell.op(Op::Run(Amount::Fixed(SMALL)));
    for program in [driver, fixdep, rm] {
        command(builder, &mut shell, "sh", program);
    }
    give(&mut shell, tokens);
    let shell = builder.program("sh", shell);
    exec(builder, "make", shell)
}

/// A forked process of `name` that becomes the program.
fn exec(builder: &mut Builder, name: &str, program: ProgramId) -> ProgramId {
    let mut code = Code::default();
    code.op(Op::Exec(program));
    builder.program(name, code)
}

/// Forks, executes the program and waits for it.
fn command(builder: &mut Builder, code: &mut Code, name: &str, program: ProgramId) {
    let program = exec(builder, name, program);
    code.op(Op::Fork { program, kind: TaskKind::Vfork, into: CHILD });
    code.op(Op::Reap);
}

/// A compiler or assembler: CPU time from the distribution, part of it in the kernel.
fn worker(builder: &mut Builder, name: &str, time: Dist) -> ProgramId {
    let time = builder.dist(time);
    let mut code = Code::default();
    let (last, end) = (code.mark(), code.mark());
    code.op(Op::Draw(LEFT, time));
    let top = code.here();
    code.jump_below(LEFT, (STRETCH + FAULTS) as i64, last);
    code.op(Op::Run(Amount::Fixed(STRETCH)));
    code.op(Op::System(Amount::Fixed(FAULTS)));
    code.op(Op::AddConst(LEFT, -((STRETCH + FAULTS) as i64)));
    code.jump(top);
    code.bind(last);
    code.op(Op::Run(Amount::Reg(LEFT)));
    code.bind(end);
    builder.program(name, code)
}
