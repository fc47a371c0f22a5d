//! What replay needs of a trace, and which of it a trace lacks.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_model::{CpuId, Nanos, Pid, MSEC};
use schedlab_trace::{Body, Flags, Header, Kind, Record, TaskState};

/// One run in this many may lack its run time, because the clock may not have advanced.
const SPARE: u64 = 20;

/// Counts, over a whole trace, the records without which decisions cannot be followed.
#[derive(Default)]
pub struct Needs {
    switches: u64,
    wakings: u64,
    wakeups: u64,
    lives: Lives,
    /// Some event shows context flags.
    flags: bool,
    /// Runs of fair tasks that ended, and those without any run time.
    runs: u64,
    unaccounted: u64,
    accounted: BTreeSet<Pid>,
    /// Some run time prints vruntime, which shows weights.
    prints: bool,
    begun: Option<Nanos>,
    beginnings: BTreeMap<CpuId, Beginning>,
}

/// The beginnings and ends of tasks and their ways between CPUs, and what shows that they are not recorded.
#[derive(Default)]
struct Lives {
    migrations: u64,
    forks: u64,
    exits: u64,
    /// Tasks that woke for the first time.
    new: u64,
    /// Switches from a dead task.
    dead: u64,
    /// Tasks that ran or were enqueued on another CPU than before, without a migration.
    moved: u64,
    cpus: BTreeMap<Pid, CpuId>,
    /// Tasks that blocked, and how many of them have run since.
    asleep: BTreeSet<Pid>,
    returned: u64,
}

impl Lives {
    fn note(&mut self, record: &Record<'_>) {
        let kind = match record.body {
            Body::Event(kind, _) => kind,
            Body::Lost(_) => {
                self.asleep.clear();
                return self.cpus.clear();
            }
            Body::Other { name, .. } => {
                self.forks += u64::from(name == "task_newtask");
                return;
            }
        };
        match kind {
            Kind::Migrate { pid, dest_cpu, .. } => {
                self.migrations += 1;
                self.cpus.insert(pid, dest_cpu);
            }
            Kind::Fork { .. } => self.forks += 1,
            Kind::Exit { .. } => self.exits += 1,
            Kind::WakeupNew { pid, target_cpu, .. } => {
                self.new += 1;
                self.cpus.insert(pid, target_cpu);
            }
            Kind::Wakeup { pid, target_cpu, .. } => self.see(pid, target_cpu),
            Kind::Switch { prev, prev_state, next, .. } => {
                self.dead += u64::from(prev_state == TaskState::Dead);
                if !matches!(prev_state, TaskState::Running | TaskState::Dead) {
                    self.asleep.insert(prev);
                }
                self.returned += u64::from(self.asleep.remove(&next));
                self.see(prev, record.cpu);
                self.see(next, record.cpu);
            }
            _ => {}
        }
    }

    fn see(&mut self, pid: Pid, cpu: CpuId) {
        if pid != 0 {
            let before = self.cpus.insert(pid, cpu);
            self.moved += u64::from(before.is_some_and(|before| before != cpu));
        }
    }

    fn missing(&self) -> impl Iterator<Item = &'static str> {
        let lacks = [
            (self.moved > 0 && self.migrations == 0, "migrations (sched_migrate_task)"),
            (self.new > 0 && self.forks == 0, "forks (sched_process_fork)"),
            (self.forks > 0 && self.new == 0, "the first wakeups of new tasks (sched_wakeup_new)"),
            (self.dead > 0 && self.exits == 0, "exits (sched_process_exit)"),
        ];
        lacks.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
    }
}

/// A CPU up to the first run that has its run time.
#[derive(Default)]
struct Beginning {
    unaccounted: u64,
    /// When the last of these ended.
    until: Nanos,
    over: bool,
}

impl Needs {
    pub fn note(&mut self, record: &Record<'_>) {
        self.lives.note(record);
        let Body::Event(kind, _) = record.body else { return };
        self.flags |= record.flags != Flags::NONE;
        self.begun.get_or_insert(record.time);
        match kind {
            Kind::Runtime { pid, vruntime, .. } => {
                self.prints |= vruntime.is_some();
                self.accounted.insert(pid);
            }
            Kind::Waking { .. } => self.wakings += 1,
            Kind::Wakeup { .. } => self.wakeups += 1,
            Kind::Switch { prev, prev_prio, .. } => {
                self.switches += 1;
                let accounted = self.accounted.remove(&prev);
                if prev != 0 && (100..140).contains(&prev_prio) {
                    self.runs += 1;
                    self.unaccounted += u64::from(!accounted);
                    self.beginnings.entry(record.cpu).or_default().end_run(accounted, record.time);
                }
            }
            _ => {}
        }
    }

    /// What the trace lacks, in words. `unannounced`: changes of nice values and classes that neither a call nor a
    /// probe announced.
    pub fn missing(&self, header: &Header, unannounced: u64) -> Vec<String> {
        let mut missing = Vec::new();
        let mut lacks = |lacks: bool, what: &str| missing.extend(lacks.then(|| what.to_owned()));
        lacks(self.switches == 0, "switches (sched_switch)");
        lacks(self.runs > 0 && self.unaccounted == self.runs, "run times (sched_stat_runtime)");
        let woken = self.wakings + self.wakeups > 0;
        lacks(self.lives.returned > 0 && !woken, "wakeups (sched_waking, sched_wakeup)");
        lacks(self.wakeups > 0 && self.wakings == 0, "the beginnings of wakeups (sched_waking)");
        self.lives.missing().for_each(|what| lacks(true, what));
        lacks(self.switches > 0 && !self.flags, "the context of events (need-resched, interrupts)");
        if (1..self.runs).contains(&self.unaccounted) && self.unaccounted * SPARE > self.runs {
            missing.push(format!("the run times of {} of {} runs (sched_stat_runtime)", self.unaccounted, self.runs));
        }
        let late = self.beginnings.values().filter(|cpu| cpu.over && cpu.unaccounted > 1).map(|cpu| cpu.until).max();
        if let Some(until) = late {
            let span = until.saturating_sub(self.begun.unwrap_or(until)) as f64 / MSEC as f64;
            missing.push(format!("the run times of the first {span:.1} ms (sched_stat_runtime)"));
        }
        missing.extend(settings(header).map(str::to_owned));
        if unannounced > 0 && !self.prints {
            missing.push(format!(
                "what changed {unannounced} priorities, which only later records show (calls or probes of setpriority and sched_setscheduler)"
            ));
        }
        missing.extend(header.get("untraced").map(str::to_owned));
        missing
    }
}

impl Beginning {
    /// A run ended. The first one on a CPU may have been charged before the recording began.
    fn end_run(&mut self, accounted: bool, now: Nanos) {
        self.over |= accounted;
        if !self.over {
            self.unaccounted += 1;
            self.until = now;
        }
    }
}

/// Which settings of the kernel the header does not have. The recorder lists the scheduler's sysctls: a kernel without
/// CONFIG_SCHED_AUTOGROUP has none for sessions, and one without CONFIG_SCHED_DEBUG no features that could differ.
fn settings(header: &Header) -> Option<&'static str> {
    let any = |wanted: fn(&str) -> bool| header.comments.iter().any(|line| wanted(line));
    if header.get("simulated").is_some()
        || any(|line| line.starts_with("sched_") && !line.starts_with("sched_features"))
    {
        return None;
    }
    Some(match any(|line| line.starts_with("features ") || line.starts_with("sched_features ")) {
        true => "whether sessions are groups (sched_autogroup_enabled) in its header",
        false => "the settings of the kernel (features, autogroup) in its header",
    })
}
