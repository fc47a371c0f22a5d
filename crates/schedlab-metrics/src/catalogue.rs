//! The metrics of the scheduler that every run has, one table row each: name, unit, direction, meaning, reducer.

use schedlab_model::Nanos;
use schedlab_trace::{Call, Extension, Lock, Section};
use schedlab_workload::{Better, Unit};

use crate::state::Totals;
use crate::{Cause, Histogram, Metrics};

/// A metric of the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct SchedMetric {
    /// Its full name without the statistic: `sched.NAME`.
    pub name: &'static str,
    /// Statistics judged by default; empty for a metric that is a single number.
    pub stats: &'static [&'static str],
    /// The displayed unit.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// What it means, one line.
    pub help: &'static str,
    /// How its value is read from the reduction of a run.
    pub(crate) reducer: Reducer,
}

/// Reads a metric's value from the state of the reduction at the end of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reducer {
    /// A histogram of durations in ns.
    Distribution(fn(&Metrics) -> &Histogram),
    /// A count of events.
    Count(fn(&Totals) -> u64),
    /// The longest duration in ns; `None` if there was none.
    Longest(fn(&Totals) -> Nanos),
    /// A mean; `None` if there was nothing to average.
    Mean(fn(&Totals) -> Option<f64>),
    /// CPU time in ns, shown as a share of the CPU time of all CPUs.
    CpuTime(fn(&Metrics) -> Nanos),
    /// CPU time in ns, displayed as the remaining share of the time spent in tasks; `None` if no task ran.
    RestOfBusy(fn(&Metrics) -> Nanos),
}

/// Every metric of the scheduler. Those with a distribution exist under every statistic of [`crate::Stat::ALL`].
#[must_use]
pub fn sched_metrics() -> &'static [SchedMetric] {
    &SCHED
}

const fn sampled(
    name: &'static str,
    stats: &'static [&'static str],
    better: Better,
    help: &'static str,
    histogram: fn(&Metrics) -> &Histogram,
) -> SchedMetric {
    SchedMetric { name, stats, unit: Unit::Microseconds, better, help, reducer: Reducer::Distribution(histogram) }
}

const fn count(name: &'static str, help: &'static str, of: fn(&Totals) -> u64) -> SchedMetric {
    SchedMetric { name, stats: &[], unit: Unit::Count, better: Neither, help, reducer: Reducer::Count(of) }
}

const fn longest(name: &'static str, help: &'static str, of: fn(&Totals) -> Nanos) -> SchedMetric {
    SchedMetric { name, stats: &[], unit: Unit::Microseconds, better: Lower, help, reducer: Reducer::Longest(of) }
}

const fn mean(name: &'static str, help: &'static str, of: fn(&Totals) -> Option<f64>) -> SchedMetric {
    SchedMetric { name, stats: &[], unit: Unit::Count, better: Neither, help, reducer: Reducer::Mean(of) }
}

const fn share(name: &'static str, better: Better, help: &'static str, of: fn(&Metrics) -> Nanos) -> SchedMetric {
    SchedMetric { name, stats: &[], unit: Unit::Percent, better, help, reducer: Reducer::CpuTime(of) }
}

use Better::{Higher, Lower, Neither};

#[rustfmt::skip]
static SCHED: [SchedMetric; 69] = [
    sampled("sched.wakeup_latency", &["p50", "p99", "max"], Lower, "from sched_waking until the task runs", |m| &m.wakeup_latency),
    sampled("sched.run_delay", &["mean", "p99"], Lower, "one wait on a runqueue, after a wakeup, a fork or a preemption", |m| &m.run_delay),
    sampled("sched.run_time", &["mean"], Neither, "from a switch to a task until the switch away from it", |m| &m.run_time),
    count("sched.switches", "context switches of all CPUs, including those to and from idle", |t| t.switches),
    count("sched.voluntary_switches", "switches away from a task that slept", |t| t.voluntary),
    count("sched.involuntary_switches", "switches away from a task that was still runnable", |t| t.involuntary),
    count("sched.wakeups", "wakeups of sleeping tasks", |t| t.wakeups),
    count("sched.forks", "tasks created", |t| t.forks),
    count("sched.migrations", "tasks moved to another CPU", |t| t.migrations),
    share("sched.cpu_busy", Neither, "CPU time spent in tasks", Metrics::busy_ns),
    share("sched.housekeeping", Neither, "CPU time spent in the kernel's periodic threads", Metrics::housekeeping_ns),
    share("sched.idle_while_runnable", Lower, "CPU time idle while a task waited on another runqueue", |m| m.idle.lost().iter().sum()),
    share("sched.idle_while_runnable.wakeup", Lower, "the part that began with a wakeup placed on a busy CPU", |m| m.idle.lost()[Cause::Wakeup as usize]),
    share("sched.idle_while_runnable.fork", Lower, "the part that began with a new task placed on a busy CPU", |m| m.idle.lost()[Cause::Fork as usize]),
    share("sched.idle_while_runnable.newidle", Lower, "the part that began with a CPU that went idle", |m| m.idle.lost()[Cause::Newidle as usize]),
    share("sched.idle_while_runnable.preempt", Lower, "the part that began with a preempted task left on its runqueue", |m| m.idle.lost()[Cause::Preempt as usize]),
    share("sched.idle_while_runnable.migrate", Lower, "the part that began with a migration to a busy CPU", |m| m.idle.lost()[Cause::Migrate as usize]),
    mean("sched.scan_tested", "CPUs tested per search for an idle CPU, mean", |t| (t.scans > 0).then(|| t.scan_tested as f64 / t.scans as f64)),
    sampled("sched.select_idle_sibling", &["mean", "p99"], Lower, "one search for an idle CPU at a wakeup that tested any CPU", |m| &m.searches.sibling),
    sampled("sched.select_idle_core", &["mean", "p99"], Lower, "the part of one search that looked for an idle core", |m| &m.searches.core),
    sampled("sched.select_idle_cpu", &["mean", "p99"], Lower, "the part of one search that looked for an idle CPU of the cache; from 5.12 on that for an idle core included", |m| &m.searches.cpu),
    sampled("sched.select_idle_smt", &["mean", "p99"], Lower, "the part of one search that looked for an idle thread of one core", |m| &m.searches.smt),
    sampled("sched.resched_delay", &["p50", "p99", "max"], Lower, "from a request to reschedule a running task until it is switched out", |m| &m.resched_delay),
    sampled("sched.resched_delay.user", &["p99", "max"], Lower, "the same of tasks that were in user mode at the request", |m| &m.resched_delay_in[0]),
    sampled("sched.resched_delay.kernel", &["p99", "max"], Lower, "the same of tasks that were in preemptible kernel code", |m| &m.resched_delay_in[1]),
    sampled("sched.resched_delay.spinlock", &["p99", "max"], Lower, "the same of tasks that were under a spinlock in the kernel", |m| &m.resched_delay_in[2]),
    sampled("sched.resched_delay.preempt_off", &["p99", "max"], Lower, "the same of tasks that had preemption disabled", |m| &m.resched_delay_in[3]),
    sampled("sched.resched_delay.irq_off", &["p99", "max"], Lower, "the same of tasks that had interrupts disabled", |m| &m.resched_delay_in[4]),
    longest("sched.longest_section", "the longest section of kernel code in which a task could not be preempted", |t| t.longest.of.into_iter().max().unwrap_or(0)),
    longest("sched.longest_section.unchecked", "the longest of them without a check point, under none and voluntary", |t| t.longest.of[Section::Kernel as usize]),
    longest("sched.longest_section.spinlock", "the longest of them under a spinlock", |t| t.longest.of[Section::Spinlock as usize]),
    longest("sched.longest_section.preempt_off", "the longest of them with preemption disabled", |t| t.longest.of[Section::PreemptOff as usize]),
    longest("sched.longest_section.irq_off", "the longest of them with interrupts disabled", |t| t.longest.of[Section::IrqOff as usize]),
    longest("sched.longest_section.pipe_read", "the same within a read of a pipe", |t| t.longest.within[Call::PipeRead as usize]),
    longest("sched.longest_section.pipe_write", "the same within a write to a pipe", |t| t.longest.within[Call::PipeWrite as usize]),
    longest("sched.longest_section.socket_receive", "the same within a read of a stream socket", |t| t.longest.within[Call::SocketReceive as usize]),
    longest("sched.longest_section.socket_send", "the same within a write to a stream socket", |t| t.longest.within[Call::SocketSend as usize]),
    longest("sched.longest_section.futex_wake", "the same within FUTEX_WAKE", |t| t.longest.within[Call::FutexWake as usize]),
    longest("sched.longest_section.futex_wait", "the same within FUTEX_WAIT", |t| t.longest.within[Call::FutexWait as usize]),
    longest("sched.longest_section.fault", "the same within a fault that maps a page", |t| t.longest.within[Call::Fault as usize]),
    longest("sched.longest_section.fault_clear", "the same within a fault that allocates and clears a page", |t| t.longest.within[Call::FaultClear as usize]),
    longest("sched.longest_section.fork", "the same within fork of a process", |t| t.longest.within[Call::Fork as usize]),
    longest("sched.longest_section.exec", "the same within execve", |t| t.longest.within[Call::Exec as usize]),
    longest("sched.longest_section.exit", "the same within the exit of a process", |t| t.longest.within[Call::Exit as usize]),
    longest("sched.longest_section.fault_drain", "the same within a fault that also puts a batch of new pages on the lists of reclaim", |t| t.longest.within[Call::FaultDrain as usize]),
    longest("sched.longest_section.free_batch", "the same within the freeing of a batch of pages", |t| t.longest.within[Call::FreeBatch as usize]),
    count("sched.faults", "page faults", |t| t.faults),
    count("sched.major_faults", "page faults that waited for a device", |t| t.major_faults),
    count("sched.slice_extension.granted", "time slice extensions granted instead of a switch", |t| t.extensions[Extension::Granted as usize]),
    count("sched.slice_extension.yielded", "those that ended with the critical section", |t| t.extensions[Extension::Yielded as usize]),
    count("sched.slice_extension.expired", "those whose timer expired first", |t| t.extensions[Extension::Expired as usize]),
    count("sched.slice_extension.revoked", "those ended by another request to reschedule", |t| t.extensions[Extension::Revoked as usize]),
    count("sched.slice_extension.aborted", "those ended by another system call of the task", |t| t.extensions[Extension::Aborted as usize]),
    share("sched.scan_cost", Lower, "CPU time spent in searches for an idle CPU", |m| m.totals.scan_cost_ns),
    share("sched.lock_wait", Lower, "CPU time spent waiting for locks and contended lines", |m| m.totals.lock_wait_ns),
    sampled("sched.lock_wait.rq", &["mean", "p99"], Lower, "one wait for the lock of a runqueue that was held", |m| &m.lock_waits[Lock::Runqueue as usize]),
    sampled("sched.lock_wait.pipe", &["mean", "p99"], Lower, "one wait for the mutex of a pipe that was held", |m| &m.lock_waits[Lock::Pipe as usize]),
    sampled("sched.lock_wait.socket", &["mean", "p99"], Lower, "one wait for a lock of a socket that was held", |m| &m.lock_waits[Lock::Socket as usize]),
    sampled("sched.lock_wait.futex", &["mean", "p99"], Lower, "one wait for the lock of a futex bucket that was held", |m| &m.lock_waits[Lock::Futex as usize]),
    sampled("sched.lock_wait.line", &["mean", "p99"], Lower, "one wait for a line that several CPUs change by atomic operations", |m| &m.lock_waits[Lock::Line as usize]),
    sampled("sched.lock_wait.waitqueue", &["mean", "p99"], Lower, "one wait for the lock of a wait queue that was held", |m| &m.lock_waits[Lock::WaitQueue as usize]),
    sampled("sched.lock_wait.tasklist", &["mean", "p99"], Lower, "one wait for tasklist_lock that was held", |m| &m.lock_waits[Lock::Tasklist as usize]),
    sampled("sched.lock_wait.mmap", &["mean", "p99"], Lower, "one wait for the mmap_lock of a process, spinning or asleep", |m| &m.lock_waits[Lock::Mmap as usize]),
    count("sched.numa_hint_faults", "NUMA hinting faults (`numa_hint_faults` of /proc/vmstat)", |t| t.numa.faults),
    count("sched.numa_hint_faults_local", "those on a page of the CPU's node (`numa_hint_faults_local`)", |t| t.numa.local),
    count("sched.numa_pages_migrated", "pages of 4 KiB that they moved to another node (`numa_pages_migrated`)", |t| t.numa.migrated),
    share("sched.numa_remote", Lower, "CPU time lost because memory is on another node", |m| m.totals.numa.remote_ns),
    share("sched.refill", Lower, "CPU time lost to reloading data that others had evicted", |m| m.totals.refill_ns),
    SchedMetric { name: "sched.warmth", stats: &[], unit: Unit::Percent, better: Higher, help: "instructions per cycle of the tasks, relative to tasks that refill nothing", reducer: Reducer::RestOfBusy(|m| m.totals.refill_ns) },
];
