//! From a request to reschedule to the switch: the check point at which the preemption model honours the request, and
//! the kernel's switch.
//!
//! ```text
//! request        honoured at
//! full           in user mode, and under full and lazy in kernel mode: the end of the interrupt, or of the critical section that it interrupted
//! full           under none and voluntary in kernel mode: the next __cond_resched(), or the return from the call
//! lazy           in user mode the end of the interrupt, in kernel mode the return from the call; the next tick makes it a full one
//! ```
//!
//! The predicted delay ends with the last record before that check point, or at the next tick of the CPU's period; the
//! recorded one with the switch. A request agrees if the switch is the first record after its check point. Not judged:
//! requests that end because the task blocks or because it is picked again, and those in a context that the trace does
//! not show: without records of system calls neither kernel mode and user mode nor the check points can be
//! distinguished.

mod cpu;
mod score;

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::PreemptModel;
use schedlab_trace::Header;

use self::cpu::{Checks, Cpu};
use self::score::Scores;
use crate::header::tick_period;
use crate::operation::{Caller, Charge, Flag, Operation, Timer, Wakeup};
use crate::reader::Reader;
use crate::report::ReschedReport;
use crate::trace::Entry;

/// Follows the requests of all CPUs.
pub struct Resched {
    checks: Option<Checks>,
    cpus: Vec<Cpu>,
    scores: Scores,
    calls: bool,
}

impl Resched {
    /// `model` as the header names it; without one, and in a simulated trace, nothing is judged.
    pub fn new(header: &Header, warm_up_ends: Nanos, limit: usize) -> Resched {
        let model = header.get("preempt").filter(|_| header.get("simulated").is_none()).and_then(chosen);
        let known = matches!(
            model,
            Some(PreemptModel::None | PreemptModel::Voluntary | PreemptModel::Full | PreemptModel::Lazy)
        );
        let checks = model.filter(|_| known).map(|model| Checks { model, period: tick_period(header) });
        Resched { checks, cpus: Vec::new(), scores: Scores::new(warm_up_ends, limit), calls: false }
    }

    /// A record, before the operations that it stands for.
    pub fn record(&mut self, entry: &Entry, reader: &Reader) {
        let Some(checks) = self.checks else { return };
        self.calls |= entry.is_system_call();
        let atomic = reader.interrupts_atomic(entry);
        cpu(&mut self.cpus, entry.cpu).record(checks, entry, atomic, &mut self.scores);
    }

    /// An operation of that record.
    pub fn operation(&mut self, entry: &Entry, operation: &Operation) {
        let Some(checks) = self.checks else { return };
        let (at, flag) = match *operation {
            Operation::Tick { cpu: at, flag, timer } => {
                if timer == Timer::Tick && at == entry.cpu {
                    cpu(&mut self.cpus, at).tick(checks, entry, &mut self.scores);
                }
                (at, flag)
            }
            Operation::Wakeup(Wakeup { cpu, flag, .. })
            | Operation::Attach { cpu, flag, .. }
            | Operation::UpdateCurr(Charge { cpu, caller: Caller::Other(flag), .. }) => (cpu, flag),
            Operation::Repick { cpu: at, .. } => {
                cpu(&mut self.cpus, at).picked_again(entry.time, &mut self.scores);
                return;
            }
            _ => return,
        };
        if requests(flag) {
            cpu(&mut self.cpus, at).request(checks, entry, at != entry.cpu);
        }
    }

    /// What was counted.
    pub fn report(&self) -> ReschedReport {
        self.scores.report(self.checks.map(|checks| checks.model.name()), self.calls)
    }
}

/// Whether a decision, and nothing else, set the flag.
fn requests(flag: Flag) -> bool {
    !flag.before && flag.after == Some(true) && !flag.is_shared()
}

fn cpu(cpus: &mut Vec<Cpu>, at: CpuId) -> &mut Cpu {
    if cpus.len() <= at.index() {
        cpus.resize_with(at.index() + 1, Cpu::default);
    }
    &mut cpus[at.index()]
}

/// The model in parentheses in `none (voluntary) full`.
fn chosen(line: &str) -> Option<PreemptModel> {
    let (_, rest) = line.split_once('(')?;
    rest.split_once(')')?.0.parse().ok()
}
