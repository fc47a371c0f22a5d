//! The bandwidth of memory, divided among the CPUs that wait for it.
//!
//! The memory of a node has a bandwidth, of which at most a part goes to other nodes. Both are divided max-min fairly:
//! a CPU whose demand is below an equal part gets its demand, the others get equal parts of the rest. The demand of a
//! CPU is what it gets alone; the threads of a core share the buffers for outstanding lines, so their demand together
//! is that of one. Left out: different costs of reads and writes, the latency that rises before the limit is reached,
//! caches, channels.

use schedlab_model::CpuId;
use schedlab_spec::RunSpec;

use super::cpu::FULL_SPEED;

/// The CPUs that wait for memory, and the bandwidth to divide.
#[derive(Debug)]
pub struct MemoryBandwidth {
    /// Of a node's memory, in 1/1024 of what one CPU gets alone.
    pub(super) node: u64,
    /// Of that, to other nodes.
    pub(super) remote: u64,
    pub(super) waiting: Vec<Waiting>,
}

/// A CPU that waits for memory.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub(super) cpu: CpuId,
    /// The first CPU of the node whose memory it waits for.
    pub(super) home: CpuId,
}

impl MemoryBandwidth {
    /// That of the machine, where it is shared.
    pub fn new(spec: &RunSpec) -> Option<Box<MemoryBandwidth>> {
        let memory = spec.machine.memory.filter(|memory| spec.machine.physics.memory && memory.node < u32::MAX)?;
        let part = |rate: u32| u64::from(rate) * u64::from(FULL_SPEED) / u64::from(memory.cpu.max(1));
        Some(Box::new(MemoryBandwidth { node: part(memory.node), remote: part(memory.remote), waiting: Vec::new() }))
    }
}

/// The most that any CPU gets with these demands, above 0; `u32::MAX` if all get their demand.
pub(super) fn max_min_share(there_is: u64, mut wants: Vec<u32>) -> u32 {
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
        // The bandwidth, the demand of each, the most that one gets.
        let cases: [(u64, &[u32], u32); 6] = [
            (4096, &[1024, 1024], u32::MAX),
            (4096, &[1024; 4], u32::MAX),
            (4096, &[1024; 8], 512),
            // Three of little demand leave the rest to the fourth.
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
