//! Requests of clients on other machines: interrupts of the network card and their softirq work, which no task
//! executes.
//!
//! A request reaches the machine and interrupts one of its CPUs, chosen at random as by the hash of receive-side
//! scaling. The softirq (NET_RX) works for it on that CPU, and then wakes a receiver. The entry is in the queue from
//! the interrupt on (simplified). Left out: interrupt moderation, the polling of NAPI beyond requests that are there,
//! ksoftirqd, and drops.

use schedlab_model::CpuId;
use schedlab_trace::Sink;
use schedlab_workload::Sends;

use super::objects::Object;
use super::remotes::{Remotes, Request};
use super::running::Running;
use super::state::Programs;
use crate::kernel::{self, Kernel};
use crate::machine::Machine;
use crate::run::{Context, Run, Source};

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
        let interrupt = std::mem::replace(&mut run.context, Context::Softirq);
        kernel::wake_from_interrupt(run, machine, kernel, waiter, cpu);
        run.context = interrupt;
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
