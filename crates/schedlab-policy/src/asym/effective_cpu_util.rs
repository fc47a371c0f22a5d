//! The utilisation of a CPU by all classes, as the governor schedutil uses it.

use schedlab_model::{CpuId, Nanos};

use crate::sched::Sched;

impl Sched {
    /// `effective_cpu_util`, 0 to 1024: that of the fair class, of the classes above it, and of the hypervisor. While a
    /// task of a class above runs it is the whole CPU.
    pub fn effective_cpu_util(&mut self, cpu: CpuId, now: Nanos) -> u64 {
        const WHOLE: u64 = 1024;
        let (above, irq) = (self.core.cpu_util_rt(cpu, now), self.core.cpu_util_irq(cpu, now));
        if self.core.rqs[cpu.index()].rt_runs || irq >= WHOLE {
            return WHOLE;
        }
        let boosts = self.core.rules.runnable_boost;
        let fair = if boosts { self.fair.cpu_util_cfs_boost(cpu) } else { self.fair.cpu_util_cfs(cpu) };
        let util = fair + above;
        if util >= WHOLE {
            return WHOLE;
        }
        (util * (WHOLE - irq) / WHOLE + irq).min(WHOLE)
    }
}
