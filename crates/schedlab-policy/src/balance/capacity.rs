//! The capacity that is left of a CPU for the fair class (`scale_rt_capacity`, `update_cpu_capacity`,
//! `update_group_capacity`, `check_cpu_capacity`, kernel/sched/fair.c 5.2 to 7.2): its own capacity (1024 if all are
//! equal) minus the utilisation of the real-time class; of the rest, in a guest with paravirt time accounting, the
//! share that is not stolen (`scale_irq_capacity`); at least 1.
//!
//! A CPU updates its own capacity when it balances in its lowest domain. The capacity of a group is summed from the
//! groups below it when one of its CPUs balances at that level. A newidle pass does neither before the domain's
//! interval has expired, so other CPUs may read old values. While no task of the machine is real-time and no time is
//! stolen, every capacity is the machine's and nothing is computed. Not modelled: interrupts, deadline tasks, thermal
//! and frequency limits.

use schedlab_model::CpuId;

use super::{CpuIdle, Env};
use crate::core::domains::Group;
use crate::fair::class::FairClass;

impl FairClass<'_> {
    /// `capacity_of`.
    #[inline]
    pub(crate) fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.core.rqs[cpu.index()].cpu_capacity
    }

    /// `check_cpu_capacity`: noticeably less than the CPU has without the real-time class.
    #[inline]
    pub(super) fn check_cpu_capacity(&self, cpu: CpuId, imbalance_pct: u32) -> bool {
        self.capacity_of(cpu) * u64::from(imbalance_pct) < u64::from(self.core.topology.capacity(cpu)) * 100
    }

    /// `update_group_capacity` of the pulling group, before its statistics are computed.
    #[inline]
    pub(super) fn update_group_capacity(&mut self, env: &Env) {
        if self.core.capacity_varies() {
            self.renew_capacity(env);
        }
    }

    #[inline(never)]
    fn renew_capacity(&mut self, env: &Env) {
        let jiffies = self.core.jiffies(env.now);
        if env.idle == CpuIdle::Newly && jiffies < self.core.domains.local_group_mut(env.this, env.level).next_update {
            return;
        }
        let hz = u64::from(self.fair.config.hz());
        let longest = self.core.max_load_balance_interval(hz);
        let interval = (self.core.domains.state(env.this, env.level).balance_interval * hz).div_ceil(1000);
        let capacity = match env.level.checked_sub(1) {
            None => self.update_cpu_capacity(env),
            Some(below) => self.core.domains.at(env.this, below).groups.iter().map(|group| group.capacity).sum(),
        };
        let group = self.core.domains.local_group_mut(env.this, env.level);
        (group.capacity, group.next_update) = (capacity, jiffies + interval.clamp(1, longest));
    }

    /// `update_cpu_capacity`.
    fn update_cpu_capacity(&mut self, env: &Env) -> u64 {
        let used = self.core.cpu_util_rt(env.dst, env.now);
        let whole = u64::from(self.core.topology.capacity(env.dst));
        let irq = self.core.cpu_util_irq(env.dst, env.now).min(whole);
        let free = whole.saturating_sub(used);
        let capacity = (free * (whole - irq) / whole).max(1);
        self.core.rqs[env.dst.index()].cpu_capacity = capacity;
        capacity
    }

    /// The largest load of a CPU of the group with a single task and reduced capacity (`sched_reduced_capacity`).
    pub(super) fn max_load_of_reduced_capacity(
        &self,
        group: &Group,
        pct: u32,
        considers: impl Fn(CpuId) -> bool,
    ) -> u64 {
        let pressed = |cpu: &CpuId| self.h_nr_runnable(*cpu) == 1 && self.check_cpu_capacity(*cpu, pct);
        let cpus = group.cpus.iter().copied().filter(|cpu| considers(*cpu) && pressed(cpu));
        cpus.map(|cpu| self.fair.cpu_load(cpu)).max().unwrap_or(0)
    }
}
