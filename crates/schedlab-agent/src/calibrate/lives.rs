//! Costs of task creation and exit, on one CPU.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::Arc;
use std::thread;

use schedlab_model::{Nanos, Pid};
use schedlab_trace::Kind;

use super::events::Events;
use crate::clock::now;
use crate::error::{os, temporary, AgentError, Result};
use crate::sys::{self, Arena, Forked};

/// Children that are created and reaped one after the other, with the timestamps of parent and child.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    parent: Pid,
    lives: Vec<Lifetime>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lifetime {
    child: Pid,
    /// Before and after the call that creates it.
    made: Span,
    /// The first and the last clock read of the child.
    lived: Span,
    /// Before and after the parent's wait.
    reaped: Span,
}

/// Two clock reads.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    begin: Nanos,
    end: Nanos,
}

/// The timestamps that a child records.
struct ChildTimes {
    tid: AtomicU64,
    born: AtomicU64,
    ends: AtomicU64,
}

impl ChildTimes {
    fn live(&self) {
        self.born.store(now(), SeqCst);
        self.tid.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
        self.ends.store(now(), SeqCst);
    }

    fn life(&self, made: Span, reaped: Span) -> Lifetime {
        let lived = Span { begin: self.born.load(SeqCst), end: self.ends.load(SeqCst) };
        Lifetime { child: self.tid.load(Relaxed) as Pid, made, lived, reaped }
    }
}

fn me() -> Pid {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Measures processes.
pub fn processes(samples: usize) -> Result<Lifetimes> {
    let mut arena = Arena::new(1 << 12).map_err(os("mmap"))?;
    let shared: &[AtomicU64] = arena.slice(3).map_err(os("mmap"))?;
    let mut lives = Vec::with_capacity(samples);
    for _ in 0..samples {
        let begin = now();
        let Forked::Parent(_) = sys::fork().map_err(os("fork"))? else {
            let left = ChildTimes { tid: AtomicU64::new(0), born: AtomicU64::new(0), ends: AtomicU64::new(0) };
            left.live();
            // The agent does the same when a task exits.
            let _ = sys::thread_usage();
            shared[0].store(left.tid.load(Relaxed), Relaxed);
            shared[1].store(left.born.load(Relaxed), Relaxed);
            shared[2].store(left.ends.load(Relaxed), Relaxed);
            sys::exit_now(0)
        };
        let forked = now();
        let waits = now();
        sys::wait_any(true, true).map_err(os("waitpid"))?;
        let reaped = now();
        let at = |index: usize| shared[index].load(SeqCst);
        lives.push(Lifetime {
            child: at(0) as Pid,
            made: Span { begin, end: forked },
            lived: Span { begin: at(1), end: at(2) },
            reaped: Span { begin: waits, end: reaped },
        });
    }
    Ok(Lifetimes { parent: me(), lives })
}

/// Measures threads.
pub fn threads(samples: usize) -> Result<Lifetimes> {
    let mut lives = Vec::with_capacity(samples);
    for _ in 0..samples {
        let left = Arc::new(ChildTimes { tid: AtomicU64::new(0), born: AtomicU64::new(0), ends: AtomicU64::new(0) });
        let child = Arc::clone(&left);
        let begin = now();
        let child = thread::Builder::new().stack_size(64 << 10).spawn(move || child.live()).map_err(os("thread"))?;
        let made = now();
        let waits = now();
        // The thread does not panic.
        let _ = child.join();
        lives.push(left.life(Span { begin, end: made }, Span { begin: waits, end: now() }));
    }
    Ok(Lifetimes { parent: me(), lives })
}

/// Measures tasks as the agent creates them, in a traced run in which a parent and its children read the clock. The
/// cost of fork and exit depends on the process: on its memory and on the pages that the child accesses first.
pub fn in_a_run(kind: &str, samples: usize) -> Result<(Lifetimes, Events)> {
    // The directory has an unpredictable name and is removed when it is dropped.
    let dir = tempfile::Builder::new().prefix("schedlab-lives-").tempdir();
    run_in(dir.map_err(temporary)?.path(), kind, samples)
}

fn run_in(dir: &Path, kind: &str, samples: usize) -> Result<(Lifetimes, Events)> {
    let failed = |what: &str| AgentError::failed(format!("calibrate: run with {kind} children: {what}"), "");
    let (scenario, trace) = (dir.join("lives.toml"), dir.join("lives.ftrace"));
    let text = SCENARIO.replace("KIND", kind).replace("SAMPLES", &samples.to_string());
    std::fs::write(&scenario, text).map_err(temporary)?;
    let mut run = Command::new("/proc/self/exe");
    run.arg("run").arg(&scenario).args(["--variant", "any", "--seed", "1", "--trace"]).arg(&trace);
    let done = run.stdin(Stdio::null()).output().map_err(os("a run"))?;
    if !done.status.success() {
        return Err(failed(String::from_utf8_lossy(&done.stderr).trim()));
    }
    let events = Events::read(&trace)?;
    let lives = events.lifetimes().ok_or_else(|| failed("the trace has no child"))?;
    Ok((lives, events))
}

/// The timestamps of parent and child are the ends of spans, each with its length.
const SCENARIO: &str = r#"
machine = "host"
duration = "20s"
[[workload]]
name = "w"
[[workload.task]]
name = "parent"
program = [{ loop = SAMPLES, do = [{ begin = "made" }, { fork = "child", as = "KIND" }, { end = "made" }, { begin = "reaped" }, "reap", { end = "reaped" }, { sleep = "300us" }] }]
[[workload.task]]
name = "child"
count = 0
program = [{ begin = "lived" }, { run = "1us" }, { end = "lived" }, "exit"]
[[variant]]
name = "any"
kernel = "6.1"
[[metric]]
of = "sched.switches"
"#;

impl Events {
    /// The lifetimes in the trace of such a run. A task with a span between its fork and its exit is a child.
    fn lifetimes(&self) -> Option<Lifetimes> {
        let mut spans: BTreeMap<Pid, Vec<Span>> = BTreeMap::new();
        let mut forks = Vec::new();
        for event in self.all() {
            match event.kind {
                Kind::Sample { pid, value, .. } => {
                    spans.entry(pid).or_default().push(Span { begin: event.time - value, end: event.time });
                }
                Kind::Fork { parent, child } => forks.push((parent, child)),
                _ => {}
            }
        }
        let parent =
            forks.iter().map(|(parent, _)| *parent).find(|parent| spans.get(parent).is_some_and(|s| s.len() > 2))?;
        let children = forks.iter().filter(|(by, _)| *by == parent).map(|(_, child)| *child);
        let life = |(child, own): (Pid, &[Span])| {
            let lived = *spans.get(&child)?.first()?;
            Some(Lifetime { child, made: *own.first()?, lived, reaped: *own.get(1)? })
        };
        let lives = children.zip(spans.get(&parent)?.chunks_exact(2)).filter_map(life).collect();
        Some(Lifetimes { parent, lives })
    }
}

/// The parts of lifetimes, as samples in ns.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The parent's call that creates the child.
    pub make: Vec<Nanos>,
    /// From the `sched_switch` to the child until it is in user mode.
    pub begin: Vec<Nanos>,
    /// From the child's last step until `sched_waking` of its parent.
    pub end: Vec<Nanos>,
    /// From there until the `sched_switch` from it.
    pub leave: Vec<Nanos>,
    /// From the parent's user mode until the `sched_switch` from it.
    pub to_sleep: Vec<Nanos>,
    /// From the `sched_switch` to it until it is in user mode.
    pub from_sleep: Vec<Nanos>,
    /// From the child's last step until the parent continues, if there is no trace to separate the parts.
    pub ends: Vec<Nanos>,
}

impl Lifetimes {
    /// Splits the lifetimes into parts; `clock_read` is the cost of a clock read.
    pub fn parts(&self, events: &Events, clock_read: Nanos) -> Parts {
        let mut parts = Parts::default();
        for life in &self.lives {
            self.add(&mut parts, life, events, clock_read);
        }
        parts
    }

    fn add(&self, parts: &mut Parts, life: &Lifetime, events: &Events, clock_read: Nanos) {
        let half = |time: Nanos| time.saturating_sub(clock_read / 2);
        let Span { begin, end: made } = life.made;
        parts.ends.push(life.reaped.end.saturating_sub(life.reaped.begin));
        if events.within(begin, made).switches() == 0 {
            parts.make.push((made - begin).saturating_sub(clock_read));
        }
        let Span { begin: waits, end: reaped } = life.reaped;
        let during = events.within(begin, reaped);
        if let Some(entered) = during.first_to(life.child) {
            parts.begin.push(half(life.lived.begin.saturating_sub(entered)));
        }
        if let (Some(waking), Some(left)) = (during.waking(self.parent), during.last_from(life.child)) {
            let other = events.within(life.lived.end, waking).away(life.child);
            parts.end.push(half(waking.saturating_sub(life.lived.end + other)));
            parts.leave.push(left.saturating_sub(waking));
        }
        let during = events.within(waits, reaped);
        if let (Some(left), Some(back)) = (during.only_from(self.parent), during.only_to(self.parent)) {
            parts.to_sleep.push(half(left - waits));
            parts.from_sleep.push(half(reaped - back));
        }
    }
}
