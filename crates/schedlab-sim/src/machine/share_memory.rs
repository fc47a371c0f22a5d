//! Divides the bandwidth of memory among the CPUs that wait for it: memory.rs says how.

use schedlab_model::{CpuId, Nanos};

use super::memory::{max_min_share, Waiting};
use super::state::Machine;

impl Machine {
    /// Whether any CPU waits for memory that it shares.
    pub fn waits_for_memory(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| !memory.waiting.is_empty())
    }

    /// The CPU begins to wait for the memory of the node of CPU `home`. Returns whether the shares have to be computed
    /// anew.
    pub fn begin_stream(&mut self, cpu: CpuId, home: CpuId) -> bool {
        let home = self.topology.node(home).lowest().unwrap_or(home);
        let Some(memory) = &mut self.memory else { return false };
        memory.waiting.push(Waiting { cpu, home });
        true
    }

    /// The CPU no longer waits for memory. Returns whether the shares have to be computed anew.
    pub fn end_stream(&mut self, cpu: CpuId) -> bool {
        let Some(memory) = &mut self.memory else { return false };
        memory.waiting.retain(|waiting| waiting.cpu != cpu);
        let c = &mut self.cpus[cpu.index()];
        c.memory_rate = u32::MAX;
        c.update_rate();
        true
    }

    /// Divides the bandwidth anew; adds the CPUs whose rate it changes. They are accounted up to now, and the end of
    /// what they execute has to be computed anew.
    pub fn share_memory(&mut self, now: Nanos, changed: &mut Vec<CpuId>) {
        let Some(memory) = &self.memory else { return };
        let mut homes: Vec<CpuId> = memory.waiting.iter().map(|waiting| waiting.home).collect();
        homes.sort_unstable();
        homes.dedup();
        let mut rates: Vec<(CpuId, u32)> = Vec::with_capacity(memory.waiting.len());
        for home in homes {
            let of_node = memory.waiting.iter().filter(|waiting| waiting.home == home);
            let (near, far): (Vec<CpuId>, Vec<CpuId>) =
                of_node.map(|waiting| waiting.cpu).partition(|cpu| self.topology.node(*cpu).lowest() == Some(home));
            let wants = |cpu: &CpuId| self.wants_of_memory(*cpu);
            let link = max_min_share(memory.remote, far.iter().map(wants).collect());
            let both = near.iter().map(wants).chain(far.iter().map(|cpu| wants(cpu).min(link))).collect();
            let share = max_min_share(memory.node, both);
            rates.extend(near.iter().map(|cpu| (*cpu, wants(cpu).min(share))));
            rates.extend(far.iter().map(|cpu| (*cpu, wants(cpu).min(link).min(share))));
        }
        for (cpu, rate) in rates {
            let c = &mut self.cpus[cpu.index()];
            if c.memory_rate != rate {
                c.progress(now);
                c.memory_rate = rate;
                c.update_rate();
                changed.push(cpu);
            }
        }
    }

    /// In 1/1024 of what one CPU gets alone.
    fn wants_of_memory(&self, cpu: CpuId) -> u32 {
        let waits = |cpu: &&CpuId| self.memory.iter().any(|memory| memory.waiting.iter().any(|w| w.cpu == **cpu));
        let threads = match self.threads_of(cpu) {
            [_] => 1,
            threads => threads.iter().filter(waits).count().max(1) as u32,
        };
        let c = &self.cpus[cpu.index()];
        c.core_rate.min(c.speed / threads)
    }
}
