//! Chooses the frequency of a core.
//!
//! The costs of the machine hold at its base frequency; work is executed faster or slower by the ratio:
//!
//! ```text
//! MHz of a core = min(limit, highest request of its busy threads)
//! limit         = the turbo bin of the node's busy cores
//! rate          = rate of the machine * MHz / base
//! ```
//!
//! Simplified: a change takes effect at once and costs nothing; a core whose threads are all idle keeps its frequency,
//! and leaves its idle state at the same speed.

use schedlab_model::{CpuId, Nanos};

use super::cpu::{Activity, FULL_SPEED};
use super::state::Machine;

impl Machine {
    /// The CPU's frequency in 1/1024 of the highest one (`arch_scale_freq_capacity`).
    pub fn scale_freq(&self, cpu: CpuId) -> u32 {
        let Some(frequencies) = &self.frequency else { return FULL_SPEED };
        let mhz = frequencies.mhz[self.core_of[cpu.index()] as usize];
        (u64::from(mhz) * u64::from(FULL_SPEED) / u64::from(frequencies.spec.max().max(1))) as u32
    }

    /// Sets the speed of CPUs that are idle at time 0.
    pub fn boot_frequencies(&mut self) {
        for core in 0..self.cores.len() {
            self.set_frequency(core, 0, &mut Vec::new());
        }
    }

    /// The CPU has become busy or idle: adds the CPUs whose rate this changes.
    pub fn core_frequency(&mut self, cpu: CpuId, busy: bool, now: Nanos, changed: &mut Vec<CpuId>) {
        let core = self.core_of[cpu.index()] as usize;
        let others = self.cores[core].busy - u32::from(busy);
        let Some(frequencies) = &mut self.frequency else { return };
        frequencies.idle_calls[cpu.index()] += u32::from(!busy);
        let node = frequencies.node[core];
        let before = frequencies.spec.limit(frequencies.busy[node]);
        if others == 0 {
            let cores = &mut frequencies.busy[node];
            *cores = if busy { *cores + 1 } else { *cores - 1 };
        }
        if frequencies.spec.limit(frequencies.busy[node]) == before {
            return self.choose_frequency(core, now, changed);
        }
        let of_node = (0..self.cores.len()).filter(|core| frequencies.node[*core] == node);
        for core in of_node.collect::<Vec<_>>() {
            self.choose_frequency(core, now, changed);
        }
    }

    /// The governor of the CPU requests a frequency: adds the CPUs whose rate this changes.
    pub fn request_frequency(&mut self, cpu: CpuId, mhz: u32, now: Nanos, changed: &mut Vec<CpuId>) {
        if let Some(frequencies) = &mut self.frequency {
            frequencies.requests[cpu.index()] = mhz;
            self.choose_frequency(self.core_of[cpu.index()] as usize, now, changed);
        }
    }

    /// The formula above.
    fn choose_frequency(&mut self, core: usize, now: Nanos, changed: &mut Vec<CpuId>) {
        let Some(frequencies) = &mut self.frequency else { return };
        let busy = self.cores[core].threads.iter().filter(|cpu| self.cpus[cpu.index()].activity == Activity::Busy);
        let limit = frequencies.spec.limit(frequencies.busy[frequencies.node[core]]);
        let Some(request) = busy.map(|cpu| frequencies.requests[cpu.index()]).max() else { return };
        let mhz = request.min(limit);
        if frequencies.mhz[core] != mhz {
            frequencies.mhz[core] = mhz;
            self.set_frequency(core, now, changed);
        }
    }

    fn set_frequency(&mut self, core: usize, now: Nanos, changed: &mut Vec<CpuId>) {
        let Some(frequencies) = &self.frequency else { return };
        let ratio = u64::from(frequencies.mhz[core]) * u64::from(FULL_SPEED) / u64::from(frequencies.spec.base);
        for cpu in self.cores[core].threads.clone() {
            let c = &mut self.cpus[cpu.index()];
            c.progress(now);
            c.frequency = ratio.clamp(1, u64::from(u32::MAX)) as u32;
            c.update_rate();
            changed.push(cpu);
        }
    }
}
