//! What queues told their groups (`tg_load_avg_contrib`) and what groups know (`tg->load_avg`), as the probes that come next
//! show it.
//!
//! A queue tells at most once in a millisecond of `sched_clock_cpu`, and reads what others told without a lock: neither shows in
//! any record. Both are inputs for that, as clocks are.

use schedlab_model::{CpuId, Pid};
use schedlab_trace::Kind;

use super::ahead::group_ahead;
use super::Reading;
use crate::operation::{Operation, Told};
use crate::step::{Address, Point, Step, What};
use crate::window::Window;

impl Reading {
    /// The groups of those whom a record is about, and of whoever runs there.
    pub(super) fn tell_groups(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) {
        if self.shown_in.is_empty() {
            return;
        }
        let (pids, cpus) = match kind {
            Kind::Runtime { pid, .. } => ([pid, pid], [step.cpu, step.cpu]),
            Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => {
                ([pid, self.current(target_cpu).unwrap_or(pid)], [target_cpu, target_cpu])
            }
            Kind::Switch { prev, next, .. } => ([prev, next], [step.cpu, step.cpu]),
            Kind::Migrate { pid, orig_cpu, dest_cpu, .. } => ([pid, pid], [orig_cpu, dest_cpu]),
            _ => return,
        };
        let mut told: Vec<(u64, CpuId)> = Vec::new();
        for pid in pids.into_iter().filter(|pid| *pid != 0) {
            for address in self.addresses(pid, ahead) {
                for cpu in cpus {
                    if !told.contains(&(address, cpu)) {
                        told.push((address, cpu));
                        self.tell_group(step, address, cpu, ahead);
                    }
                }
            }
        }
    }

    /// One group on one CPU.
    pub(super) fn tell_group(&mut self, step: &Step, group: u64, cpu: CpuId, ahead: &Window<'_>) {
        let told = told_ahead(step, group, cpu, ahead);
        if told != Told::default() {
            self.push(Operation::Told { cpu, group, told });
        }
    }

    /// The group that a task was in when it was last shown, and where it is next.
    fn addresses(&self, pid: Pid, ahead: &Window<'_>) -> Vec<u64> {
        let is_group = |address: &Address| !address.is_root;
        let both = self.shown_in.get(&pid).copied().into_iter().chain(group_ahead(pid, ahead));
        let mut found: Vec<u64> = both.filter(is_group).map(|address| address.at).collect();
        found.dedup();
        found
    }
}

/// What a group's queue on a CPU has told, and what the group knows, once this record's operation is over.
fn told_ahead(step: &Step, group: u64, cpu: CpuId, ahead: &Window<'_>) -> Told {
    let (mut found, mut over) = (Told::default(), false);
    let mut woken = woken_on(step);
    for next in ahead.ahead() {
        over |= next.cpu == step.cpu && !next.is_inside();
        woken = woken_on(next).or(woken);
        let Some((_, on, of)) = shown(next, woken).filter(|(at, ..)| *at == group) else { continue };
        // Within the operation it is read before it is told; another CPU's code that has the queue comes after.
        let after = if next.cpu == step.cpu { ends(next) } else { on == Some(cpu) };
        if !(over || after) {
            continue;
        }
        if on == Some(cpu) {
            found.told.get_or_insert(of.0);
            found.weighs = weighs(next);
        }
        found.all.get_or_insert(of.1);
        if found.weighs.is_some() {
            break;
        }
    }
    found
}

fn weighs(step: &Step) -> Option<(u64, u64)> {
    match step.what {
        What::Probe(probe) => probe.group.map(|group| (group.load, group.weight)),
        _ => None,
    }
}

fn ends(step: &Step) -> bool {
    matches!(step.what, What::Probe(probe) if matches!(probe.point, Point::Woken | Point::Next))
}

/// The group that a record shows, the CPU of its queue, what that told and what the group knows.
fn shown(step: &Step, woken: Option<(Pid, CpuId)>) -> Option<(u64, Option<CpuId>, (u64, i64))> {
    match step.what {
        What::Aged { cpu, state: Some(state), .. } => Some((state.group.at, Some(cpu), (state.told, state.all))),
        What::Probe(probe) => {
            let (address, group) = (probe.address?, probe.group?);
            let on = match probe.point {
                Point::Woken => woken.filter(|(pid, _)| *pid == probe.pid).map(|(_, cpu)| cpu),
                Point::Next => Some(step.cpu),
                _ => (step.pid == probe.pid).then_some(step.cpu),
            };
            Some((address.at, on, (group.told, group.all)))
        }
        _ => None,
    }
}

fn woken_on(step: &Step) -> Option<(Pid, CpuId)> {
    match step.kind()? {
        Kind::Wakeup { pid, target_cpu, .. } | Kind::WakeupNew { pid, target_cpu, .. } => Some((pid, target_cpu)),
        _ => None,
    }
}
