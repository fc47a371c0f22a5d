//! Clients on other machines: what they send, and their requests on the way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schedlab_model::{stream, CpuId, Nanos, Stream};
use schedlab_spec::RunSpec;
use schedlab_workload::{Amount, Dist, Sends};

use super::bases::Bases;

/// The clients of all workloads, and their requests on the way.
#[derive(Clone, Default, Debug)]
pub struct Remotes {
    pub(super) clients: Vec<Clients>,
    /// By CPU: requests that have reached the machine or will, the next one first.
    pub(super) coming: Vec<BinaryHeap<Reverse<Request>>>,
    sequence: u64,
    takes_replies: bool,
    noise: bool,
}

/// The clients of one `[[workload.remote]]`.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    /// The place of the queue among all objects.
    pub(super) queue: u32,
    pub(super) sends: Sends,
    /// The place of the queue of replies among all objects.
    pub(super) replies: Option<u32>,
    pub(super) softirq: Amount,
    irq_cpus: Vec<CpuId>,
    dists: Vec<Dist>,
    /// How many values of each recorded sequence were taken.
    taken: Vec<u64>,
    stream: Stream,
}

/// A request on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Request {
    /// When it reaches the machine.
    pub(super) arrives: Nanos,
    sequence: u64,
    pub(super) softirq: Nanos,
    pub(super) clients: usize,
}

impl Remotes {
    pub fn new(spec: &RunSpec, bases: &[Bases], seed: u64) -> Self {
        let mut remotes = Remotes { noise: spec.noise, ..Remotes::default() };
        for (workload, base) in spec.workloads.iter().zip(bases) {
            for remote in &workload.remotes {
                let stays = |cpu: &CpuId| spec.hotplug.iter().all(|change| !change.cpus.has(*cpu));
                let may = |cpu: &CpuId| remote.irq_cpus.is_none_or(|mask| mask.has(*cpu)) && stays(cpu);
                let mut irq_cpus: Vec<CpuId> = spec.machine.topology.all().iter().filter(may).collect();
                if irq_cpus.is_empty() {
                    // The CPU that never goes offline.
                    irq_cpus.push(CpuId(0));
                }
                let replies = match remote.sends {
                    Sends::Closed { replies, .. } => Some(base.object + replies),
                    Sends::Every(_) => None,
                };
                remotes.takes_replies |= replies.is_some();
                remotes.clients.push(Clients {
                    queue: base.object + remote.queue,
                    sends: remote.sends.clone(),
                    replies,
                    softirq: remote.softirq,
                    irq_cpus,
                    taken: vec![0; workload.dists.len()],
                    dists: workload.dists.clone(),
                    stream: stream(seed, &format!("remote/{}/{}", workload.name, remote.name)),
                });
            }
        }
        if !remotes.clients.is_empty() {
            remotes.coming = vec![BinaryHeap::new(); spec.machine.topology.nr_cpus()];
        }
        remotes
    }

    /// Whether a queue takes replies to clients.
    #[inline]
    pub fn takes_replies(&self) -> bool {
        self.takes_replies
    }

    pub(super) fn draw(&mut self, clients: usize, amount: Amount) -> Nanos {
        let clients = &mut self.clients[clients];
        match amount {
            Amount::Fixed(ns) => ns,
            Amount::Reg(_) => 0,
            Amount::Drawn(dist) => match clients.dists.get(dist as usize).zip(clients.taken.get_mut(dist as usize)) {
                Some((dist, taken)) => dist.next(taken, self.noise, &mut clients.stream),
                None => 0,
            },
        }
    }

    /// A request is on its way; returns its CPU.
    pub(super) fn send(&mut self, clients: usize, arrives: Nanos) -> CpuId {
        let softirq = self.draw(clients, self.clients[clients].softirq);
        let from = &mut self.clients[clients];
        let at = if self.noise { from.stream.below(from.irq_cpus.len() as u64) } else { self.sequence };
        let cpu = from.irq_cpus[at as usize % from.irq_cpus.len()];
        self.sequence += 1;
        let request = Request { arrives, sequence: self.sequence, softirq, clients };
        self.coming[cpu.index()].push(Reverse(request));
        cpu
    }

    /// The next request of an open loop after one that arrives at this time; its CPU.
    pub(super) fn follow(&mut self, clients: usize, arrives: Nanos) -> Option<CpuId> {
        let Sends::Every(every) = self.clients[clients].sends else { return None };
        // A time of 0 would never end.
        let after = self.draw(clients, every).max(1);
        Some(self.send(clients, arrives + after))
    }

    pub(super) fn take_due(&mut self, cpu: CpuId, now: Nanos) -> Option<Request> {
        let coming = self.coming.get_mut(cpu.index())?;
        if coming.peek()?.0.arrives > now {
            return None;
        }
        coming.pop().map(|request| request.0)
    }
}
