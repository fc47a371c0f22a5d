//! A balancing pass: what it has read when it begins, and what the records up to its end show of it.

use schedlab_model::{CpuId, CpuMask};
use schedlab_policy::CpuIdle;
use schedlab_trace::Kind;

use super::code::leaves;
use super::task::Place;
use super::Reader;
use crate::operation::{Operation, Pass, Tasks};
use crate::trace::{Entry, LookAhead, PassProbe, PassRecord, TaskAverages, What, Window};

impl Reader {
    pub(super) fn pass(&mut self, entry: &Entry, record: &PassRecord, ahead: &Window<'_>) {
        match record {
            PassRecord::Looks(probe) if !self.cpu(entry.cpu).balances => {
                self.newidle_update(entry, probe, ahead);
                self.begin_pass(entry, probe, ahead);
            }
            PassRecord::Considers { task: Some((pid, _)), averages, .. } => {
                self.saw_jiffies(averages.map(|averages| averages.last_h_load_update), entry.time);
                if self.cpu(entry.cpu).balances {
                    self.push(Operation::CanMigrateTask { pid: *pid });
                }
            }
            PassRecord::Ends => self.cpu(entry.cpu).balances = false,
            _ => {}
        }
    }

    fn begin_pass(&mut self, entry: &Entry, probe: &PassProbe, ahead: &Window<'_>) {
        self.cpu(entry.cpu).balances = true;
        let mut pass = self.new_pass(entry, probe);
        pass.capacity = capacity_shown_of(probe.cpu, ahead);
        // What they enqueue may not be counted yet.
        let unfinished = self.cpus.iter().enumerate().filter(|(nth, _)| *nth != entry.cpu.index());
        pass.overlapped = unfinished.filter_map(|(_, cpu)| cpu.enqueues_on).any(|cpu| pass.considered.has(cpu));
        self.tell_per_cpu_kthreads(ahead);
        let mut ends = false;
        for next in ahead.look(LookAhead::Pass) {
            if next.cpu != entry.cpu {
                pass.overlapped |= changes_queue(next, &pass.considered);
                continue;
            }
            match next.what {
                What::Pass(PassRecord::Found(found)) => pass.found |= found,
                What::Pass(PassRecord::Considers { src, task, loads, averages }) => {
                    if pass.src.replace(src) != Some(src) {
                        (pass.locked_at, pass.src_clock) = (next.time, None);
                    }
                    pass.loads = loads;
                    pass.jiffies = pass.jiffies.or_else(|| jiffies_shown(&pass, averages.as_ref()));
                    if let Some((pid, allowed)) = task {
                        self.push(Operation::CpusAllowed { pid, allowed });
                    }
                    if let Some((averages, (pid, _))) = averages.zip(task) {
                        self.push(Operation::TaskAverages { pid, src, averages });
                    }
                }
                What::Pass(PassRecord::MovedNone { src }) => pass.src = Some(src),
                What::Probe(_) | What::Clock { .. } | What::RqClock { .. } if pass.src_clock.is_none() => {
                    pass.src_clock = pass.src.and_then(|src| self.clock_shown_of(src, next));
                }
                What::Pass(PassRecord::Ends) => ends = true,
                // A wakeup in an interrupt moves tasks that are not queued.
                What::Event(Kind::Migrate { pid, orig_cpu, .. }) if pass.src == Some(orig_cpu) => pass.moved.add(pid),
                _ => {}
            }
            if ends {
                return self.push(Operation::SchedBalanceRq(pass));
            }
        }
    }

    fn new_pass(&self, entry: &Entry, probe: &PassProbe) -> Pass {
        let mut pass = Pass {
            this: probe.cpu,
            idle: probe.idle,
            imbalance_pct: probe.imbalance_pct,
            weight: probe.weight,
            failed: probe.failed,
            considered: probe.considered,
            idle_cpus: self.idle_cpus(),
            others: self.other_class_cpus(),
            others_wait: self.other_class_waits(),
            found: false,
            src: None,
            moved: Tasks::default(),
            loads: false,
            locked_at: entry.time,
            src_clock: None,
            overlapped: false,
            jiffies: probe.jiffies,
            capacity: None,
            marks: probe.marks,
        };
        // `schedule()` balances when it has dequeued the running task, of whatever class, and found no other.
        if pass.idle == CpuIdle::Newly {
            pass.others.clear(pass.this);
            pass.others_wait.clear(pass.this);
        }
        pass
    }

    /// From 7.2 on `sched_balance_newidle` keeps the queue's lock, so it updates the loads of its CPU by the clock of
    /// the dequeue before, without calling `sched_balance_update_blocked_averages`, which older recordings probe.
    fn newidle_update(&mut self, entry: &Entry, probe: &PassProbe, ahead: &Window<'_>) {
        let cpu = entry.cpu;
        if probe.idle != CpuIdle::Newly || probe.cpu != cpu || self.cpu(cpu).updates_blocked || self.shown_in.is_empty()
        {
            return;
        }
        if self.block_leaving(cpu, ahead) {
            self.cpu(cpu).updates_blocked = true;
            self.push(Operation::UpdateBlockedAverages { cpu, at: None });
        }
    }

    /// The running task is dequeued if `schedule()` is about to switch it out because it blocks.
    pub(super) fn block_leaving(&mut self, cpu: CpuId, ahead: &Window<'_>) -> bool {
        let current = self.current(cpu).filter(|_| self.current_is_fair(cpu));
        let state = current.and_then(|current| leaves(cpu, current, false, ahead));
        state.inspect(|state| self.block(cpu, *state)).is_some()
    }

    /// Kernel threads of one CPU are never moved; where no probe shows the CPUs that a task may use, its name does.
    fn tell_per_cpu_kthreads(&mut self, ahead: &Window<'_>) {
        let queued = self.tasks.iter().filter(|(_, task)| !matches!(task.place, Place::Off(_)));
        let threads: Vec<Operation> = queued
            .filter_map(|(pid, _)| {
                let allowed = CpuMask::from_iter([per_cpu_kthread(ahead.name(*pid))?]);
                Some(Operation::CpusAllowed { pid: *pid, allowed })
            })
            .collect();
        self.operations.extend(threads);
    }
}

/// The capacity of a CPU that the next record of its averages shows.
fn capacity_shown_of(of: CpuId, ahead: &Window<'_>) -> Option<u64> {
    ahead.look(LookAhead::Capacity).find_map(|next| match next.what {
        What::CpuAverages { cpu, capacity, .. } if cpu == of => Some(capacity),
        _ => None,
    })
}

/// The tick count, where no probe reads it: a pass that has moved a task by its load has computed `h_load` of the queue
/// in this jiffy.
fn jiffies_shown(pass: &Pass, averages: Option<&TaskAverages>) -> Option<u64> {
    let moved = pass.loads && pass.moved.iter().next().is_some();
    averages.filter(|_| moved).map(|averages| averages.last_h_load_update)
}

/// Whether a record shows that a queue of these CPUs has other tasks, or another one runs.
fn changes_queue(entry: &Entry, cpus: &CpuMask) -> bool {
    match entry.what {
        What::Event(Kind::Switch { .. }) => cpus.has(entry.cpu),
        What::Event(Kind::Wakeup { target_cpu, .. } | Kind::WakeupNew { target_cpu, .. }) => cpus.has(target_cpu),
        What::Event(Kind::Migrate { orig_cpu, dest_cpu, .. }) => cpus.has(orig_cpu) || cpus.has(dest_cpu),
        _ => false,
    }
}

/// Names of per-CPU kernel threads, before the number of their CPU.
const PER_CPU: [&str; 8] = ["ksoftirqd", "kworker", "migration", "cpuhp", "rcuc", "ktimers", "irq_work", "idle_inject"];

/// Per-CPU kernel threads that are forked before their CPU is online (`smpboot_create_threads`); those of CPU 0 are
/// forked when only that one is.
const OF_BOOT: [&str; 3] = ["ksoftirqd", "migration", "cpuhp"];

/// How many CPUs were online when a kernel thread was forked, where its name says so.
pub(super) fn online_at_fork(name: &str) -> Option<usize> {
    let (kind, _) = name.split_once('/')?;
    let cpu = per_cpu_kthread(name).filter(|_| OF_BOOT.contains(&kind))?;
    Some(cpu.index().max(1))
}

/// The CPU of a kernel thread that belongs to one, by its name: `ksoftirqd/1`, `kworker/1:0H`.
pub(super) fn per_cpu_kthread(name: &str) -> Option<CpuId> {
    let (kind, rest) = name.split_once('/')?;
    let cpu = rest.split(':').next()?.parse().ok()?;
    PER_CPU.contains(&kind).then_some(CpuId(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_of_a_cpu_are_forked_before_it_is_online() {
        let of = ["ksoftirqd/0", "ksoftirqd/1", "migration/3", "kworker/3:1", "rcu_preempt", "hackbench"];
        assert_eq!(of.map(online_at_fork), [Some(1), Some(1), Some(3), None, None, None]);
    }

    #[test]
    fn a_kernel_thread_names_its_cpu() {
        for (name, cpu) in [
            ("ksoftirqd/1", Some(1)),
            ("kworker/12:0H", Some(12)),
            ("kworker/3:1-events", Some(3)),
            ("kworker/u8:2", None),
            ("rcu_preempt", None),
            ("hackbench", None),
            ("a/1", None),
        ] {
            assert_eq!(per_cpu_kthread(name), cpu.map(CpuId), "{name}");
        }
    }
}
