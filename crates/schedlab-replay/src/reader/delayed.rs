//! A task whose dequeue was delayed when the recording began.
//!
//! If the pick dequeues it later, no record shows that: the first that names it is a wakeup from sleep. But until then
//! the queue has one entity more than the records account for, with this task's share in the weighted sum:
//!
//! ```text
//! sum - sum of (v_i - zero) w_i over the tasks known to wait = (v - zero) w, and likewise for the sum of weights
//! ```
//!
//! where v is what the task still shows at that wakeup.

use std::collections::BTreeSet;

use schedlab_model::{CpuId, Pid};
use schedlab_policy::weight::{LoadWeight, FIXEDPOINT_SHIFT};
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::first::{first_state, prio_ahead};
use super::task::{is_fair, nice, Place, Task};
use super::Reader;
use crate::operation::{First, Location, NewTask, Operation, Weight};
use crate::trace::{Entry, LookAhead, Point, Probe, Sums, What, Window};

impl Reader {
    pub(super) fn add_delayed_task(&mut self, prio: i32, probe: Probe, cpu: CpuId) {
        let weight = Weight::Nice(nice(prio));
        self.tasks.insert(probe.pid, Task { taken: true, ..Task::new(prio, weight, Place::Off(cpu)) });
        let first = Some(First::Probed { probe, ran: 0 });
        self.push(Operation::AddTask(NewTask {
            pid: probe.pid,
            weight,
            at: Location::Queued(cpu),
            group: None,
            first,
        }));
    }
}

/// That task on the CPU of the first record, with its priority and its state. `queued`: the tasks that were queued
/// there.
pub fn delayed_task(now: &Entry, queued: &[(Pid, CpuId)], ahead: &Window<'_>) -> Option<(i32, Probe)> {
    let sums = first_sums(now, ahead)?;
    if sums.count as usize != queued.len() + 2 {
        return None;
    }
    let mut waiting = Vec::new();
    for (pid, _) in queued {
        let Some(First::Probed { probe, ran: 0 }) = first_state(*pid, None, ahead) else { return None };
        waiting.push((prio_ahead(*pid, Some(now), ahead)?, probe.vruntime));
    }
    sleepers(now, ahead).into_iter().find(|(prio, probe)| {
        let all = || waiting.iter().copied().chain([(*prio, probe.vruntime)]);
        [0, FIXEDPOINT_SHIFT].into_iter().any(|shift| is_sum_of(sums, all(), shift))
    })
}

/// Whether the sums of a queue are those of these tasks, given by priority and vruntime. From 7.1 on weights are scaled
/// up by `shift`.
fn is_sum_of(sums: Sums, mut tasks: impl Iterator<Item = (i32, u64)>, shift: u32) -> bool {
    let (sum, weight) = tasks.by_ref().fold((0i64, 0u64), |(sum, total), (prio, vruntime)| {
        let weight = LoadWeight::of_task(nice(prio), FairPolicy::Normal).scaled() << shift;
        let key = vruntime.wrapping_sub(sums.zero) as i64;
        (sum.wrapping_add(key.wrapping_mul(weight as i64)), total + weight)
    });
    (sum, weight) == (sums.sum, sums.weight)
}

/// The sums of the CPU's queue as the first record with a probe shows them, if the queue has not changed before.
fn first_sums(now: &Entry, ahead: &Window<'_>) -> Option<Sums> {
    let own = ahead.look(LookAhead::InitialTasks).filter(|entry| entry.cpu == now.cpu);
    for entry in [now].into_iter().chain(own) {
        match entry.what {
            What::Event(Kind::Runtime { .. } | Kind::Fork { .. } | Kind::Waking { .. }) => {}
            What::Event(_) => return None,
            What::Probe(probe) if probe.point == Point::Runtime => return probe.sums,
            _ => {}
        }
    }
    None
}

/// Tasks of the fair class whose first record is a wakeup on this CPU that finds them asleep.
fn sleepers(now: &Entry, ahead: &Window<'_>) -> Vec<(i32, Probe)> {
    let (mut named, mut waking, mut found) = (BTreeSet::from([0, now.pid]), None, Vec::new());
    for entry in ahead.look(LookAhead::InitialTasks) {
        named.insert(entry.pid);
        match entry.what {
            What::Event(Kind::Waking { pid, prio, target_cpu }) => {
                let first = named.insert(pid) && target_cpu == now.cpu && is_fair(prio);
                waking = first.then_some((pid, prio));
            }
            What::Probe(probe) if probe.point == Point::Waking && !probe.queued => {
                let of = waking.take().filter(|(pid, _)| *pid == probe.pid);
                found.extend(of.map(|(_, prio)| (prio, Probe { queued: true, delayed: true, ..probe })));
            }
            What::Event(Kind::Switch { prev, next, .. }) => named.extend([prev, next]),
            What::Event(
                Kind::Migrate { pid, .. }
                | Kind::Runtime { pid, .. }
                | Kind::Fork { child: pid, .. }
                | Kind::Wakeup { pid, .. }
                | Kind::WakeupNew { pid, .. },
            ) => drop(named.insert(pid)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::operations;
    use crate::operation::{First, Location, Operation};

    /// A task whose share the queue's sums miss was there, delayed, although its first record finds it asleep.
    #[test]
    fn a_task_that_was_delayed_at_the_start_is_found_by_its_share_in_the_sums() {
        for (vruntime, sums, found) in [
            (300, "z=100 a=204800 w=1024 n=2", true),
            (300, "z=100 a=209715200 w=1048576 n=2", true),
            (301, "z=100 a=204800 w=1024 n=2", false),
            (300, "z=100 a=204800 w=820 n=2", false),
            (300, "z=100 a=204800 w=1024 n=3", false),
            (300, "z=100 a=0 w=0 n=1", false),
        ] {
            let text = format!(
                "a-1 [000] d..2. 0.000010: sched_stat_runtime: comm=a pid=1 runtime=10000 [ns]
                a-1 [000] d..3. 0.000011: rt: (x+0x4/0x10) p=1 v=0 d=1 l=0 on=1 sd=0 s=1 {sums} c=1
                a-1 [000] d..2. 0.000020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
                <idle>-0 [000] d.h2. 0.000030: sched_waking: comm=c pid=3 prio=120 target_cpu=000
                <idle>-0 [000] d.h3. 0.000031: wg: (x+0x4/0x10) p=3 v={vruntime} d=900 l=0 on=0 sd=0 s=1 z=100 a=0 w=0 n=0"
            );
            let delayed = |operation: &Operation| match operation {
                Operation::AddTask(task) if task.pid == 3 && matches!(task.at, Location::Queued(_)) => {
                    matches!(task.first, Some(First::Probed { probe, .. }) if probe.delayed && probe.queued)
                }
                _ => false,
            };
            assert_eq!(operations("6.12.107", &text).iter().any(delayed), found, "{vruntime} {sums}");
        }
    }
}
