//! The events of one bundle, full and compact ones together, in time order.

use std::collections::VecDeque;

use prost::Message;
use schedlab_model::{CpuId, Pid, MAX_CPUS};

use super::message::*;
use super::HEADER_EVENT;
use crate::item::{Item, What};
use crate::state::StateBits;
use crate::tracepoint::LOST_EVENT;
use crate::{Flags, Kind};

/// One event of a bundle.
#[derive(Clone, PartialEq, Debug)]
pub struct Draft {
    pub item: Item,
    pub compact: Compact,
}

/// What a compact event leaves out.
#[derive(Clone, PartialEq, Debug)]
pub enum Compact {
    /// Nothing: it is a full event.
    No,
    /// A switch: its state bits and the next task, but not the previous one.
    Switch(i64, Running),
    /// A wakeup without the task that made it.
    Waking,
}

/// A task on a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Running {
    pub pid: Pid,
    pub prio: i32,
    pub comm: String,
}

/// How the events of a trace are to be read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// The bits of `prev_state` of the recorded kernel.
    pub states: StateBits,
    /// No `sched_process_fork` was recorded: `task_newtask` stands for it.
    pub newtask_forks: bool,
}

/// Splits a bundle into its events. The error says what is wrong with it.
pub fn expand(bundle: FtraceEventBundle, reading: &Reading) -> Result<VecDeque<Draft>, String> {
    let on = cpu(bundle.cpu.map(|cpu| cpu as i32))?;
    let mut drafts = Vec::with_capacity(bundle.event.len());
    for event in &bundle.event {
        let event = FtraceEvent::decode(&event[..]).map_err(|error| format!("an event: {error}"))?;
        drafts.extend(full(on, event, reading)?.map(|item| Draft { item, compact: Compact::No }));
    }
    if let Some(compact) = &bundle.compact_sched {
        switches(on, compact, &mut drafts)?;
        wakings(on, compact, &mut drafts)?;
    }
    drafts.sort_by_key(|draft| draft.item.time);
    let counted = drafts.iter().any(|draft| matches!(draft.item.what, What::Lost(_)));
    if let (Some(true), false, Some(time)) = (bundle.lost_events, counted, bundle.first_time()) {
        let item = Item { time, cpu: on, pid: 0, flags: Flags::NONE, what: What::Lost(1) };
        drafts.insert(0, Draft { item, compact: Compact::No });
    }
    Ok(drafts.into())
}

impl Draft {
    /// Makes a compact switch a full one. False if it is not known what ran before it.
    pub fn complete(&mut self, running: Option<&Running>, states: &StateBits) -> bool {
        let Compact::Switch(bits, next) = &self.compact else { return true };
        let Some(prev) = running else { return false };
        let (prev_state, letters) = states.state(*bits);
        self.item.pid = prev.pid;
        let kind =
            Kind::Switch { prev: prev.pid, prev_prio: prev.prio, prev_state, next: next.pid, next_prio: next.prio };
        let (comm, other_comm) = (prev.comm.clone(), next.comm.clone());
        self.item.what = What::Event { kind, comm, other_comm, prev_state: letters };
        true
    }

    /// The task that runs after this event, if it is a switch.
    pub fn switched_to(&self) -> Option<Running> {
        match (&self.compact, &self.item.what) {
            (Compact::Switch(_, next), _) => Some(next.clone()),
            (_, What::Event { kind: Kind::Switch { next, next_prio, .. }, other_comm, .. }) => {
                Some(Running { pid: *next, prio: *next_prio, comm: other_comm.clone() })
            }
            _ => None,
        }
    }
}

/// An event with a message of its own, or a generic one; `None` for kinds this crate does not read.
fn full(on: CpuId, event: FtraceEvent, reading: &Reading) -> Result<Option<Item>, String> {
    let time = event.timestamp.unwrap_or(0);
    let pid = event.pid.and_then(|pid| Pid::try_from(pid).ok()).unwrap_or(0);
    let flags = Flags::of_bits(event.common_flags.unwrap_or(0) as u8, 0);
    let one = |kind, comm: Option<String>| What::one(kind, comm.unwrap_or_default());
    let what = if let Some(switch) = event.sched_switch {
        full_switch(switch, &reading.states)
    } else if let Some(new) = event.task_newtask {
        new_task(pid, new, reading.newtask_forks)
    } else if let Some(fork) = event.sched_process_fork {
        let kind = Kind::Fork { parent: fork.parent_pid.unwrap_or(0), child: fork.child_pid.unwrap_or(0) };
        let (comm, other_comm) = (fork.parent_comm.unwrap_or_default(), fork.child_comm.unwrap_or_default());
        What::Event { kind, comm, other_comm, prev_state: String::new() }
    } else if let Some(m) = event.sched_waking {
        let (pid, prio, target_cpu) = wakee(&m)?;
        one(Kind::Waking { pid, prio, target_cpu }, m.comm)
    } else if let Some(m) = event.sched_wakeup {
        let (pid, prio, target_cpu) = wakee(&m)?;
        one(Kind::Wakeup { pid, prio, target_cpu }, m.comm)
    } else if let Some(m) = event.sched_wakeup_new {
        let (pid, prio, target_cpu) = wakee(&m)?;
        one(Kind::WakeupNew { pid, prio, target_cpu }, m.comm)
    } else if let Some(m) = event.sched_migrate_task {
        let (orig_cpu, dest_cpu) = (cpu(m.orig_cpu)?, cpu(m.dest_cpu)?);
        let (pid, prio) = (m.pid.unwrap_or(0), m.prio.unwrap_or(0));
        one(Kind::Migrate { pid, prio, orig_cpu, dest_cpu }, m.comm)
    } else if let Some(m) = event.sched_process_exit {
        one(Kind::Exit { pid: m.pid.unwrap_or(0), prio: m.prio.unwrap_or(0) }, m.comm)
    } else if let Some(generic) = event.generic.filter(|generic| generic.event_name.as_deref() != Some(HEADER_EVENT)) {
        text(generic)
    } else {
        return Ok(None);
    };
    Ok(Some(Item { time, cpu: on, pid, flags, what }))
}

/// A new task; the name it begins with is its parent's.
fn new_task(parent: Pid, new: TaskNewtask, forks: bool) -> What {
    let (child, comm) = (new.pid.unwrap_or(0), new.comm.unwrap_or_default());
    if forks {
        let kind = Kind::Fork { parent, child };
        return What::Event { kind, comm: comm.clone(), other_comm: comm, prev_state: String::new() };
    }
    let (flags, score) = (new.clone_flags.unwrap_or(0), new.oom_score_adj.unwrap_or(0));
    let fields = format!("pid={child} comm={comm} clone_flags={flags:x} oom_score_adj={score}");
    What::Text { name: "task_newtask".to_owned(), fields }
}

fn full_switch(switch: SchedSwitch, states: &StateBits) -> What {
    let (prev_state, letters) = states.state(switch.prev_state.unwrap_or(0));
    let kind = Kind::Switch {
        prev: switch.prev_pid.unwrap_or(0),
        prev_prio: switch.prev_prio.unwrap_or(0),
        prev_state,
        next: switch.next_pid.unwrap_or(0),
        next_prio: switch.next_prio.unwrap_or(0),
    };
    let (comm, other_comm) = (switch.prev_comm.unwrap_or_default(), switch.next_comm.unwrap_or_default());
    What::Event { kind, comm, other_comm, prev_state: letters }
}

fn wakee(message: &SchedWakeup) -> Result<(Pid, i32, CpuId), String> {
    Ok((message.pid.unwrap_or(0), message.prio.unwrap_or(0), cpu(message.target_cpu)?))
}

fn cpu(number: Option<i32>) -> Result<CpuId, String> {
    let number = number.unwrap_or(0);
    match u32::try_from(number) {
        Ok(cpu) if (cpu as usize) < MAX_CPUS => Ok(CpuId(cpu)),
        _ => Err(format!("CPU {number}, which no kernel has")),
    }
}

fn text(generic: Generic) -> What {
    if generic.event_name.as_deref() == Some(LOST_EVENT) {
        return What::Lost(generic.field.iter().find_map(|field| field.uint_value).unwrap_or(1));
    }
    let value = |field: &GenericField| match (&field.str_value, field.int_value, field.uint_value) {
        (Some(text), _, _) => text.clone(),
        (_, Some(number), _) => number.to_string(),
        (_, _, number) => number.unwrap_or(0).to_string(),
    };
    let words = generic.field.iter().map(|field| format!("{}={}", field.name.as_deref().unwrap_or(""), value(field)));
    What::Text { name: generic.event_name.unwrap_or_default(), fields: words.collect::<Vec<_>>().join(" ") }
}

fn switches(on: CpuId, compact: &CompactSched, drafts: &mut Vec<Draft>) -> Result<(), String> {
    let columns = [
        compact.switch_prev_state.len(),
        compact.switch_next_pid.len(),
        compact.switch_next_prio.len(),
        compact.switch_next_comm_index.len(),
    ];
    equally_long(compact.switch_timestamp.len(), &columns)?;
    let mut time = 0u64;
    for (i, delta) in compact.switch_timestamp.iter().enumerate() {
        time = time.wrapping_add(*delta);
        let comm = comm(compact, compact.switch_next_comm_index[i])?;
        let next = Running { pid: compact.switch_next_pid[i], prio: compact.switch_next_prio[i], comm };
        let what = What::Text { name: String::new(), fields: String::new() };
        let item = Item { time, cpu: on, pid: 0, flags: Flags::NONE, what };
        drafts.push(Draft { item, compact: Compact::Switch(compact.switch_prev_state[i], next) });
    }
    Ok(())
}

fn wakings(on: CpuId, compact: &CompactSched, drafts: &mut Vec<Draft>) -> Result<(), String> {
    let columns = [
        compact.waking_pid.len(),
        compact.waking_target_cpu.len(),
        compact.waking_prio.len(),
        compact.waking_comm_index.len(),
    ];
    equally_long(compact.waking_timestamp.len(), &columns)?;
    let mut time = 0u64;
    for (i, delta) in compact.waking_timestamp.iter().enumerate() {
        time = time.wrapping_add(*delta);
        let target_cpu = cpu(Some(compact.waking_target_cpu[i]))?;
        let kind = Kind::Waking { pid: compact.waking_pid[i], prio: compact.waking_prio[i], target_cpu };
        let comm = comm(compact, compact.waking_comm_index[i])?;
        let item = Item { time, cpu: on, pid: 0, flags: Flags::NONE, what: What::one(kind, comm) };
        drafts.push(Draft { item, compact: Compact::Waking });
    }
    Ok(())
}

fn equally_long(length: usize, columns: &[usize]) -> Result<(), String> {
    match columns.iter().find(|column| **column != length) {
        Some(column) => Err(format!("compact events with columns of {length} and {column} values")),
        None => Ok(()),
    }
}

fn comm(compact: &CompactSched, index: u32) -> Result<String, String> {
    compact.intern_table.get(index as usize).cloned().ok_or_else(|| format!("no interned comm {index}"))
}
