//! Requests of clients on other machines: interrupts of the network card and their softirq work, which no task executes.
//!
//! A request reaches the machine and interrupts one of its CPUs, chosen at random as by the hash of receive-side
//! scaling. The softirq (NET_RX) works for it on that CPU, and then wakes a receiver. The entry is in the queue from the
//! interrupt on (simplified). Left out: interrupt moderation, the polling of NAPI beyond requests that are there, ksoftirqd, and drops.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schedlab_model::{stream, CpuId, Nanos, Stream};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;
use schedlab_workload::{Amount, Dist, Sends};

use super::objects::Object;
use super::running::Running;
use super::state::{Bases, Programs};
use crate::kernel::{self, Kernel};
use crate::machine::Machine;
use crate::run::{Run, Source};

/// The clients of all workloads, and their requests on the way.
#[derive(Clone, Default, Debug)]
pub struct Remotes {
    clients: Vec<Clients>,
    /// By CPU: requests that have reached the machine or will, the next one first.
    coming: Vec<BinaryHeap<Reverse<Request>>>,
    sequence: u64,
    takes_replies: bool,
    noise: bool,
}

/// The clients of one `[[workload.remote]]`.
#[derive(Clone, Debug)]
struct Clients {
    /// The place of the queue among all objects.
    queue: u32,
    sends: Sends,
    /// The place of the queue of replies among all objects.
    replies: Option<u32>,
    softirq: Amount,
    irq_cpus: Vec<CpuId>,
    dists: Vec<Dist>,
    stream: Stream,
}

/// A request on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Request {
    /// When it reaches the machine.
    arrives: Nanos,
    sequence: u64,
    softirq: Nanos,
    clients: usize,
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

    fn draw(&mut self, clients: usize, amount: Amount) -> Nanos {
        let clients = &mut self.clients[clients];
        match amount {
            Amount::Fixed(ns) => ns,
            Amount::Reg(_) => 0,
            Amount::Drawn(dist) => match clients.dists.get(dist as usize) {
                Some(dist) if self.noise => dist.draw(&mut clients.stream),
                Some(dist) => dist.typical(),
                None => 0,
            },
        }
    }

    /// A request is on its way; returns its CPU.
    fn send(&mut self, clients: usize, arrives: Nanos) -> CpuId {
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
    fn follow(&mut self, clients: usize, arrives: Nanos) -> Option<CpuId> {
        let Sends::Every(every) = self.clients[clients].sends else { return None };
        // A time of 0 would never end.
        let after = self.draw(clients, every).max(1);
        Some(self.send(clients, arrives + after))
    }

    fn take_due(&mut self, cpu: CpuId, now: Nanos) -> Option<Request> {
        let coming = self.coming.get_mut(cpu.index())?;
        if coming.peek()?.0.arrives > now {
            return None;
        }
        coming.pop().map(|request| request.0)
    }
}

/// The CPU's next interrupt of the network card.
fn arm<S: Sink>(run: &mut Run<S>, kernel: &Kernel, remotes: &Remotes, cpu: CpuId) {
    if let Some(next) = remotes.coming[cpu.index()].peek() {
        run.set_event(kernel.id, Source::Network, cpu, next.0.arrives.max(run.now));
    }
}

/// The first requests: of an open loop one, of a closed loop one of each client.
pub fn boot_remotes<S: Sink>(run: &mut Run<S>, kernel: &Kernel, programs: &mut Programs) {
    let remotes = &mut programs.remotes;
    for clients in 0..remotes.clients.len() {
        match remotes.clients[clients].sends {
            Sends::Every(_) => {
                remotes.follow(clients, run.now);
            }
            Sends::Closed { clients: count, think, network, .. } => {
                for _ in 0..count {
                    let arrives = run.now + remotes.draw(clients, think) + remotes.draw(clients, network);
                    remotes.send(clients, arrives);
                }
            }
        }
    }
    for cpu in (0..remotes.coming.len() as u32).map(CpuId) {
        arm(run, kernel, remotes, cpu);
    }
}

/// The network card's interrupt; an idle CPU has to leave its idle state first.
pub fn on_network<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &mut Programs,
    cpu: CpuId,
) {
    if kernel::device_interrupt(run, machine, kernel, cpu) {
        handle_requests(run, machine, kernel, programs, cpu);
        kernel::irqentry_exit(run, machine, kernel, cpu);
    }
}

/// One interrupt and the softirq for all requests that have reached the CPU; nothing if there are none.
#[inline]
pub fn handle_requests<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &mut Programs,
    cpu: CpuId,
) {
    if programs.remotes.coming.is_empty() {
        return;
    }
    let mut first = true;
    while let Some(request) = programs.remotes.take_due(cpu, run.now) {
        if std::mem::take(&mut first) {
            machine.charge_irq(cpu);
        }
        machine.charge(cpu, request.softirq);
        if let Some(next) = programs.remotes.follow(request.clients, request.arrives) {
            arm(run, kernel, &programs.remotes, next);
        }
        deliver(run, machine, kernel, programs, (cpu, request));
    }
    arm(run, kernel, &programs.remotes, cpu);
}

/// The entry is in the queue, and a receiver that waits is woken.
fn deliver<S: Sink>(
    run: &mut Run<S>,
    machine: &mut Machine,
    kernel: &mut Kernel,
    programs: &mut Programs,
    (cpu, request): (CpuId, Request),
) {
    let queue = programs.remotes.clients[request.clients].queue;
    let Object::Queue { values, waiting } = &mut programs.objects[queue as usize] else { return };
    values.push_back(i64::try_from(request.arrives).unwrap_or(i64::MAX));
    if let Some(waiter) = waiting.pop_front() {
        kernel::wake_from_interrupt(run, machine, kernel, waiter, cpu);
    }
}

/// The running task has put an entry into a queue. If clients on other machines wait for it, it is sent to one of them,
/// who thinks and sends the next request.
#[inline(never)]
pub fn reply<S: Sink>(x: &mut Running<S>, object: u32) -> bool {
    let to = x.programs.remotes.clients.iter().position(|clients| clients.replies == Some(object));
    let Some(clients) = to else { return false };
    if let Object::Queue { values, .. } = x.object(object) {
        values.clear();
    }
    let remotes = &mut x.programs.remotes;
    let Sends::Closed { think, network, .. } = remotes.clients[clients].sends else { return false };
    let away = remotes.draw(clients, network) + remotes.draw(clients, think) + remotes.draw(clients, network);
    let cpu = remotes.send(clients, x.run.now + away);
    arm(x.run, x.kernel, &x.programs.remotes, cpu);
    true
}
