//! Scheduling domains: which CPUs are active.

use schedlab_model::CpuId;

use super::Reader;
use crate::operation::Operation;
use crate::trace::{LookAhead, What, Window};

impl Reader {
    /// `partition_sched_domains` takes the domains of all CPUs, and gives those that are active new ones.
    pub(super) fn attach_domain(&mut self, cpu: CpuId, attached: bool, ahead: &Window<'_>) {
        let later = ahead.look(LookAhead::Domains).filter_map(|next| match next.what {
            What::AttachDomain { cpu, attached } => Some((cpu, attached)),
            _ => None,
        });
        let mut rebuilt = later.skip_while(|(_, attached)| !attached).take_while(|(_, attached)| *attached);
        let active = attached || rebuilt.any(|(of, _)| of == cpu);
        if self.cpu(cpu).inactive == active {
            self.cpu(cpu).inactive = !active;
            self.push(Operation::SetCpuActive { cpu, active });
        }
    }
}
