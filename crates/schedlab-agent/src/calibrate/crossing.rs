//! Costs of reaching another CPU: an inter-processor interrupt's way, and its handler's time there.
//!
//! membarrier(PRIVATE_EXPEDITED) interrupts the CPUs where this process runs. A thread that looks at the clock without
//! pause on the other CPU sees when it was interrupted and for how long.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use rustix::thread::{membarrier, MembarrierCommand};
use schedlab_model::{Nanos, USEC};

use super::{pin, Cost, Cpus, Effort, Entry};
use crate::clock::now;
use crate::error::{errno, Result};

/// Adds them to the costs.
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

/// The way and the handler's time of each interrupt that could be told from others.
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
            // Registered before.
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
        // A loop that stood still before the call was interrupted by something else.
        if let Some((at, length)) = seen.next_if(|(at, _)| (begin..end).contains(at)) {
            ways.push(at - begin);
            handlers.push(length);
        }
    }
    Ok((ways, handlers))
}

/// When the loop stood still, and for how long.
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
