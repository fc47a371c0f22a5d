//! Values that no kernel prints are not read, so that nothing that is computed of them overflows and no CPU is named that the
//! machine does not have.

use schedlab_model::{CpuId, Nanos};
use schedlab_trace::Fields;

use super::entry::{Entry, What};
use super::pass::PassRecord;

/// More than the weights of 2^22 tasks, as many as there can be pids, of nice -20.
const LARGEST_LOAD: u64 = 1 << 40;

/// More than 100 years.
const LATEST: Nanos = 1 << 62;

/// More changes of the wakee than a task makes in a second, after which they are halved.
const MOST_FLIPS: u32 = 1 << 24;

/// `wakee_flips`.
pub(super) fn flips(fields: Fields<'_>, name: &str) -> Option<u32> {
    fields.number(name).filter(|flips| *flips <= MOST_FLIPS)
}

/// More than a minute; `sched_setattr` allows a tenth of a second.
const LONGEST_SLICE: Nanos = 1 << 36;

/// A slice.
pub(super) fn slice(fields: Fields<'_>, name: &str) -> Option<Nanos> {
    fields.number(name).filter(|slice| *slice <= LONGEST_SLICE)
}

/// More than the utilisation of a CPU to which 60 tasks have moved at once; the sum that belongs to it fits 32 bits.
const LARGEST_UTIL: u32 = 1 << 16;

/// A utilisation, measured or estimated.
pub(super) fn util(fields: Fields<'_>, name: &str) -> Option<u32> {
    fields.number(name).filter(|util| *util <= LARGEST_UTIL)
}

/// A load average, a weight or a capacity.
pub(super) fn load(fields: Fields<'_>, name: &str) -> Option<u64> {
    fields.number(name).filter(|load| *load <= LARGEST_LOAD)
}

/// A time of the kernel's clocks, or a tick count.
pub(super) fn time(fields: Fields<'_>, name: &str) -> Option<Nanos> {
    fields.number(name).filter(|time| *time <= LATEST)
}

impl Entry {
    /// Only its flags if a probe names a CPU that the machine does not have.
    #[must_use]
    pub fn within(self, cpus: usize) -> Entry {
        match self.probed_cpu().is_some_and(|cpu| cpu.index() >= cpus) {
            true => Entry { what: What::Other, ..self },
            false => self,
        }
    }

    /// The CPU that a probe names.
    fn probed_cpu(&self) -> Option<CpuId> {
        match &self.what {
            What::Clock { cpu, .. } => *cpu,
            What::RqClock { cpu, .. }
            | What::Selected { cpu }
            | What::CpuAverages { cpu, .. }
            | What::UpdateBlockedAverages { cpu }
            | What::CfsRqLoad { cpu, .. } => Some(*cpu),
            What::Select(probe) => {
                let recent = probe.state.map(|state| state.history.recent_used_cpu);
                recent.into_iter().chain([probe.prev]).max()
            }
            What::Pass(PassRecord::Looks(probe)) => Some(probe.cpu),
            What::Pass(PassRecord::Considers { src, .. } | PassRecord::MovedNone { src }) => Some(*src),
            _ => None,
        }
    }
}
