//! The bandwidth of memory: what CPUs that wait for it leave each other.
//!
//! The memory of a node delivers so much, part of it at most to other nodes. Both are divided max-min fairly: a CPU that wants less
//! than an equal part gets what it wants, the others get equal parts of the rest. A CPU wants what it gets alone; the threads of a
//! core have the buffers for outstanding lines in common, so together they want no more than one does.
//! Left out: reads and writes that differ in what they cost, the latency that rises before the limit is reached, caches, channels.

use schedlab_model::{CpuId, Nanos};
use schedlab_spec::RunSpec;

use super::cpu::FULL_SPEED;
use super::state::Machine;

/// The CPUs that wait for memory, and what there is to divide.
#[derive(Debug)]
pub struct MemoryBandwidth {
    /// Of a node's memory, in 1/1024 of what one CPU gets alone.
    node: u64,
    /// Of that, to other nodes.
    remote: u64,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    cpu: CpuId,
    /// The first CPU of the node whose memory it waits for.
    home: CpuId,
}

impl MemoryBandwidth {
    /// That of the machine, where it is shared.
    pub fn new(spec: &RunSpec) -> Option<Box<MemoryBandwidth>> {
        let memory = spec.machine.memory.filter(|memory| spec.machine.physics.memory && memory.node < u32::MAX)?;
        let part = |rate: u32| u64::from(rate) * u64::from(FULL_SPEED) / u64::from(memory.cpu.max(1));
        Some(Box::new(MemoryBandwidth { node: part(memory.node), remote: part(memory.remote), waiting: Vec::new() }))
    }
}

impl Machine {
    /// Whether any CPU waits for memory that it shares.
    pub fn waits_for_memory(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| !memory.waiting.is_empty())
    }

    /// The CPU begins to wait for the memory of the node of CPU `home`. Whether shares have to be found anew.
    pub fn begin_stream(&mut self, cpu: CpuId, home: CpuId) -> bool {
        let home = self.preset.topology.node(home).lowest().unwrap_or(home);
        let Some(memory) = &mut self.memory else { return false };
        memory.waiting.push(Waiting { cpu, home });
        true
    }

    /// The CPU waits for memory no longer. Whether shares have to be found anew.
    pub fn end_stream(&mut self, cpu: CpuId) -> bool {
        let Some(memory) = &mut self.memory else { return false };
        memory.waiting.retain(|waiting| waiting.cpu != cpu);
        let c = &mut self.cpus[cpu.index()];
        c.memory_rate = u32::MAX;
        c.update_rate();
        true
    }

    /// Divides the bandwidth anew; adds the CPUs whose rate it changes. They are accounted up to now, and the end of what they
    /// execute has to be found anew.
    pub fn share_memory(&mut self, now: Nanos, changed: &mut Vec<CpuId>) {
        let Some(memory) = &self.memory else { return };
        let mut homes: Vec<CpuId> = memory.waiting.iter().map(|waiting| waiting.home).collect();
        homes.sort_unstable();
        homes.dedup();
        let mut rates: Vec<(CpuId, u32)> = Vec::with_capacity(memory.waiting.len());
        for home in homes {
            let of_node = memory.waiting.iter().filter(|waiting| waiting.home == home);
            let (near, far): (Vec<CpuId>, Vec<CpuId>) = of_node
                .map(|waiting| waiting.cpu)
                .partition(|cpu| self.preset.topology.node(*cpu).lowest() == Some(home));
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

/// The most that any of those that want so much gets, above 0; `u32::MAX` if all get what they want.
fn max_min_share(there_is: u64, mut wants: Vec<u32>) -> u32 {
    wants.sort_unstable();
    let mut left = there_is;
    for (index, want) in wants.iter().enumerate() {
        let equal = left / (wants.len() - index) as u64;
        if u64::from(*want) > equal {
            return equal.clamp(1, u64::from(u32::MAX)) as u32;
        }
        left -= u64::from(*want);
    }
    u32::MAX
}

#[cfg(test)]
mod tests {
    use super::max_min_share;

    #[test]
    fn nobody_gets_more_than_an_equal_part_while_another_wants_more() {
        // What there is, what each wants, the most that one gets.
        let cases: [(u64, &[u32], u32); 6] = [
            (4096, &[1024, 1024], u32::MAX),
            (4096, &[1024; 4], u32::MAX),
            (4096, &[1024; 8], 512),
            // Three that want little leave the rest to the fourth.
            (2000, &[1024, 300, 1024, 100], 800),
            (10, &[1024; 64], 1),
            (0, &[], u32::MAX),
        ];
        for (there_is, wants, most) in cases {
            assert_eq!(max_min_share(there_is, wants.to_vec()), most, "{there_is} {wants:?}");
            let given: u64 = wants.iter().map(|want| u64::from(*want.min(&most))).sum();
            assert!(given <= there_is.max(wants.len() as u64), "{there_is} {wants:?}");
        }
    }
}
