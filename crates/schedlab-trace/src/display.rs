//! One event as a line of text for display: the tracepoint's name and fields, without task names.

use std::fmt;

use crate::{Call, Event, Kind, ScanTimes, TaskState};

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.time / 1_000_000_000, self.time % 1_000_000_000);
        write!(f, "{seconds}.{ns:09} [{:03}] {}", self.cpu.0, self.kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::Switch { prev, prev_prio, prev_state, next, next_prio } => write!(
                f,
                "sched_switch: prev_pid={prev} prev_prio={prev_prio} prev_state={prev_state} ==> next_pid={next} next_prio={next_prio}"
            ),
            Kind::Waking { pid, prio, target_cpu } => {
                write!(f, "sched_waking: pid={pid} prio={prio} target_cpu={:03}", target_cpu.0)
            }
            Kind::Wakeup { pid, prio, target_cpu } => {
                write!(f, "sched_wakeup: pid={pid} prio={prio} target_cpu={:03}", target_cpu.0)
            }
            Kind::WakeupNew { pid, prio, target_cpu } => {
                write!(f, "sched_wakeup_new: pid={pid} prio={prio} target_cpu={:03}", target_cpu.0)
            }
            Kind::Migrate { pid, prio, orig_cpu, dest_cpu } => {
                write!(f, "sched_migrate_task: pid={pid} prio={prio} orig_cpu={} dest_cpu={}", orig_cpu.0, dest_cpu.0)
            }
            Kind::Fork { parent, child } => write!(f, "sched_process_fork: pid={parent} child_pid={child}"),
            Kind::Exit { pid, prio } => write!(f, "sched_process_exit: pid={pid} prio={prio}"),
            Kind::Runtime { pid, runtime, vruntime: None } => {
                write!(f, "sched_stat_runtime: pid={pid} runtime={runtime} [ns]")
            }
            Kind::Runtime { pid, runtime, vruntime: Some(vruntime) } => {
                write!(f, "sched_stat_runtime: pid={pid} runtime={runtime} [ns] vruntime={vruntime} [ns]")
            }
            Kind::Sample { pid, metric, value } => write!(f, "schedlab_sample: pid={pid} metric={metric} value={value}"),
            Kind::Count { pid, metric, count } => write!(f, "schedlab_count: pid={pid} metric={metric} count={count}"),
            Kind::Scan { pid, tested, cost, functions: ScanTimes { sibling, core, cpu, smt } } => write!(
                f,
                "schedlab_scan: pid={pid} tested={tested} cost={cost} [ns] sibling={} core={core} cpu={cpu} smt={smt}",
                u8::from(sibling)
            ),
            Kind::Fault { pid, kib, major } => {
                write!(f, "schedlab_fault: pid={pid} kib={kib} major={}", u8::from(major))
            }
            Kind::Resched { pid, waited, section } => {
                write!(f, "schedlab_resched: pid={pid} waited={waited} [ns] section={}", section.name())
            }
            Kind::NonPreemptible { pid, time, section, call } => write!(
                f,
                "schedlab_nonpreemptible: pid={pid} time={time} [ns] section={} call={}",
                section.name(),
                call.map_or("-", Call::name)
            ),
            Kind::Extension { pid, what } => write!(f, "schedlab_extension: pid={pid} what={}", what.name()),
            Kind::Refill { pid, kib, time } => write!(f, "schedlab_refill: pid={pid} kib={kib} time={time} [ns]"),
            Kind::Numa { pid, faults, local, migrated, time } => write!(
                f,
                "schedlab_numa: pid={pid} faults={faults} local={local} migrated={migrated} time={time} [ns]"
            ),
            Kind::LockWait { pid, lock, wait } => {
                write!(f, "schedlab_lock: pid={pid} lock={} wait={wait} [ns]", lock as u8)
            }
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.letter())
    }
}

impl TaskState {
    /// The kernel's letter for it.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            TaskState::Running => "R",
            TaskState::Sleeping => "S",
            TaskState::Blocked => "D",
            TaskState::Dead => "X",
            TaskState::Stopped => "T",
            TaskState::Parked => "I",
        }
    }
}
