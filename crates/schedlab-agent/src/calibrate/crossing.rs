//! Costs of reaching another CPU: the latency of an inter-processor interrupt and the time in its handler.
//!
//! membarrier(PRIVATE_EXPEDITED) interrupts the CPUs on which this process runs. A thread that reads the clock in a
//! loop on the other CPU observes when it was interrupted and for how long.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use rustix::thread::{membarrier, MembarrierCommand};
use schedlab_model::{Nanos, USEC};

use super::{pin, Cost, Cpus, Effort, Entry};
use crate::clock::now;
use crate::error::{errno, Result};

/// Measures these costs.
pub fn measure(effort: Effort, cpus: &Cpus, costs: &mut BTreeMap<&'static str, Entry>) -> Result<()> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).map_err(errno("membarrier"))?;
    let mut ways = BTreeMap::new();
    let mut handlers = Vec::new();
    for (distance, cpu) in &cpus.others {
        let (way, handler) = interrupt(effort.few, cpus.first, *cpu)?;
        let how = format!("membarrier() on CPU {} until a busy loop on CPU {cpu} stops", cpus.first);
        if let Some(cost) = Cost::of(way, how) {
            ways.insert(*distance, cost);
        }
        handlers.extend(handler);
    }
    if !ways.is_empty() {
        costs.insert("ipi", Entry::ByDistance(ways));
    }
    if let Some(cost) = Cost::of(handlers, "how long that busy loop stands still") {
        costs.insert("irq", Entry::One(cost));
    }
    Ok(())
}

/// The latency and the handler time of each interrupt that can be attributed to a membarrier call.
fn interrupt(samples: usize, here: u32, there: u32) -> Result<(Vec<Nanos>, Vec<Nanos>)> {
    const PAUSE: Nanos = 30 * USEC;
    let (ready, over) = (AtomicBool::new(false), AtomicBool::new(false));
    pin(here)?;
    let (calls, gaps) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(there, &ready, &over));
        while !ready.load(SeqCst) {
            std::hint::spin_loop();
        }
        let call = |_| {
            crate::burn::spin_until(now() + PAUSE);
            let begin = now();
            // Cannot fail: the process is registered.
            let _ = membarrier(MembarrierCommand::PrivateExpedited);
            (begin, now())
        };
        let calls: Vec<(Nanos, Nanos)> = (0..samples).map(call).collect();
        over.store(true, SeqCst);
        (calls, watcher.join().unwrap_or_default())
    });
    let mut seen = gaps.into_iter().peekable();
    let (mut ways, mut handlers) = (Vec::new(), Vec::new());
    for (begin, end) in calls {
        while seen.next_if(|(at, length)| at + length < begin).is_some() {}
        // A gap that began before the call has another cause.
        if let Some((at, length)) = seen.next_if(|(at, _)| (begin..end).contains(at)) {
            ways.push(at - begin);
            handlers.push(length);
        }
    }
    Ok((ways, handlers))
}

/// The gaps in a loop of clock reads: when they began and how long they lasted.
fn watch(cpu: u32, ready: &AtomicBool, over: &AtomicBool) -> Vec<(Nanos, Nanos)> {
    const SHORTEST: Nanos = 150;
    let mut gaps = Vec::new();
    if pin(cpu).is_err() {
        ready.store(true, SeqCst);
        return gaps;
    }
    ready.store(true, SeqCst);
    let mut last = now();
    while !over.load(SeqCst) {
        let time = now();
        if time - last > SHORTEST {
            gaps.push((last, time - last));
        }
        last = time;
    }
    gaps
}
