//! What each core runs at, what the governors of its CPUs request, and how many cores of each node are busy.

use schedlab_model::CpuId;
use schedlab_spec::{Frequency, RunSpec};

/// The frequencies of a machine's cores.
#[derive(Clone, Debug)]
pub struct Frequencies {
    pub spec: Frequency,
    /// What the governor of each CPU requests, MHz.
    pub requests: Vec<u32>,
    /// How often each CPU has gone idle (`idle_calls`).
    pub idle_calls: Vec<u32>,
    /// By core, MHz.
    pub mhz: Vec<u32>,
    /// By core: its node.
    pub node: Vec<usize>,
    /// By node: its busy cores.
    pub busy: Vec<u32>,
}

impl Frequencies {
    /// Those of a machine that has any; `core_of` each CPU, all of which are idle.
    pub fn new(spec: &RunSpec, core_of: &[u32]) -> Option<Box<Frequencies>> {
        let physics = spec.machine.physics;
        let frequency = spec.machine.frequency.clone().filter(|_| physics.frequency)?;
        let topology = &spec.machine.topology;
        let cores = core_of.iter().max().map_or(0, |last| *last as usize + 1);
        let (mut node, mut firsts) = (vec![0; cores], Vec::new());
        for (cpu, core) in core_of.iter().enumerate() {
            let first = topology.node(CpuId(cpu as u32)).lowest();
            let known = firsts.iter().position(|known| *known == first);
            node[*core as usize] = known.unwrap_or_else(|| {
                firsts.push(first);
                firsts.len() - 1
            });
        }
        let asked = if physics.schedutil { frequency.min } else { frequency.max() };
        Some(Box::new(Frequencies {
            requests: vec![asked; core_of.len()],
            idle_calls: vec![0; core_of.len()],
            mhz: vec![asked.min(frequency.limit(0)); cores],
            node,
            busy: vec![0; firsts.len()],
            spec: frequency,
        }))
    }

    /// How often the CPU has gone idle.
    pub fn idle_calls(&self, cpu: CpuId) -> u32 {
        self.idle_calls[cpu.index()]
    }
}
