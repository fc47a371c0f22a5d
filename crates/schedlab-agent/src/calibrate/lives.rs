//! Costs of making and ending tasks. Everything runs on one CPU.

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
use crate::error::{os, AgentError, Result};
use crate::sys::{self, Arena, Forked};

/// Children made one after the other, each waited for: what parent and child saw on the clock.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    parent: Pid,
    lives: Vec<Life>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    child: Pid,
    /// Before the call that makes it, and after.
    made: (Nanos, Nanos),
    /// Its first look at the clock, and its last.
    lived: (Nanos, Nanos),
    /// Before its parent waits, and after.
    reaped: (Nanos, Nanos),
}

/// What a child leaves behind.
struct Left {
    tid: AtomicU64,
    born: AtomicU64,
    ends: AtomicU64,
}

impl Left {
    fn live(&self) {
        self.born.store(now(), SeqCst);
        self.tid.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
        self.ends.store(now(), SeqCst);
    }

    fn life(&self, made: (Nanos, Nanos), reaped: (Nanos, Nanos)) -> Life {
        let lived = (self.born.load(SeqCst), self.ends.load(SeqCst));
        Life { child: self.tid.load(Relaxed) as Pid, made, lived, reaped }
    }
}

fn me() -> Pid {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Processes.
pub fn processes(samples: usize) -> Result<Lives> {
    let mut arena = Arena::new(1 << 12).map_err(os("mmap"))?;
    let shared: &[AtomicU64] = arena.slice(3).map_err(os("mmap"))?;
    let mut lives = Vec::with_capacity(samples);
    for _ in 0..samples {
        let begin = now();
        let Forked::Parent(_) = sys::fork().map_err(os("fork"))? else {
            let left = Left { tid: AtomicU64::new(0), born: AtomicU64::new(0), ends: AtomicU64::new(0) };
            left.live();
            // What the agent does at the end of a task, too.
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
        let life = Life { child: at(0) as Pid, made: (begin, forked), lived: (at(1), at(2)), reaped: (waits, reaped) };
        lives.push(life);
    }
    Ok(Lives { parent: me(), lives })
}

/// Threads.
pub fn threads(samples: usize) -> Result<Lives> {
    let mut lives = Vec::with_capacity(samples);
    for _ in 0..samples {
        let left = Arc::new(Left { tid: AtomicU64::new(0), born: AtomicU64::new(0), ends: AtomicU64::new(0) });
        let child = Arc::clone(&left);
        let begin = now();
        let child = thread::Builder::new().stack_size(64 << 10).spawn(move || child.live()).map_err(os("thread"))?;
        let made = now();
        let waits = now();
        // It does not panic.
        let _ = child.join();
        lives.push(left.life((begin, made), (waits, now())));
    }
    Ok(Lives { parent: me(), lives })
}

/// Processes as the agent itself makes them: a run of its own with a trace, in which a parent and its children look at
/// the clock. What a fork and an exit take depends on the process: its memory, the pages that a child touches first.
pub fn in_a_run(kind: &str, samples: usize) -> Result<(Lives, Events)> {
    // A name that nobody can have prepared; removed at the end.
    let dir = tempfile::Builder::new().prefix("schedlab-lives-").tempdir();
    run_in(dir.map_err(os("a directory for temporary files"))?.path(), kind, samples)
}

fn run_in(dir: &Path, kind: &str, samples: usize) -> Result<(Lives, Events)> {
    let failed = |what: &str| AgentError::failed(format!("calibrate: a run of {kind} children: {what}"), "");
    let (scenario, trace) = (dir.join("lives.toml"), dir.join("lives.ftrace"));
    let text = SCENARIO.replace("KIND", kind).replace("SAMPLES", &samples.to_string());
    std::fs::write(&scenario, text).map_err(os("a temporary file"))?;
    let mut run = Command::new("/proc/self/exe");
    run.arg("run").arg(&scenario).args(["--variant", "any", "--seed", "1", "--trace"]).arg(&trace);
    let done = run.stdin(Stdio::null()).output().map_err(os("a run"))?;
    if !done.status.success() {
        return Err(failed(String::from_utf8_lossy(&done.stderr).trim()));
    }
    let events = Events::read(&trace)?;
    let lives = events.lives().ok_or_else(|| failed("its trace has none"))?;
    Ok((lives, events))
}

/// What parent and child see are the ends of spans, each with its length.
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
    /// The lives of such a run: who has a span between its fork and its exit is a child.
    fn lives(&self) -> Option<Lives> {
        let mut spans: BTreeMap<Pid, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        let mut forks = Vec::new();
        for event in self.all() {
            match event.kind {
                Kind::Sample { pid, value, .. } => spans.entry(pid).or_default().push((event.time - value, event.time)),
                Kind::Fork { parent, child } => forks.push((parent, child)),
                _ => {}
            }
        }
        let parent =
            forks.iter().map(|(parent, _)| *parent).find(|parent| spans.get(parent).is_some_and(|s| s.len() > 2))?;
        let children = forks.iter().filter(|(by, _)| *by == parent).map(|(_, child)| *child);
        let life = |(child, own): (Pid, &[(Nanos, Nanos)])| {
            let lived = *spans.get(&child)?.first()?;
            Some(Life { child, made: *own.first()?, lived, reaped: *own.get(1)? })
        };
        let lives = children.zip(spans.get(&parent)?.chunks_exact(2)).filter_map(life).collect();
        Some(Lives { parent, lives })
    }
}

/// Parts of lives, in ns, a sample each.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The parent's call.
    pub make: Vec<Nanos>,
    /// From the `sched_switch` to the child until it is in user mode.
    pub begin: Vec<Nanos>,
    /// From its last step until `sched_waking` of its parent.
    pub end: Vec<Nanos>,
    /// From there until the `sched_switch` from it.
    pub leave: Vec<Nanos>,
    /// From the parent's user mode until the `sched_switch` from it.
    pub to_sleep: Vec<Nanos>,
    /// From the `sched_switch` to it until it is in user mode.
    pub from_sleep: Vec<Nanos>,
    /// From the child's last step until the parent is back, where no trace tells the parts apart.
    pub ends: Vec<Nanos>,
}

impl Lives {
    /// Their parts; `look` is what a look at the clock takes.
    pub fn parts(&self, events: &Events, look: Nanos) -> Parts {
        let mut parts = Parts::default();
        for life in &self.lives {
            self.add(&mut parts, life, events, look);
        }
        parts
    }

    fn add(&self, parts: &mut Parts, life: &Life, events: &Events, look: Nanos) {
        let half = |time: Nanos| time.saturating_sub(look / 2);
        let (begin, made) = life.made;
        parts.ends.push(life.reaped.1.saturating_sub(life.reaped.0));
        if events.within(begin, made).switches() == 0 {
            parts.make.push((made - begin).saturating_sub(look));
        }
        let (waits, reaped) = life.reaped;
        let during = events.within(begin, reaped);
        if let Some(entered) = during.first_to(life.child) {
            parts.begin.push(half(life.lived.0.saturating_sub(entered)));
        }
        if let (Some(waking), Some(left)) = (during.waking(self.parent), during.last_from(life.child)) {
            let other = events.within(life.lived.1, waking).away(life.child);
            parts.end.push(half(waking.saturating_sub(life.lived.1 + other)));
            parts.leave.push(left.saturating_sub(waking));
        }
        let during = events.within(waits, reaped);
        if let (Some(left), Some(back)) = (during.only_from(self.parent), during.only_to(self.parent)) {
            parts.to_sleep.push(half(left - waits));
            parts.from_sleep.push(half(reaped - back));
        }
    }
}
