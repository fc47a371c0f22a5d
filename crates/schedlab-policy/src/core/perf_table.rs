//! The energy that a performance domain needs for an amount of work (`em_cpu_energy`,
//! include/linux/energy_model.h).
//!
//! The domain runs in the slowest state whose performance covers its busiest CPU. States that need no less energy per
//! unit of work than a faster one are skipped (EM_PERF_DOMAIN_SKIP_INEFFICIENCIES). energy = power / performance *
//! utilisation, summed over its CPUs. Up to 6.8 the kernel looks states up by frequency instead of performance; the
//! results differ by rounding only.

use schedlab_model::{CpuId, PerfDomain};

/// The scale of power per performance, which keeps fractions.
const RESOLUTION: u64 = 1 << 10;

/// The performance states of a performance domain.
#[derive(Clone, Debug)]
pub(crate) struct PerfTable {
    pub cpus: Vec<CpuId>,
    /// Performance and cost of those states that are not inefficient, slowest first.
    states: Vec<(u64, u64)>,
}

impl PerfTable {
    pub fn new(domain: &PerfDomain) -> Self {
        let mut states: Vec<(u64, u64)> = Vec::new();
        for state in domain.states.iter().rev() {
            let performance = u64::from(state.performance.max(1));
            let cost = state.power * RESOLUTION / performance;
            if states.last().is_none_or(|(_, faster)| cost < *faster) {
                states.push((performance, cost));
            }
        }
        states.reverse();
        PerfTable { cpus: domain.cpus.iter().collect(), states }
    }

    /// `em_cpu_energy`: `max_util` is the utilisation of the busiest CPU, `sum_util` the sum over all.
    pub fn em_cpu_energy(&self, max_util: u64, sum_util: u64) -> u64 {
        let state = self.states.iter().find(|(performance, _)| *performance >= max_util).or(self.states.last());
        state.map_or(0, |(_, cost)| cost * sum_util)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{CpuMask, PerfState};

    #[test]
    fn the_lowest_state_that_suffices_and_is_efficient() {
        let state = |performance, power| PerfState { performance, power };
        // Energy per work: 1, 3 (no less than the next one's 2), 2, 4.
        let states = vec![state(100, 100), state(200, 600), state(400, 800), state(800, 3_200)];
        let table = PerfTable::new(&PerfDomain { cpus: CpuMask::first(2), states });
        for (max_util, cost) in [(0, 1), (100, 1), (101, 2), (400, 2), (401, 4), (1_000, 4)] {
            assert_eq!(table.em_cpu_energy(max_util, 10), 10 * cost * RESOLUTION, "{max_util}");
        }
        assert_eq!(table.em_cpu_energy(500, 0), 0);
    }
}
