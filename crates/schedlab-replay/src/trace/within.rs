//! Probes that name a CPU which the machine does not have.

use schedlab_model::CpuId;

use super::entry::{Entry, What};
use super::pass::PassRecord;

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
            | What::UpdateBlockedAverages { cpu, .. }
            | What::CfsRqLoad { cpu, .. }
            | What::SumsRead { cpu, .. }
            | What::AttachDomain { cpu, .. } => Some(*cpu),
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
