//! Which CPU has the latest of the earliest deadlines (`struct cpudl`, kernel/sched/cpudeadline.c): a max-heap of CPUs
//! by the earliest deadline queued on each, and the CPUs that have no deadline task.

use schedlab_model::{CpuId, CpuMask, Nanos};

/// The heap.
#[derive(Clone, Debug)]
pub(super) struct Cpudl {
    elements: Vec<(Nanos, CpuId)>,
    /// The place of each CPU in the heap (`idx`).
    at: Vec<Option<usize>>,
    free_cpus: CpuMask,
}

impl Cpudl {
    /// Every CPU of a machine without deadline tasks.
    pub fn new(nr_cpus: usize) -> Self {
        Cpudl { elements: Vec::new(), at: vec![None; nr_cpus], free_cpus: CpuMask::first(nr_cpus) }
    }

    /// The CPUs without deadline tasks.
    pub fn free_cpus(&self) -> &CpuMask {
        &self.free_cpus
    }

    /// `cpudl_maximum`: the CPU with the latest deadline, and that deadline.
    pub fn maximum(&self) -> Option<(Nanos, CpuId)> {
        self.elements.first().copied()
    }

    /// `cpudl_clear`: the CPU has no deadline task any more.
    pub fn clear(&mut self, cpu: CpuId) {
        self.free_cpus.set(cpu);
        let Some(at) = self.at[cpu.index()].take() else { return };
        self.elements.swap_remove(at);
        if let Some((_, moved)) = self.elements.get(at) {
            self.at[moved.index()] = Some(at);
            self.heapify(at);
        }
    }

    /// `cpudl_set`: the earliest deadline queued on the CPU.
    pub fn set(&mut self, cpu: CpuId, deadline: Nanos) {
        match self.at[cpu.index()] {
            Some(at) => {
                self.elements[at].0 = deadline;
                self.heapify(at);
            }
            None => {
                let at = self.elements.len();
                self.elements.push((deadline, cpu));
                self.at[cpu.index()] = Some(at);
                self.heapify_up(at);
                self.free_cpus.clear(cpu);
            }
        }
    }

    /// `cpudl_heapify`.
    fn heapify(&mut self, at: usize) {
        if at > 0 && self.elements[(at - 1) / 2].0 < self.elements[at].0 {
            self.heapify_up(at);
        } else {
            self.heapify_down(at);
        }
    }

    /// `cpudl_heapify_up`: passes parents of the same deadline too.
    fn heapify_up(&mut self, mut at: usize) {
        while at > 0 && self.elements[at].0 >= self.elements[(at - 1) / 2].0 {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    /// `cpudl_heapify_down`.
    fn heapify_down(&mut self, mut at: usize) {
        loop {
            let mut largest = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.elements.len() && self.elements[largest].0 < self.elements[child].0 {
                    largest = child;
                }
            }
            if largest == at {
                return;
            }
            self.swap(at, largest);
            at = largest;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.elements.swap(a, b);
        for at in [a, b] {
            self.at[self.elements[at].1.index()] = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_that_of_a_plain_table() {
        let mut heap = Cpudl::new(7);
        let mut table = [None; 7];
        let mut seed = 7u64;
        for _ in 0..5_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (cpu, deadline) = ((seed >> 33) as usize % 7, seed >> 60);
            if deadline == 0 {
                heap.clear(CpuId(cpu as u32));
                table[cpu] = None;
            } else {
                heap.set(CpuId(cpu as u32), deadline);
                table[cpu] = Some(deadline);
            }
            let latest = table.iter().flatten().max().copied();
            assert_eq!(heap.maximum().map(|(deadline, _)| deadline), latest);
            assert_eq!(heap.maximum().and_then(|(_, cpu)| table[cpu.index()]), latest);
            let free = (0..7).filter(|cpu| table[*cpu].is_none()).map(|cpu| CpuId(cpu as u32));
            assert_eq!(*heap.free_cpus(), CpuMask::from_iter(free));
        }
    }
}
